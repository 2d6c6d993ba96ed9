"""The project, as its deployment needs it."""

from a2a_serverless_tools.project_check import check_project


def test_nothing_is_missing() -> None:
    """Modules, dependencies, environment variables, secrets: what is missing is named."""
    check_project()
