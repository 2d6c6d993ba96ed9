"""Runs the endpoints in threads, for servers that answer many requests in one event loop."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.responses import Response

    from a2a_serverless.http.api import Run

CALLS: Final = 200  # a blocking send holds its thread while it waits


def in_threads(count: int = CALLS) -> Run:
    """A ``Run`` in ``count`` threads."""
    pool = ThreadPoolExecutor(count, thread_name_prefix="api")

    async def run(answer: Callable[[], Response]) -> Response:
        return await asyncio.get_running_loop().run_in_executor(pool, answer)

    return run
