"""A plugin of pytest: harnesses do not replay, unless they or the test's mark ask for it."""

from a2a_serverless.testing.replay_choice import MARKED

MARKED.set(False)
