"""Stub."""


def write(systems: object) -> None:
    """Stub."""
