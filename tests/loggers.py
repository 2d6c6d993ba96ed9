"""Restores the loggers after tests that make functions, which set up the logs of their process."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING

from a2a_serverless.adapters.logs import PACKAGE, QUOTING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def kept_loggers() -> Iterator[list[logging.Logger]]:
    """Gives the loggers that a function sets up, root first, and restores them afterwards."""
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
