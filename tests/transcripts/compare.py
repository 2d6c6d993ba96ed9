"""The differences of two transcripts, and the table of those that are meant (``differences.toml``)."""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from difflib import SequenceMatcher
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Json = Any
TABLE: Final = Path(__file__).parent / "differences.toml"
ABSENT: Final = "absent"


@dataclass(frozen=True)
class Difference:
    """A value of a transcript that was ``then`` and is ``now``, as JSON; ``ABSENT`` where there is none."""

    play: str
    path: str
    then: str
    now: str

    def __str__(self) -> str:
        return f"{self.play}: {self.path}: {self.then} -> {self.now}"


@dataclass(frozen=True)
class Row:
    """Differences that are meant, in each of ``plays``. ``path``, ``then`` and ``now`` are patterns as of a shell."""

    plays: tuple[str, ...]
    path: str
    why: str
    then: str = "*"
    now: str = "*"

    def covers(self, one: Difference) -> bool:
        """Whether the difference is one of these."""
        fields = ((one.path, self.path), (one.then, self.then), (one.now, self.now))
        return one.play in self.plays and all(fnmatchcase(text, _plain(pattern)) for text, pattern in fields)


def read_table() -> list[Row]:
    """The rows of ``differences.toml``."""
    rows = tomllib.loads(TABLE.read_text()).get("difference", [])
    return [Row(**{**row, "plays": tuple(row["plays"])}) for row in rows]


def differences(play: str, then: Json, now: Json, path: str = "") -> Iterator[Difference]:
    """The differences between two JSON values. Members of lists are paired so that most are equal."""
    if isinstance(then, dict) and isinstance(now, dict):
        pairs: Iterable[tuple[str, Json, Json]] = (
            (name, then.get(name, ABSENT), now.get(name, ABSENT)) for name in sorted({*then, *now})
        )
    elif isinstance(then, list) and isinstance(now, list):
        pairs = _paired(then, now)
    else:
        pairs = ()
        if then != now:
            yield Difference(play, path, _text(then), _text(now))
    for name, before, after in pairs:
        yield from differences(play, before, after, f"{path}/{name}")


def unlisted(found: Iterable[Difference], rows: Iterable[Row]) -> list[Difference]:
    """The differences that no row covers."""
    return [one for one in found if not any(row.covers(one) for row in rows)]


def missing(play: str, found: Iterable[Difference], rows: Iterable[Row]) -> list[Row]:
    """The rows of the play that cover none of its differences."""
    return [row for row in rows if play in row.plays and not any(row.covers(one) for one in found)]


def _paired(then: list[Json], now: list[Json]) -> Iterator[tuple[str, Json, Json]]:
    matcher = SequenceMatcher(None, [*map(_text, then)], [*map(_text, now)], autojunk=False)
    for _, first, last, begin, end in matcher.get_opcodes():
        for at in range(max(last - first, end - begin)):
            before = then[first + at] if first + at < last else ABSENT
            after = now[begin + at] if begin + at < end else ABSENT
            yield str(first + at if before is not ABSENT else begin + at), before, after


def _text(value: Json) -> str:
    return value if value is ABSENT else json.dumps(value, ensure_ascii=False)


def _plain(pattern: str) -> str:
    """The pattern without sets of characters, because JSON has brackets."""
    return pattern.replace("[", "[[]")
