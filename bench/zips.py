"""The sizes of the functions' zips, and whether every source in them is compiled (N2, N3).

The zips are built for this machine. Compiled files are of the kind that Python uses without reading the source (PEP
552, unchecked hash); without them each cold start compiles what it imports.
"""

from __future__ import annotations

import re
import sys
import zipfile
from typing import TYPE_CHECKING

from a2a_serverless_tools.stack import paths, sam
from a2a_serverless_tools.stack.build import build
from a2a_serverless_tools.stack.targets import this_machine
from cold_start import compiled
from measuring import Figure, Report, figure, goal, main

if TYPE_CHECKING:
    from pathlib import Path

MEGABYTE = 1_000_000
UNCHECKED = b"\x01\0\0\0"


def measure(_rounds: int) -> Report:
    """Measures the zips of one build."""
    folder = build(paths.find(), this_machine()).path
    zips = {name: folder / f"{name.title()}Function.zip" for name in sam.FUNCTIONS}
    sizes = {name: _sizes(path) for name, path in zips.items()}
    validating = {name for name, path in zips.items() if _has_pydantic(path)}
    limits = {name: (15, 48) if name in validating else (8, 26) for name in zips} | {"api": (17, 54)}
    shares = [_share_compiled(path) for path in zips.values()]
    return Report(
        "Zips",
        __doc__ or "",
        [
            *(figure(f"{name}, zipped", "MB", [size[0]], ours=True) for name, size in sizes.items()),
            *(figure(f"{name}, unzipped", "MB", [size[1]], ours=True) for name, size in sizes.items()),
            _plain(),
        ],
        [
            goal("N2", "smallest share of a zip's sources that are compiled, unchecked", ">=", 1, [min(shares)]),
            *(
                goal("N3", f"{name}, {kind} MB", "<=", limit, [size])
                for name in _largest(sizes, limits)
                for kind, size, limit in zip(("zipped", "unzipped"), sizes[name], limits[name], strict=True)
            ),
        ],
        [
            "Zips for Lambda's own Python and for arm64 differ by a few percent.",
            f"Of each limit the largest zip is shown. Zips without pydantic: {len(zips.keys() - validating)}.",
        ],
    )


def _largest(sizes: dict[str, tuple[float, float]], limits: dict[str, tuple[int, int]]) -> list[str]:
    """Returns the functions with the largest zip under each limit, in the order of the limits."""
    groups = sorted(set(limits.values()), reverse=True)
    return [max((name for name in sizes if limits[name] == one), key=lambda name: sizes[name]) for one in groups]


def _has_pydantic(path: Path) -> bool:
    with zipfile.ZipFile(path) as archive:
        return any(name.startswith("pydantic/") for name in archive.namelist())


def _sizes(path: Path) -> tuple[float, float]:
    with zipfile.ZipFile(path) as archive:
        entries = archive.infolist()
    zipped, unzipped = sum(one.compress_size for one in entries), sum(one.file_size for one in entries)
    return zipped / MEGABYTE, unzipped / MEGABYTE


def _share_compiled(path: Path) -> float:
    """Returns the share of the compilable sources that have an unchecked compiled file."""
    tag = sys.implementation.cache_tag
    with zipfile.ZipFile(path) as archive:
        names = set(archive.namelist())
        sources = [name for name in names if name.endswith(".py")]
        targets = [re.sub(r"([^/]+)\.py$", rf"__pycache__/\1.{tag}.pyc", name) for name in sources]
        found = [name in names and archive.read(name)[4:8] == UNCHECKED for name in targets]
    return sum(found) / len(found)


def _plain() -> Figure:
    packages = compiled("plain")
    size = sum(path.stat().st_size for path in packages.rglob("*") if path.is_file())
    return figure("plain stack as it is installed, unzipped", "MB", [size / MEGABYTE])


if __name__ == "__main__":
    main(measure, rounds=1)
