"""Shared by the writing agents: the outline, which is sent as a data part, and functions on texts.

A client may send an outline that it wrote or changed itself, so every field is checked.
"""

from __future__ import annotations

import json
import re
import unicodedata
from dataclasses import dataclass
from itertools import chain, count
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, cast

from a2a_serverless.domain.errors import FieldViolation, InvalidParams

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from a2a_serverless.domain.model import Json, JsonObject

Language: TypeAlias = Literal["en", "zh"]

_HAN: Final = re.compile(r"[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003134f]")
_WORD: Final = re.compile(r"[^\W\d_\u3400-\u9fff]+")
_TAG: Final = re.compile(r"<(?=[a-zA-Z/!?])")
_FENCE: Final = re.compile(r"[ \t]*(`{3,}|~{3,})")
_SLUG_LENGTH: Final = 48
_MOST_ITEMS: Final = 500


@dataclass(frozen=True, slots=True)
class Section:
    """A section to write. ``id`` is unique in its outline and stays the same when the outline is made again."""

    id: str
    title: str
    points: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Outline:
    """The plan of a document, in reading order."""

    title: str
    language: Language
    sections: tuple[Section, ...]


def language_of(text: str) -> Language:
    """Chinese when ``text`` has more Han characters than words of other scripts, English otherwise."""
    han = sum(1 for _ in _HAN.finditer(text))
    return "zh" if han > sum(1 for _ in _WORD.finditer(text)) else "en"


def without_html(markdown: str) -> str:
    """The Markdown with all HTML tags outside of fenced code escaped, so that no page executes untrusted HTML."""
    lines, fence = list[str](), ""
    for line in markdown.split("\n"):
        mark = _FENCE.match(line)
        if fence:
            fence = "" if line.strip().startswith(fence) and not line.strip().strip(fence[0]) else fence
        elif mark:
            fence = mark[1]
        lines.append(line if fence or mark else _TAG.sub("&lt;", line))
    return "\n".join(lines)


def slugs(titles: Iterable[str]) -> list[str]:
    """One id for each title: lower case, letters and digits of any script joined by ``-``, unique in the list."""
    return _unused(titles, set())


def _unused(titles: Iterable[str], seen: set[str]) -> list[str]:
    """The ids of ``titles``, none of them in ``seen``. Each number is tried once only, so it takes linear time."""
    candidates: dict[str, Iterator[str]] = {}
    found = []
    for slug in map(_slug, titles):
        unused = next(candidate for candidate in candidates.setdefault(slug, _numbered(slug)) if candidate not in seen)
        seen.add(unused)
        found.append(unused)
    return found


def _numbered(slug: str) -> Iterator[str]:
    return chain([slug], (f"{slug}-{number}" for number in count(2)))


def _slug(title: str) -> str:
    plain = unicodedata.normalize("NFKC", title).casefold()
    return re.sub(r"[\W_]+", "-", plain).strip("-")[:_SLUG_LENGTH].strip("-") or "section"


def object_in(answer: str) -> Json:
    """The JSON object in a model's answer, with any text around it; None when there is none."""
    try:
        return cast("Json", json.loads(answer[answer.find("{") : answer.rfind("}") + 1]))
    except ValueError:
        return None


def outline_to_json(outline: Outline) -> JsonObject:
    """``{"title", "language", "sections": [{"id", "title", "points"}]}``; ``outline_from_json`` reads it back."""
    return {
        "title": outline.title,
        "language": outline.language,
        "sections": [
            {"id": section.id, "title": section.title, "points": [*section.points]} for section in outline.sections
        ],
    }


def outline_from_json(value: Json) -> Outline:
    """The outline in a data part; raises ``InvalidParams`` that names the first invalid field.

    Only titles are required: a missing id is made from the title, a missing language is detected from the titles.
    """
    fields = _object(value, "outline")
    title = _text(fields.get("title"), "title")
    items = [_object(item, f"sections[{i}]") for i, item in enumerate(_list(fields.get("sections"), "sections"))]
    titles = [_text(item.get("title"), f"sections[{i}].title") for i, item in enumerate(items)]
    points = [_texts(item.get("points", []), f"sections[{i}].points") for i, item in enumerate(items)]
    sections = tuple(map(Section, _ids(items, titles), titles, points))
    return Outline(title, _language(fields.get("language"), title, *titles), sections)


def _ids(items: list[JsonObject], titles: list[str]) -> list[str]:
    ids = [_text(item["id"], f"sections[{i}].id") if "id" in item else None for i, item in enumerate(items)]
    seen: set[str] = set()
    for index, given in enumerate(ids):
        if given in seen:
            raise _refused(f"sections[{index}].id", "must be unique")
        seen |= {given} if given else set()
    made = iter(_unused((title for given, title in zip(ids, titles, strict=True) if given is None), seen))
    return [given or next(made) for given in ids]


def _texts(value: Json, path: str) -> tuple[str, ...]:
    return tuple(_text(item, f"{path}[{index}]") for index, item in enumerate(_list(value, path)))


def _language(value: Json, *titles: str) -> Language:
    if value is None:
        return language_of("\n".join(titles))
    if value == "en":
        return "en"
    if value == "zh":
        return "zh"
    raise _refused("language", 'must be "en" or "zh"')


def _object(value: Json, path: str) -> JsonObject:
    if not isinstance(value, dict):
        raise _refused(path, "must be an object")
    return value


def _list(value: Json, path: str) -> list[Json]:
    if not isinstance(value, list):
        raise _refused(path, "must be a list")
    if len(value) > _MOST_ITEMS:
        raise _refused(path, f"must have at most {_MOST_ITEMS} items")
    return value


def _text(value: Json, path: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise _refused(path, "must be a text that is not empty")
    return value.strip()


def _refused(path: str, description: str) -> InvalidParams:
    violation = FieldViolation(path, description)
    return InvalidParams(f"The outline cannot be read: {path} {description}.", violations=(violation,))
