"""Composition root of the notifier function."""

from a2a_serverless.wiring.process import uncollected

with uncollected():
    from a2a_serverless.wiring.notifier import make_notifier

    handler = make_notifier()
