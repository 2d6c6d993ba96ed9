"""The signals that end a run and not its task, and the guard that turns a store's failure into one.

Signals are no ``Exception``, so that agents do not catch them.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from a2a_serverless.domain.agent_errors import BudgetExceeded, StepConflict
from a2a_serverless.domain.contents import ContentNotFound
from a2a_serverless.domain.decisions import LeaseLost
from a2a_serverless.domain.errors import IllegalTransition

if TYPE_CHECKING:
    from collections.abc import Callable

P = TypeVar("P")
T = TypeVar("T")


class Suspended(BaseException):
    """The task waits, and has been suspended."""


class StepAlreadyStored(BaseException):
    """Another run has stored another result of a step. This run ends; the next one reads the stored results."""


class NeedsWorker(BaseException):
    """Only the worker can make this call."""


class ProcessInterrupted(BaseException):
    """The process ends while the engine calls a store or another agent. ``cause`` is the exception that ends it."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__()
        self.cause = cause


class StoreFailed(BaseException):
    """A store call of the run failed. It is not the agent's fault, so an agent's ``except Exception`` cannot catch it.

    ``retry`` repeats that call and raises if it fails again. The call may have taken effect the first time: every
    write may be retried.
    """

    def __init__(self, again: Callable[[], object] = lambda: None, cause: Exception | None = None) -> None:
        super().__init__("the store has failed")
        self.retry = again
        self.cause = cause

    @property
    def is_permanent(self) -> bool:
        """Whether a retry cannot help: the request or the data is wrong, and not the store."""
        return isinstance(self.cause, (AttributeError, LookupError, RuntimeError, TypeError, ValueError))


SIGNALS: Final = (
    Suspended,
    StepAlreadyStored,
    NeedsWorker,
    ProcessInterrupted,
    LeaseLost,
    StoreFailed,
    StepConflict,
    BudgetExceeded,
    IllegalTransition,
)
"""Exceptions of the task's methods that end the run, even if the agent or one of its libraries catches them."""


class TimeLimitReached(Exception):
    """The platform's time limit is near: the run hands over."""


class CodeReplaced(Exception):
    """There is newer code for the agents: the run hands over to it."""


def cause_of(error: BaseException) -> BaseException:
    """The source of the error: the failure of a store, or the end of the process.

    It is not ``__cause__``: a framework that raises the error again ``from None`` loses that.
    """
    return getattr(error, "cause", None) or error


class _GuardedStore:
    """Wraps a port: its failed calls raise StoreFailed."""

    def __init__(self, port: object) -> None:
        self._port = port

    def __getattr__(self, name: str) -> Callable[..., object]:
        guarded = self.__dict__[name] = guard_call(getattr(self._port, name))
        return guarded


def guard_store(port: P) -> P:
    """The port, wrapped so that failed calls raise StoreFailed."""
    return cast("P", _GuardedStore(port))


def guard_call(call: Callable[..., T]) -> Callable[..., T]:
    """The call, but if it fails it raises StoreFailed, whose ``retry`` repeats it with the same arguments."""

    def guarded(*args: Any, **kwargs: Any) -> T:  # noqa: ANN401 - the call's own
        try:
            return call(*args, **kwargs)
        except (IllegalTransition, ContentNotFound, ProcessInterrupted):
            raise
        except Exception as error:
            raise StoreFailed(partial(guarded, *args, **kwargs), error) from error
        except BaseException as error:
            raise ProcessInterrupted(error) from error

    return guarded


def guarded(call: Callable[[], T]) -> T:
    """Makes the call; the end of the process in it is not the agent's error."""
    try:
        return call()
    except (Exception, ProcessInterrupted, StoreFailed):
        raise
    except BaseException as error:
        raise ProcessInterrupted(error) from error
