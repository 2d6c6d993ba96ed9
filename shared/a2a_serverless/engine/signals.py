"""The exceptions that steer a run: who raises each, who catches it, and what holds then.

========================  ========================================  =====================  =============================
exception                 raised by                                 caught by              what holds then
========================  ========================================  =====================  =============================
``Suspended``             ``Execution.suspend``, after its write    ``Run._run_agent``     no lease; the head has a wait
``StepAlreadyStored``     ``Steps`` and LangGraph's adapter: the    ``Run._run_agent``     handed over; the next run
                          store has another result of the step                             reads the stored result
``NoResult``              the work of a framework's step            its adapter            nothing is stored
``NeedsWorker``           ``AgentCalls.check_reachable``, in the    ``Run._run_agent``     handed over to a worker
                          api
``TimeLimitReached``      ``Run._supervise``                        ``Run._run_agent``     steps noted, handed over
``CodeReplaced``          ``Run._supervise``                        ``Run._run_agent``     handed over to newer code
``LeaseLost``             ``decisions.check_fence``, at each write  ``Run.play``           the run writes nothing more
                          and look; ``RunSession.reload_head``, if
                          the task was erased
``StoreFailed``           ``store_guard``; ``RunSession``, if each  ``Run.play``           repeated, then handed over;
                          attempt at a write was refused                                   a permanent failure is raised
``ProcessInterrupted``    ``store_guard``                           ``Run.play``           its cause ends the process
``StepConflict``          acts: a name, an artifact, a scope or a   ``Run._play_to_end``   the task has failed
                          timer that is used wrongly
``BudgetExceeded``        ``Execution.admit``,                      ``Run._play_to_end``   the task has failed
                          ``TaskBudget.share``
``IllegalTransition``     ``domain/states.py``, for our own error   nobody in the engine   the queue message comes again
``WakeCounterChanged``    ``decisions.suspend``, ``decisions.ask``  ``Execution.suspend``  not suspended: the run reads
                                                                                           what has come, and goes on
========================  ========================================  =====================  =============================

Before there is a ``Run``, ``lease.take_task`` repeats the calls that raise StoreFailed. ``Run._supervise`` passes over
a StoreFailed of its own calls: it makes them again a second later.

The task's methods raise ``SIGNALS``. The first one is stored (``Execution.remember_signal``) and wins over all that the
agent and its libraries make of it. Those that are no ``Exception`` pass through an agent's ``except Exception``.
An agent never gets TimeLimitReached or CodeReplaced: its code is cancelled. After that, its acts raise LeaseLost.
``LeaseLost`` and ``WakeCounterChanged`` stand in ``domain/decisions.py``, ``StepConflict`` and ``BudgetExceeded`` in
``domain/agent_errors.py``, ``IllegalTransition`` in ``domain/errors.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from a2a_serverless.domain.agent_errors import BudgetExceeded, StepConflict
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


class NoResult(Exception):
    """The work of a framework's step has to ask first. Nothing is stored: the step runs again after the answer."""


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
