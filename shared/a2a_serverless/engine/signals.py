"""The exceptions that end a run and not its task. They are no ``Exception``, so that agents do not catch them."""

from __future__ import annotations


class Suspended(BaseException):
    """The task waits, and has been suspended."""


class StepAlreadyStored(BaseException):
    """Another run has stored another result of a step. This run ends; the next one reads the stored results."""


class NeedsWorker(BaseException):
    """Only the worker can make this call."""


class ProcessInterrupted(BaseException):
    """The process ends while the engine calls a store or another agent. The cause is the exception that ends it."""


def cause_of(error: BaseException) -> BaseException:
    """The source of the error: the failure of a store, or the end of the process."""
    return error.__cause__ or error


class TimeLimitReached(Exception):
    """The platform's time limit is near: the run hands over."""


class CodeReplaced(Exception):
    """There is newer code for the agents: the run hands over to it."""
