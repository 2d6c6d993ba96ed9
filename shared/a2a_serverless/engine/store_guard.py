"""Turns the failures of stores into signals of the run: they are not the agent's errors."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

from a2a_serverless.domain.contents import ContentNotFound
from a2a_serverless.domain.errors import IllegalTransition
from a2a_serverless.engine.signals import ProcessInterrupted, StoreFailed

if TYPE_CHECKING:
    from collections.abc import Callable

P = TypeVar("P")
T = TypeVar("T")


class _GuardedStore:
    """Wraps a port: its failed calls raise StoreFailed."""

    def __init__(self, port: object) -> None:
        self._port = port

    def __getattr__(self, name: str) -> Callable[..., object]:
        call = self.__dict__[name] = guard_call(getattr(self._port, name))
        return call


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


def run_guarded(call: Callable[[], T]) -> T:
    """Makes the call; the end of the process in it is not the agent's error."""
    try:
        return call()
    except (Exception, ProcessInterrupted, StoreFailed):
        raise
    except BaseException as error:
        raise ProcessInterrupted(error) from error
