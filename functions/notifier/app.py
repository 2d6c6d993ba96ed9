"""Composition root of the notifier function."""

from a2a_serverless.wiring import make_notifier

handler = make_notifier()
