"""Functions set up the log of their process; tests that make some leave it as it was."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from a2a_serverless.adapters.logs import PACKAGE, QUOTING


@contextmanager
def kept_loggers() -> Iterator[list[logging.Logger]]:
    """The loggers that a function sets up, root first, and afterwards they are as before."""
    loggers = [logging.getLogger(name) for name in ("", PACKAGE, *QUOTING)]
    kept = [(one, dict(vars(one)), list(one.handlers)) for one in loggers]
    try:
        yield loggers
    finally:
        for one, values, handlers in kept:
            vars(one).clear()
            vars(one).update(values)
            one.handlers = handlers
            one.manager._clear_cache()  # type: ignore[attr-defined] # noqa: SLF001 - levels are cached
