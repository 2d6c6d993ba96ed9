"""The command line: ``a2a-serverless --help``."""

from a2a_serverless_tools.cli.app import run

__all__ = ["run"]
