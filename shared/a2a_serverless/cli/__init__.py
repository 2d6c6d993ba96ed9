"""The command line: ``a2a-serverless --help``."""

from a2a_serverless.cli.app import main

__all__ = ["main"]
