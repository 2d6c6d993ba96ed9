"""Runs agents in unit tests: ``AgentTestHarness``. The modules beside it are the deployment in one process below it.

Functions do not contain this package.
"""

from a2a_serverless.testing.harness import CLIENT, AgentTestHarness
from a2a_serverless.testing.replies import NoArtifact, Reply
from a2a_serverless.testing.simulated_loop import Deadlock

__all__ = ["CLIENT", "AgentTestHarness", "Deadlock", "NoArtifact", "Reply"]
