"""``python -m tests.peers`` serves sloppy and hostile agents on 127.0.0.1, to try a client of A2A on them."""

from __future__ import annotations

import argparse
import sys

from tests.peers.behaviours import BEHAVIOURS
from tests.peers.server import PeerServer

WIDTH = max(len(behaviour.name) for behaviour in BEHAVIOURS) + 2


def main() -> None:
    """Serves them until Ctrl-C."""
    rows = "\n".join(f"  {one.name:{WIDTH}}{one.does}" for one in BEHAVIOURS)
    about = (
        "An agent is at /NAME/VERSION/BINDING/LABEL: the version is 1.0 or 0.3, the binding jsonrpc or rest, the label "
        "any word. With /asked behind it, its address lists the operations that it was asked for."
    )
    parser = argparse.ArgumentParser(
        prog="python -m tests.peers",
        description=f"Serves sloppy and hostile A2A agents on 127.0.0.1.\n\n{about}",
        epilog=f"names:\n{rows}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--port", type=int, default=8400, help="0 for a free one (default: %(default)s)")
    with PeerServer(parser.parse_args().port) as server:
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            server.is_over.set()


if __name__ == "__main__":
    main()
