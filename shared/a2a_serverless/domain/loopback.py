"""The address of the machine that a program runs on, and its names."""

from typing import Final

LOOPBACK: Final = "127.0.0.1"
LOOPBACK_NAMES: Final = (LOOPBACK, "localhost", "::1")
