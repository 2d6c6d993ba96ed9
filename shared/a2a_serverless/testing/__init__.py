"""Runs agents in unit tests: ``AgentTestHarness``. The modules beside it are the deployment in one process below it.

Functions do not contain this package.
"""

from a2a_serverless.testing.harness import CLIENT, AgentTestHarness, Deadlock, NoArtifact, Reply

__all__ = ["CLIENT", "AgentTestHarness", "Deadlock", "NoArtifact", "Reply"]
