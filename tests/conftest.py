"""Fixtures and settings for all folders of tests."""

import gc
import os
import signal
import sys
from functools import cache
from pathlib import Path
from typing import Final

import botocore.session
import pytest

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts its background jobs so, and programs that tests start would ignore their Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A `make` that a test starts would read the options and ARGS of the `make` that runs the tests.
for inherited in ("ARGS", "MAKEFLAGS", "MAKELEVEL", "MFLAGS"):
    os.environ.pop(inherited, None)

# Each session of botocore would read the descriptions of AWS's endpoints and services anew: a tenth of a second.
botocore.session.create_loader = cache(botocore.session.create_loader)

pytest_plugins = ["tests.stack.local"]

TESTS: Final = Path(__file__).parent
# Fixtures that start other programs or make builds.
PROGRAMS: Final = {"stack", "dist", "dynoxide_client", "original"}
# What needs Linux: the local stack runs functions, built for this machine, in processes of this machine.
LINUX_FIXTURES: Final = {"stack", "original"}
LINUX_FILES: Final = (
    "cli/test_demo_run",
    "docs/test_commands",
    "journeys/test_alarm_to_cause",
    "journeys/test_aws_proof",
    "journeys/test_behind_a_gateway",
    "journeys/test_by_hand",
    "journeys/test_demo",
    "journeys/test_mirror",
    "journeys/test_own_application",
    "journeys/test_own_project",
    "journeys/test_queue_worker",
    "journeys/test_tutorials",
    "journeys/test_waiting",
    "stack/test_build",
    "stack/test_guided",
    "stack/test_invoke",
    "stack/test_signed_in",
    "stack/test_web_pages",
)
# The groups that take longest. They start first, in this order, so that no process ends long after the others.
LONGEST: Final = (
    "stack",
    "dynoxide_client",
    "emulator_client",
    "usual ports",
    "stack/test_build",
    "console/test_console",
    "replay/test_replay",
    "roles",
    "journeys/test_own_project",
    "official clients",
    "test_behind_a_gateway",
)


def place_of(item: pytest.Item) -> str:
    """The file of a test, such as ``stack/test_build``."""
    return item.path.relative_to(TESTS).with_suffix("").as_posix()


@pytest.hookimpl(tryfirst=True)  # before xdist, which reads the groups in the same hook
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Groups the tests by file, unless they have a group, so that one process makes what they share, and once.

    All tests of the local stack are one group. Tests with such a fixture are integration tests, and need Linux.
    """
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        if fixtures & PROGRAMS:
            item.add_marker(pytest.mark.integration)
        if fixtures & LINUX_FIXTURES or place_of(item) in LINUX_FILES:
            item.add_marker(pytest.mark.linux)
        if sys.platform != "linux" and item.get_closest_marker("linux"):
            item.add_marker(pytest.mark.skip(reason="LINUX ONLY"))
        if "stack" in fixtures:
            item.add_marker(pytest.mark.xdist_group("stack"))
        elif item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(place_of(item)))
    places = {group: place for place, group in enumerate(LONGEST)}
    items.sort(key=lambda item: min(places.get(mark.args[0], len(places)) for mark in item.iter_markers("xdist_group")))


def pytest_collection_finish() -> None:
    """Lets the garbage collector pass over modules and tests: they stay until the end."""
    gc.freeze()
