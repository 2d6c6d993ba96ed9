"""A plugin of pytest: a project's tests see its agents' environment, as its functions and ``dev`` do.

The variables are set before any module of the project is imported. One that the terminal sets stays. The mark
``@pytest.mark.replay(False)`` says that the harnesses of a test, a class or a module (``pytestmark``) do not replay.
"""

from collections.abc import Generator

import pytest

from a2a_serverless_tools.project import ProjectError, set_environment


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Sets the variables of the project in pytest's root folder; without a project nothing."""
    try:
        set_environment(early_config.rootpath)
    except ProjectError as error:
        raise pytest.UsageError(str(error)) from None


def pytest_configure(config: pytest.Config) -> None:
    """Registers the mark."""
    config.addinivalue_line(
        "markers", "replay(on): whether AgentTestHarness plays each task anew after each stored act. Default: True"
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Sets what the mark says while the test and its fixtures run."""
    mark = item.get_closest_marker("replay")
    if mark is None:
        return (yield)
    match (mark.args, mark.kwargs):
        case ((bool(on),), {}):
            pass
        case _:
            raise pytest.UsageError(f"{item.nodeid}: write @pytest.mark.replay(False) or @pytest.mark.replay(True)")
    from a2a_serverless.testing.replay_choice import MARKED

    token = MARKED.set(on)
    try:
        return (yield)
    finally:
        MARKED.reset(token)
