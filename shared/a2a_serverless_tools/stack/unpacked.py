"""Sums what the zips of functions unpack to. Lambda refuses a function that is too large, and names no package.

Only the functions with an agent's packages come near the limit.
"""

import zipfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

LIMIT = 250 * 1024 * 1024
LARGEST = 5


@dataclass(frozen=True)
class Unpacked:
    """What a zip unpacks to: bytes by package, that is by the folder or module at its top."""

    zip: str
    packages: Counter[str]

    @property
    def is_near(self) -> bool:
        """Whether it has four fifths of what Lambda allows."""
        return self.packages.total() >= LIMIT * 4 // 5

    @property
    def is_over(self) -> bool:
        """Whether Lambda refuses it."""
        return self.packages.total() > LIMIT

    def __str__(self) -> str:
        largest = ", ".join(f"{name} {size / 1e6:.0f}" for name, size in self.packages.most_common(LARGEST))
        size = f"{self.packages.total() / 1e6:.0f} MB of {LIMIT / 1e6:.0f} that Lambda allows"
        return f"{self.zip} unpacks to {size}; its largest packages, in MB: {largest}"


def read_unpacked(file: Path) -> Unpacked:
    """Read how much a zip unpacks to."""
    packages = Counter[str]()
    with zipfile.ZipFile(file) as archive:
        for entry in archive.infolist():
            packages[entry.filename.partition("/")[0]] += entry.file_size
    return Unpacked(file.name, packages)
