"""Checks the ports of a local run before anything is built: which are in use, by a program in which folder."""

import contextlib
from collections.abc import Mapping
from pathlib import Path

from a2a_serverless.domain.loopback import LOOPBACK
from a2a_serverless_tools.stack.errors import StackError
from a2a_serverless_tools.stack.processes import HIGHEST_PORT, is_free

STEP = 1000
_LISTENS = "0A"  # a state in /proc/net/tcp


def check_ports(ports: Mapping[str, int]) -> None:
    """Check that the port of each part is free; 0 is. Raises `StackError`: the ports in use, and a command with others.

    The remedy names the folders in which the programs that use the ports were started, where the system tells.
    """
    conflicts = {part: port for part, port in ports.items() if port and not is_free(port)}
    if not conflicts:
        return
    text = ", ".join(f"{port} ({part})" for part, port in conflicts.items())
    others = " ".join(f"--{part}-port {_free_port(port)}" for part, port in conflicts.items())
    folders = sorted({str(folder) for port in conflicts.values() if (folder := find_user(port))})
    end = "end `dev` by Ctrl-C or run `a2a-serverless down` in"
    stop = f"{end} {' and '.join(folders)}" if folders else "stop what uses them"
    raise StackError(
        "ports", f"in use on {LOOPBACK}: {text}", remedy=f"{stop}, or other ports: a2a-serverless up {others}"
    )


def find_user(port: int) -> Path | None:
    """Return the current folder of the process that listens on a port; None where /proc does not tell."""
    sockets = {f"socket:[{inode}]" for inode in _listening_sockets(port)}
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # another user's process, or one that has just ended
            if any(str(file.readlink()) in sockets for file in (process / "fd").iterdir()):
                return (process / "cwd").readlink()
    return None


def _listening_sockets(port: int) -> list[str]:
    with contextlib.suppress(OSError):
        rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        return [row[9] for row in rows if row[3] == _LISTENS and int(row[1].rpartition(":")[2], 16) == port]
    return []


def _free_port(port: int) -> int:
    """Return the next free port in steps of 1,000; 0, which picks one, if there is none."""
    return next((one for one in range(port + STEP, HIGHEST_PORT, STEP) if is_free(one)), 0)
