"""Receives A2A webhooks: proves that they are genuine, handles each once, and shows what came.

A stranger to whoever sends them: it knows the protocol and the issuer's public keys, and imports nothing of the sender.
"""
