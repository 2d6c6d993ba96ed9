"""Fixtures and settings for all folders of tests."""

import signal

import pytest

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts its background jobs so, and programs that tests start would ignore their Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)

pytest_plugins = ["tests.stack.local"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run all tests of the local stack in one process, so that it is started only once."""
    for item in items:
        if "stack" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("stack"))
