"""``dev``, ``init``, the test harness and ``send`` use nothing that only one operating system has; ``stack`` may."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

SHARED = Path(__file__).parents[2] / "shared"
RUNTIME, TOOLS = SHARED / "a2a_serverless", SHARED / "a2a_serverless_tools"
RECEIVER = Path(__file__).parents[2] / "webhook_receiver" / "a2a_webhook_receiver"
MODULES = {"fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"}
ATTRIBUTES = {
    *(
        "AF_UNIX",
        "SIGALRM",
        "SIGCHLD",
        "SIGHUP",
        "SIGKILL",
        "SIGQUIT",
        "SIGUSR1",
        "SIGUSR2",
        "setitimer",
        "add_signal_handler",
        "create_unix_server",
        "fork",
        "forkpty",
        "getuid",
    ),
    *("killpg", "mkfifo", "setsid", "start_new_session", "uname", "waitpid"),
}
PLACES = ("/proc/", "/dev/", "/tmp/", "/etc/")  # noqa: S108 - looked for, not used
STACK = {
    *(TOOLS / "cli" / name for name in ("stack.py", "demo.py", "demo_run.py")),
    RUNTIME / "aws" / "queue_worker.py",  # containers have Linux
}
PORTABLE = [
    path
    for folder in (RUNTIME, TOOLS, RECEIVER)
    for path in sorted(folder.rglob("*.py"))
    if "stack" not in path.relative_to(folder).parts and path not in STACK
]


def found_in(tree: ast.AST) -> Iterator[str]:
    """What a module uses that only some systems have."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from MODULES & {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            yield from MODULES & {node.module}
        elif isinstance(node, ast.Attribute):
            yield from ATTRIBUTES & {node.attr}
        elif isinstance(node, ast.keyword):
            yield from ATTRIBUTES & {node.arg}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith(PLACES):
            yield node.value


@pytest.mark.parametrize("path", PORTABLE, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_no_module_outside_of_stack_uses_what_one_system_has(path: Path) -> None:
    assert [*found_in(ast.parse(path.read_text()))] == []


def test_the_check_reports_each_call_that_only_posix_has() -> None:
    source = "import fcntl\nfrom pwd import getpwnam\nos.fork()\nrun(start_new_session=True)\nopen('/proc/self')"
    assert len([*found_in(ast.parse(source))]) == 5


def test_only_functions_of_commands_import_the_stack() -> None:
    importing = [
        path.name
        for path in PORTABLE
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("a2a_serverless_tools.stack")
    ]
    assert importing == []
