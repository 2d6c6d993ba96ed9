"""An agent of Strands behind its ``A2AServer``, whose model repeats what it has heard, word by word.

``python strands_server.py`` prints its base URL.
"""

import asyncio
import socket
import warnings
from collections.abc import AsyncIterator
from typing import Any

import uvicorn
from strands import Agent
from strands.models import Model
from strands.multiagent.a2a import A2AServer

warnings.simplefilter("ignore")


class Fake(Model):  # type: ignore[misc]
    """Says all texts that it has heard."""

    def update_config(self, **model_config: Any) -> None:
        """Has none."""

    def get_config(self) -> dict[str, Any]:
        """Has none."""
        return {}

    def structured_output(self, *_: Any, **__: Any) -> Any:
        """Has none."""
        raise NotImplementedError

    async def stream(self, messages: Any, *_: Any, **__: Any) -> AsyncIterator[Any]:
        """One answer."""
        heard = [part["text"] for one in messages if one["role"] == "user" for part in one["content"] if "text" in part]
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockStart": {"start": {}}}
        for word in (f"{text} " for text in heard):
            await asyncio.sleep(0.02)
            yield {"contentBlockDelta": {"delta": {"text": word}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn"}}


def main() -> None:
    """Serves it on a free port."""
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    agent = Agent(name="Repeater", description="Repeats", model=Fake(), callback_handler=None)
    server = A2AServer(agent, host="127.0.0.1", port=port, enable_a2a_compliant_streaming=True)
    print(f"http://127.0.0.1:{port}", flush=True)  # noqa: T201
    app = server.to_starlette_app()
    asyncio.run(uvicorn.Server(uvicorn.Config(app, log_level="error")).serve(sockets=[listener]))


if __name__ == "__main__":
    main()
