"""Scenes of the sea that the offline painter can paint, parsed from a request or from one of our descriptions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from sample_agents.offline.scene_words import Mention, mentions, normalised

SUBJECTS: Final = ("sailboat", "lighthouse")
# Parts: the thing that they belong to, and whether they have its second colour.
_OWNERS: Final = {"hull": ("sailboat", False), "sails": ("sailboat", True), "stripes": ("lighthouse", True)}
_BETWEEN: Final = re.compile(r"\s*(?:的|coloured |colored )?\s*")
_PLACE: Final = re.compile(r"\b(?:on|in|at|by|over|under|above|across)\s{1,4}(?:(?:the|an?)\s{1,4})?$")
_OBJECT_FIRST: Final = re.compile(r"[把将]")


@dataclass(frozen=True, slots=True)
class Thing:
    """Something in the picture. ``accent`` is its second colour: sails, stripes. Without a colour it looks natural."""

    kind: str
    colour: str = ""
    accent: str = ""


@dataclass(frozen=True, slots=True)
class Scene:
    """What to paint: things on and over the sea, at a time of day and in a weather."""

    things: tuple[Thing, ...] = ()
    time: str = "day"
    weather: str = "clear"
    sea: str = ""
    sky: str = ""

    def find(self, kind: str) -> Thing | None:
        """The thing of that kind, if there is one."""
        return next((thing for thing in self.things if thing.kind == kind), None)

    @property
    def subjects(self) -> list[str]:
        """The kinds of things that "it" may mean."""
        return [thing.kind for thing in self.things if thing.kind in SUBJECTS]


@dataclass(frozen=True, slots=True)
class Tint:
    """A colour for a thing, the sea or the sky; ``target`` is empty for "it"."""

    target: str
    colour: str
    is_accent: bool = False


@dataclass(frozen=True, slots=True)
class Request:
    """The meaning of a request's words."""

    shown: tuple[str, ...]
    hidden: frozenset[str]
    tints: tuple[Tint, ...]
    time: str
    weather: str
    asks_colour: bool
    is_sea: bool


def scene_of(text: str) -> Scene | None:
    """The scene that a text describes; None when it names nothing that can be painted."""
    request = read_request(text)
    is_known = request.is_sea or not set(SUBJECTS).isdisjoint(request.shown)
    return changed(Scene(), request) if is_known else None


def read_request(text: str) -> Request:
    """Parses the beginning of a text."""
    text = normalised(text)
    found = mentions(text)
    kinds = [(kind, _verb(text, found, each)) for each in found if (kind := _kind(each))]
    kept = [each for each in found if each.role in {"time", "weather"} and _verb(text, found, each) != "remove"]
    last = {each.role: each.value for each in kept}
    hidden = frozenset(kind for kind, verb in kinds if verb == "remove")
    return Request(
        shown=tuple(dict.fromkeys(kind for kind, _ in kinds if kind not in hidden)),
        hidden=hidden,
        tints=tuple(_tints(text, found)),
        time=last.get("time", ""),
        weather=last.get("weather", "clear" if any(each.role == "weather" for each in found) else ""),
        asks_colour=any(each.role == "word" for each in found),
        is_sea=any(each.value == "sea" for each in found),
    )


def changed(scene: Scene, request: Request) -> Scene:
    """The scene with the requested changes. A colour for "it" is for the subject if there is only one."""
    things = {thing.kind: thing for thing in scene.things if thing.kind not in request.hidden}
    things |= {kind: Thing(kind) for kind in request.shown if kind not in things}
    result = replace(
        scene,
        things=tuple(things.values()),
        time=request.time or scene.time,
        weather=request.weather or scene.weather,
    )
    for tint in request.tints:
        result = _tinted(result, tint)
    return result


def _tinted(scene: Scene, tint: Tint) -> Scene:
    target = tint.target or next(iter(scene.subjects), "sky")
    if target == "sea":
        return replace(scene, sea=tint.colour)
    if target == "sky":
        return replace(scene, sky=tint.colour)
    return replace(scene, things=tuple(_coloured(each, tint) if each.kind == target else each for each in scene.things))


def _coloured(thing: Thing, tint: Tint) -> Thing:
    return replace(thing, accent=tint.colour) if tint.is_accent else replace(thing, colour=tint.colour)


def _kind(mention: Mention) -> str:
    """The kind of thing that a word names, directly or by one of its parts; empty for any other word."""
    return mention.value if mention.role == "kind" else _OWNERS.get(mention.value, ("", False))[0]


def _verb(text: str, found: Sequence[Mention], mention: Mention) -> str:
    """The last verb before a word in its clause; in Chinese with the object in front, the first verb behind it."""
    verbs = [each for each in found if each.role == "verb" and each.clause == mention.clause]
    before = [verb.value for verb in verbs if verb.start < mention.start]
    if before or not _OBJECT_FIRST.search(text, 0, mention.start):
        return before[-1] if before else ""
    return next((verb.value for verb in verbs), "")


def _tints(text: str, found: Sequence[Mention]) -> Iterator[Tint]:
    """Each colour with its target, except colours that something should no longer have."""
    for before, each in pairwise((None, *found)):
        if each and each.role == "colour" and not (before and before.role == "former"):
            target = _target(text, found, each)
            owner, is_accent = _OWNERS.get(target, (target, False))
            yield Tint(owner, each.value, is_accent)


def _target(text: str, found: Sequence[Mention], colour: Mention) -> str:
    """The target of a colour: the word right behind it, else the last before it in its clause, else the next."""
    named = [each for each in found if each.role in {"kind", "part"} and each.clause == colour.clause]
    behind = [each for each in named if each.start >= colour.end]
    if behind and _BETWEEN.fullmatch(text, colour.end, behind[0].start):
        return behind[0].value
    before = [each for each in named if each.end <= colour.start]
    objects = [each for each in before if not (each.value in {"sea", "sky"} and _PLACE.search(text[: each.start]))]
    return next((each.value for each in (*reversed(objects), *reversed(before), *behind)), "")
