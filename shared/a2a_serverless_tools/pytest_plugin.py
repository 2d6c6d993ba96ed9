"""A plugin of pytest: a project's tests see its agents' environment, as its functions and ``dev`` do.

The variables are set before any module of the project is imported. One that the terminal sets stays.
"""

import pytest

from a2a_serverless_tools.project import ProjectError, set_environment


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Sets the variables of the project in pytest's root folder; without a project nothing."""
    try:
        set_environment(early_config.rootpath)
    except ProjectError as error:
        raise pytest.UsageError(str(error)) from None
