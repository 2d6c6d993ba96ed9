"""Lengths of time in ms, the unit of all times in the library whose names do not tell another unit."""

from typing import Final

MINUTE_MS: Final = 60_000
DAY_MS: Final = 86_400_000
