"""Receives A2A webhooks: verifies that they are genuine, drops repeated ones, and shows what arrived.

It needs only the protocol and the issuer's public keys, and imports nothing of the sender.
"""
