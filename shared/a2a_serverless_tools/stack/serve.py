"""``python -m a2a_serverless_tools.stack.serve APP FOLDER PORT``: uvicorn on 127.0.0.1, as a process of its own."""

import sys

import uvicorn

from a2a_serverless.domain.loopback import LOOPBACK


def main() -> None:
    """Serve until a signal ends the process."""
    app, folder, port = sys.argv[1:]
    uvicorn.run(
        app,
        factory=True,
        app_dir=folder,
        host=LOOPBACK,
        port=int(port),
        http="h11",
        access_log=False,
        timeout_graceful_shutdown=3,
    )


if __name__ == "__main__":
    main()
