"""An MCP server over SSE on this machine, whose tool is counted."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import uvicorn
from mcp.server import MCPServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def mcp_server(call: Callable[[str], object]) -> Iterator[str]:
    """The URL of a server that runs while it is entered. ``call`` gets each call of its tool."""
    tools = MCPServer("documents")

    @tools.tool()
    def fetch(topic: str) -> str:
        """Fetches the documents about a topic."""
        call(f"fetch {topic}")
        return f"The documents about {topic}."

    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(tools.sse_app(), log_level="warning", timeout_graceful_shutdown=1))
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/sse"
        finally:
            server.should_exit = True
            thread.join()
