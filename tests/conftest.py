"""What several folders of tests share."""

import pytest

pytest_plugins = ["tests.stack.local"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep all tests of the one local stack in one process when tests run in several: it is started once."""
    for item in items:
        if "stack" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("stack"))
