"""Serves ``app`` of a module by uvicorn on 127.0.0.1: ``python serve.py <module> <port>``. The same for everybody."""

import sys

import uvicorn

if __name__ == "__main__":
    module, port = sys.argv[1:]
    kept = 600  # seconds: the client asks one server after the other
    uvicorn.run(
        f"{module}:app",
        port=int(port),
        http="h11",
        loop="asyncio",
        ws="none",
        log_level="warning",
        timeout_keep_alive=kept,
    )
