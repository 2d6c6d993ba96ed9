"""Scenes from requests, in English or Chinese: a new one from words, a changed one from more words.

A scene travels as a data part beside its picture, so that a later "make it red" can find what "it" is.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from a2a_serverless.domain.scene_model import (
    MOST_ALIKE,
    Scene,
    Thing,
    file_name,
    scene_from_json,
    scene_to_json,
)
from a2a_serverless.domain.scene_requests import MOST_READ, PRIMARY, PictureRequest, Tint, read_request
from a2a_serverless.domain.scene_speech import Ambiguity, describe, not_there, what_change, which, which_colour
from a2a_serverless.domain.writing import language_of

if TYPE_CHECKING:
    from a2a_serverless.domain.scene_words import Kind

__all__ = [
    "Ambiguity",
    "Scene",
    "Thing",
    "describe",
    "file_name",
    "refine",
    "scene_from_json",
    "scene_from_text",
    "scene_to_json",
]

_USUAL_COUNTS: Final[dict[Kind, int]] = {"birds": 5}
_SINGLES: Final[frozenset[Kind]] = frozenset({"sailboat", "lighthouse", "whale"})


def scene_from_text(text: str) -> Scene:
    """The scene that a request describes. It never fails: what cannot be painted becomes a scene of words."""
    words = " ".join(text[:MOST_READ].split())
    request = read_request(words)
    scenery = request.shown or request.is_seascape or request.time
    known = not PRIMARY.isdisjoint(request.shown) or bool(scenery and not request.is_foreign)
    return _changed(Scene(words), request) if known else Scene(words, is_known=False)


def refine(scene: Scene, text: str) -> Scene | Ambiguity:
    """The scene with the changes that ``text`` asks for, or what has to be asked before."""
    if not scene.is_known:
        fresh = scene_from_text(text)
        return fresh if fresh.is_known else what_change((), language_of(text))
    request = read_request(text)
    return _doubt(scene, request, text) or _changed(scene, request)


def _doubt(scene: Scene, request: PictureRequest, text: str) -> Ambiguity | None:
    there = {thing.kind for thing in scene.things}
    named = [kind for kind in request.shown if kind in there]
    if missing := [kind for kind in _taken_for_there(request) if kind not in there]:
        return not_there(missing[0], language_of(text), to_hide=missing[0] in request.hidden)
    if any(tint.target is None for tint in request.tints) and len(_candidates(scene)) != 1:
        return which(_candidates(scene), language_of(text))
    if request.asks_colour and not request.tints:
        return which_colour(named or _candidates(scene), language_of(text))
    if not request.tints and _changed(scene, request) == scene:
        return what_change(named, language_of(text))
    return None


def _taken_for_there(request: PictureRequest) -> list[Kind]:
    changed = [kind for kind in request.shown if kind in request.definite and kind not in request.added]
    return [*request.hidden, *changed]


def _changed(scene: Scene, request: PictureRequest) -> Scene:
    things = {thing.kind: thing for thing in scene.things if thing.kind not in request.hidden}
    for kind in request.shown:
        things[kind] = _counted(things.get(kind), kind, request.counts.get(kind))
    changed = replace(
        scene,
        things=tuple(things.values()),
        time=request.time or ("night" if "moon" in request.shown and not scene.things else scene.time),
        weather=request.weather or scene.weather,
        waves=request.waves or ("rough" if request.weather == "storm" else scene.waves),
    )
    for tint in request.tints:
        changed = _tinted(changed, tint)
    return changed


def _counted(thing: Thing | None, kind: Kind, count: str | None) -> Thing:
    thing = thing or Thing(kind, count=0 if count == "+1" else _USUAL_COUNTS.get(kind, 1))
    if count == "+1":
        return replace(thing, count=min(thing.count + 1, MOST_ALIKE))
    return replace(thing, count=int(count)) if count else thing


def _tinted(scene: Scene, tint: Tint) -> Scene:
    """The colour where it belongs; "it" is the one thing that can be meant, or else the sky."""
    target = tint.target or next(iter(_candidates(scene)), "sky")
    if target == "sea":
        return replace(scene, sea=tint.colour)
    if target == "sky":
        return replace(scene, sky=tint.colour)
    things = (_painted(thing, tint) if thing.kind == target else thing for thing in scene.things)
    return replace(scene, things=tuple(things))


def _painted(thing: Thing, tint: Tint) -> Thing:
    return replace(thing, accent=tint.colour) if tint.accent else replace(thing, colour=tint.colour)


def _candidates(scene: Scene) -> list[Kind]:
    """What "it" may mean."""
    return [thing.kind for thing in scene.things if thing.kind in _SINGLES]
