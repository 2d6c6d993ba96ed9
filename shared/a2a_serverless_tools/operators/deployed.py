"""The deployed stack that an operator's command works on, and its errors. Does not import the AWS SDK."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StackName:
    """The name of a CloudFormation stack in the current AWS account, or in the emulator at the URL ``emulator``."""

    name: str
    emulator: str | None = None


class StackNotFound(Exception):
    """The stack does not exist for the current AWS credentials and region."""


class NoRegion(StackNotFound):
    """No AWS region is set, so no stack can be looked for."""


class NoCredentials(StackNotFound):
    """There are no AWS credentials, so no stack can be looked for."""


class CommandFailed(Exception):
    """A function of the stack failed, or AWS did not do what a command needs."""


class FunctionFailed(CommandFailed):
    """A function of the stack raised an error, which its log has."""


class AccessDenied(CommandFailed):
    """AWS denies the current credentials an action, which the text names."""


class CredentialsExpired(CommandFailed):
    """The current credentials were valid, and are no longer."""


class NoCopy(CommandFailed):
    """A table is no copy, made by DynamoDB, of the stack's own table."""


class NoSuchSchedule(CommandFailed):
    """The stack has no schedule of this agent and name."""
