"""What a picture request asks for, read off its recognised words: what to show, hide, colour and change."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, cast

from a2a_serverless.domain.scene_words import (
    Colour,
    Kind,
    Mention,
    Role,
    Time,
    Waves,
    Weather,
    recognise,
    unrecognised,
)

Target: TypeAlias = Kind | Literal["sea", "sky"] | None

MOST_READ: Final = 2_000
PRIMARY: Final[frozenset[Kind]] = frozenset({"sailboat", "lighthouse", "island", "mountains", "whale"})
_OWNERS: Final[dict[str, tuple[Kind, bool]]] = {
    "hull": ("sailboat", False),
    "sails": ("sailboat", True),
    "stripes": ("lighthouse", True),
}
_FORMER: Final = re.compile(r"(?:\b(?:from|instead of|rather than|not)(?: the)?\s+|从|由|不是|不要)$", re.IGNORECASE)
_JOINT: Final = re.compile(r"\s*(?:and|&|和|与|、|/)?\s*", re.IGNORECASE)
_ATTRIBUTE: Final = re.compile(
    r"\s*(?:的|colou?red|and)?\s*(?!(?:the|a|an|to|on|in|at|for|is|are|be|with|of)\b)(?:[a-z]+\s+)?"
)
_PLACE: Final = re.compile(r"\b(?:on|in|at|by|over|under|above|across)\s+(?:the\s+)?$", re.IGNORECASE)
_DEFINITE: Final = re.compile(r"(?:\b(?:the|that|this|its)\s+(?:[a-z]+\s+)?|把|将|那)$", re.IGNORECASE)
# Of the text backwards: forwards, every "a" would be tried to the end.
_INDEFINITE_BACKWARDS: Final = re.compile(r"(?:\s+[a-z]+)*?\s+(?:a|na)\b", re.IGNORECASE)
_OBJECT_FIRST: Final = re.compile(r"把|将")
_EMPTY: Final = re.compile(
    r"\b(?:please|can|could|would|you|i|want|like|need|me|us|my|generate|create|make|draw|paint|render|produce|give|show|"
    r"design|sketch|illustrate|modify|change|turn|set|let|be|is|are|to|of|on|in|at|by|over|under|near|above|beside|"
    r"behind|and|or|but|the|a|an|some|his|her|its|their|there|where|who|which|for|from|into|as|so|very|beautiful|nice|"
    r"pretty|lovely|big|small|little|large|tiny|huge|old|new|bright|dark|distant|far|away|open|high|low|left|right|front|"
    r"background|foreground|scene|scenery|landscape|seascape|view|photo|picture|image|art|artwork|illustration|style|"
    r"full|shining|sailing|flying|swimming|floating|glowing|time|during|while|through|across|along|horizon|hi|hello)\b"
    r"|[请帮我你给画生成创建制作绘一张幅个只艘条座片图像片画面的了在上下中里边旁有和与及把将改成变为是让要想能可以吗吧呢这那美丽漂亮"
    r"大小远近方处景色风光照着飞游着]|[\W\d_]",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Tint:
    """A colour and what is to have it (None: "it"). ``accent`` is the second colour of a thing: sails, stripes."""

    target: Target
    colour: Colour
    accent: bool = False


@dataclass(frozen=True, slots=True)
class PictureRequest:
    """What was understood. ``definite`` are the things that the words take to be in the picture already."""

    shown: tuple[Kind, ...]
    hidden: tuple[Kind, ...]
    added: frozenset[Kind]
    definite: frozenset[Kind]
    counts: dict[Kind, str]
    tints: tuple[Tint, ...]
    time: Time | None
    weather: Weather | None
    waves: Waves | None
    asks_colour: bool
    is_seascape: bool
    is_foreign: bool


def read_request(text: str) -> PictureRequest:
    """What the first ``MOST_READ`` characters of ``text`` ask for."""
    text = text[:MOST_READ]
    mentions = recognise(text)
    kinds = [*_kinds(text, mentions)]
    return PictureRequest(
        shown=tuple(dict.fromkeys(kind for kind, verb, _ in kinds if verb != "remove")),
        hidden=tuple(dict.fromkeys(kind for kind, verb, _ in kinds if verb == "remove")),
        added=frozenset(kind for kind, verb, _ in kinds if verb == "add"),
        definite=frozenset(kind for kind, _, mention in kinds if _DEFINITE.search(text[: mention.start])),
        counts=_counts(mentions),
        tints=tuple(_tints(text, mentions)),
        time=cast("Time | None", _last(mentions, "time", text)),
        weather=cast("Weather | None", _weather(mentions, text)),
        waves=cast("Waves | None", _last(mentions, "waves", text)),
        asks_colour=any(mention.role == "colouring" for mention in mentions),
        is_seascape=any(mention.value == "sea" for mention in mentions),
        is_foreign=any(mention.role == "other" for mention in mentions) or _EMPTY.sub("", unrecognised(text)) != "",
    )


def _kinds(text: str, mentions: Sequence[Mention]) -> Iterator[tuple[Kind, Role | None, Mention]]:
    """Every thing that is named, or one of its parts, with the verb that rules it."""
    for index, mention in enumerate(mentions):
        if mention.role == "kind":
            yield cast("Kind", mention.value), _verb(text, mentions, index), mention
        elif mention.value in _OWNERS:
            yield _OWNERS[mention.value][0], None, mention


def _verb(text: str, mentions: Sequence[Mention], index: int) -> Role | None:
    """The last verb before it in its clause; in Chinese with the object in front ("把海鸥去掉") the first behind it."""
    clause = mentions[index].clause
    before = [
        mention
        for mention in mentions[:index]
        if mention.clause == clause and mention.role in {"add", "remove", "kind"}
    ]
    verbs = [mention for mention in before if mention.role != "kind"]
    if verbs:
        far = before[-1].role == "kind"
        return "add" if far and _INDEFINITE_BACKWARDS.match(text[: mentions[index].start][::-1]) else verbs[-1].role
    behind = (
        mention.role for mention in mentions[index:] if mention.clause == clause and mention.role in {"add", "remove"}
    )
    return next(behind, None) if _OBJECT_FIRST.search(text[: mentions[index].start]) else None


def _counts(mentions: Sequence[Mention]) -> dict[Kind, str]:
    counts: dict[Kind, str] = {}
    for index, mention in enumerate(mentions):
        following = (other for other in mentions[index:] if other.role == "kind" and other.clause == mention.clause)
        counted = next(following, None) if mention.role == "number" else None
        if counted:
            counts[cast("Kind", counted.value)] = mention.value
    return counts


def _last(mentions: Sequence[Mention], role: Role, text: str) -> str | None:
    found = [
        mention.value
        for i, mention in enumerate(mentions)
        if mention.role == role and _verb(text, mentions, i) != "remove"
    ]
    return found[-1] if found else None


def _weather(mentions: Sequence[Mention], text: str) -> str | None:
    """The weather that is asked for; clear when one is only asked away."""
    wanted = _last(mentions, "weather", text)
    return wanted or ("clear" if any(mention.role == "weather" for mention in mentions) else None)


def _tints(text: str, mentions: Sequence[Mention]) -> Iterator[Tint]:
    for group in _colour_groups(text, mentions):
        target = _target(text, mentions, group)
        owner, accent = _OWNERS.get(target, (target, False)) if target else (None, False)
        pair = [cast("Colour", mention.value) for mention in group[:2]]
        yield Tint(cast("Target", owner), pair[0], accent and len(pair) == 1)
        yield from (Tint(cast("Target", owner), colour, accent=True) for colour in pair[1:])


def _colour_groups(text: str, mentions: Sequence[Mention]) -> Iterator[list[Mention]]:
    """Colours that stand together ("red and white"), without those that something has no longer."""
    group: list[Mention] = []
    for mention in mentions:
        if mention.role != "colour" or _FORMER.search(text[: mention.start]):
            continue
        if group and (mention.clause != group[-1].clause or not _JOINT.fullmatch(text[group[-1].end : mention.start])):
            yield group
            group = []
        group.append(mention)
    if group:
        yield group


def _target(text: str, mentions: Sequence[Mention], group: Sequence[Mention]) -> str | None:
    """What a colour belongs to: the word right behind it, else the last before it in its clause, else the next."""
    first, last = group[0], group[-1]
    named = [m for m in mentions if m.clause == first.clause and (m.role in {"kind", "part"})]
    behind = next((mention for mention in named if mention.start >= last.end), None)
    if behind and _ATTRIBUTE.fullmatch(text[last.end : behind.start].lower()):
        return behind.value
    before = [m for m in named if m.end <= first.start]
    object_ = [m for m in before if not (m.value in {"sea", "sky"} and _PLACE.search(text[: m.start]))] or before
    return object_[-1].value if object_ else behind.value if behind else None
