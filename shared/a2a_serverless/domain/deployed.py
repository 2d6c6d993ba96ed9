"""Which deployed stack is meant, and what can be wrong with it, for its operator. Known without the AWS SDK."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StackName:
    """A CloudFormation stack by name, in the account at hand; or in the emulator at ``emulator`` (its URL)."""

    name: str
    emulator: str | None = None


class StackNotFound(Exception):
    """There is no such stack for the AWS credentials and the region at hand."""


class CommandFailed(Exception):
    """A function of the stack did not do what it was told; its log says why."""
