"""The travel agent: a flight and bookings based on it. A demonstration of parallel follow-ups ("Life of a Task").

It books nothing, and says so in every booking. A real agent would search for offers; this one uses the request alone,
so the same request gives the same booking. A hotel and an activity are based on a flight, a spa visit on a hotel: each
is a task of its own in the same conversation. It finds the booking that it is based on, and asks if there is none or if
there may be several.

It answers questions about its abilities with a message, and bookings with a task (hybrid). A request that speaks of an
approval waits for it: the question is asked again each minute, and after ten minutes nothing is booked.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast

from a2a_serverless import Part, Skill, TaskContext, TaskRejected, agent
from a2a_serverless.domain.contents import references_in
from sample_agents.references import FoundArtifact, chosen, meant
from sample_agents.writing import language_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_serverless import Answer, Artifact, Message
    from a2a_serverless.domain.model import Json, JsonObject
    from sample_agents.writing import Language

Kind: TypeAlias = Literal["flight", "hotel", "snowmobile", "spa"]

QUESTIONS: Final = 5
APPROVAL_S: Final = 600
REMINDER_S: Final = 60
_STANDS_ON: Final[dict[Kind, Kind]] = {"hotel": "flight", "snowmobile": "flight", "spa": "hotel"}
# Kinds that are based on others come first: "add a spa to the hotel booking" is about a spa.
_WORDS: Final[dict[Kind, re.Pattern[str]]] = {
    "spa": re.compile(r"\b(?:spa|sauna|massage|wellness)\b|水疗|桑拿|按摩", re.IGNORECASE),
    "snowmobile": re.compile(r"\bsnow\s?mobil\w*|雪地摩托", re.IGNORECASE),
    "hotel": re.compile(r"\b(?:hotel|room|accommodation|stay)\b|酒店|宾馆|旅馆|住宿", re.IGNORECASE),
    "flight": re.compile(r"\b(?:flight|fly|plane)\b|航班|机票|飞往|飞到|飞去", re.IGNORECASE),
}
_NAMES: Final[dict[Kind, tuple[str, str]]] = {
    "flight": ("flight", "航班"),
    "hotel": ("hotel", "酒店"),
    "snowmobile": ("snowmobile tour", "雪地摩托活动"),
    "spa": ("spa visit", "水疗"),
}
_NAME: Final = r"[A-Z][\w'’-]+(?:\s+[A-Z][\w'’-]+){0,2}"
_HAN: Final = r"[\u3400-\u9fff]{2,8}"
_TO: Final = re.compile(
    rf"\b(?:[Tt]o|[Ff]or)\s+({_NAME})|(?:飞往|飞到|飞去|前往|去往|到|去)({_HAN}?)(?=的|机|航|出|旅|[，。,.\s]|$)"
)
_PLACE: Final = re.compile(rf"({_NAME}|{_HAN})")
_FROM: Final = re.compile(rf"\b[Ff]rom\s+({_NAME})|从({_HAN}?)(?=飞|到|出|去)")
_DATE: Final = re.compile(r"\b(\d{4})-(\d{1,2})-(\d{1,2})\b|(\d{4})年(\d{1,2})月(\d{1,2})日")
_APPROVAL: Final = re.compile(r"\bapprov|批准", re.IGNORECASE)
_YES: Final = re.compile(r"\s*(?:yes|ok|好|是|可以|同意|批准)", re.IGNORECASE)
_DEMONSTRATION: Final[dict[Language, str]] = {
    "en": "This is a demonstration; nothing was booked.",
    "zh": "这是演示，并未真正预订。",
}
_OFFER: Final[dict[Language, str]] = {
    "en": "I can book a flight, then a hotel and a snowmobile tour for it, then a spa visit at the hotel. "
    'Say for example "Book a flight to Helsinki". ' + _DEMONSTRATION["en"],
    "zh": "我可以预订航班，再按航班预订酒店和雪地摩托活动，再给酒店加订水疗。例如：“预订飞往赫尔辛基的航班”。"
    + _DEMONSTRATION["zh"],
}


@agent(
    id="travel",
    name="Travel desk (demonstration)",
    description="Pretends to book flights, hotels, snowmobile tours and spa visits that build on each other. "
    "A demonstration of parallel follow-up tasks, in English or Chinese; nothing is booked.",
    skills=[
        Skill(
            id="book-trip",
            name="Book the parts of a trip",
            description="Each booking is a task. After that of a flight, say: Book a hotel for it.",
            tags=("travel", "booking", "demonstration"),
            examples=("Book a flight to Helsinki.", "Book a flight to Oslo, if I approve.", "预订飞往赫尔辛基的航班"),
        )
    ],
    runs="inline",
    input_modes=("text/plain",),
    output_modes=("application/json", "text/plain"),
)
async def travel(task: TaskContext) -> Answer:
    """Answers with a message, or emits one booking as a data part; the final message is the booking, too."""
    text = task.text()
    kind = _kind(text)
    if kind is None:
        return _OFFER[language_of(text)]
    base = await _base(task, _STANDS_ON[kind], text) if kind in _STANDS_ON else None
    booking = _stay(kind, text, base["booking"]) if base else await _flight(task, text)
    language = language_of(text)
    number = sha256(task.id.encode()).hexdigest()[:6].upper()  # the same in every run of the task
    booking |= {"reference": f"DEMO-{number}", "note": _DEMONSTRATION[language]}
    part = Part(data=booking, media_type="application/json", metadata=base["reference"] if base else None)
    words = _words(booking, language)
    if _APPROVAL.search(text) and not await _is_approved(task, words, language):
        return {"en": "Not booked, because nobody has approved it.", "zh": "没有预订，因为未获批准。"}[language]
    await task.emit(f"{kind}_booking.json", [part], last=True, description=words)
    return [Part(text=f"{words} {_DEMONSTRATION[language]}"), Part(data=booking, media_type="application/json")]


def _kind(text: str) -> Kind | None:
    return next((kind for kind, words in _WORDS.items() if words.search(text)), None)


async def _flight(task: TaskContext, text: str) -> dict[str, Any]:
    """A flight; asks for the destination when the request does not name one."""
    place, date = _found(_TO, text), _date(text)
    for _ in range(QUESTIONS):
        if place:
            return {"kind": "flight", "from": _found(_FROM, text), "place": place, "date": date}
        question = {"en": "Where would you like to fly to?", "zh": "您要飞往哪里？"}[language_of(text)]
        answer = (await task.ask(question)).text()
        place, date = _found(_TO, answer) or _found(_PLACE, answer), date or _date(answer)
    raise TaskRejected({"en": "I do not know where to fly to.", "zh": "不知道要飞往哪里。"}[language_of(text)])


async def _is_approved(task: TaskContext, words: str, language: Language) -> bool:
    """Whether the client says yes within ten minutes; each minute it is asked again."""
    question = {"en": f"May I book this? {words}", "zh": f"可以预订吗？{words}"}[language]
    try:
        answer = await task.ask(question, metadata={"kind": "approval"}, timeout_s=APPROVAL_S, remind_s=REMINDER_S)
    except TimeoutError:
        return False
    return bool(_YES.match(answer.text()))


def _stay(kind: Kind, text: str, booking: dict[str, Any]) -> dict[str, Any]:
    """A booking based on another one: at its place, and on its date unless the request names one."""
    return {
        "kind": kind,
        "place": booking["place"],
        "date": _date(text) or booking["date"],
        "for": booking["reference"],
    }


async def _base(task: TaskContext, kind: Kind, text: str) -> dict[str, Any]:
    """``booking``, ``words`` and ``reference`` of the earlier booking; asks when there is none, or several."""
    message = task.message

    async def snapshot() -> JsonObject:
        artifacts, is_guess = await meant(task, message, _is(kind))
        return {"guessed": is_guess, "bookings": [_told(one) for one in artifacts]}

    for number in range(QUESTIONS):
        looked: dict[str, Any] = await task.step(f"look {number}", snapshot)
        bookings: list[dict[str, Any]] = looked["bookings"]
        picked = None if looked["guessed"] else _picked(bookings, message, first=number == 0)
        if picked is not None:
            return bookings[picked]
        message = await task.ask(_question(kind, bookings, language_of(text)))
    raise TaskRejected(_none(kind, language_of(text)))


def _picked(bookings: list[dict[str, Any]], message: Message, *, first: bool) -> int | None:
    if len(bookings) == 1 and (first or references_in(message.parts) or message.reference_task_ids):
        return 0
    return chosen(message.text(), [one["words"] for one in bookings])


def _question(kind: Kind, bookings: list[dict[str, Any]], language: Language) -> str:
    if not bookings:
        return _none(kind, language)
    choices = " ".join(f"({number}) {one['words']}" for number, one in enumerate(bookings, 1))
    return f"哪一个{_NAMES[kind][1]}？{choices}" if language == "zh" else f"Which {_NAMES[kind][0]}? {choices}"


def _none(kind: Kind, language: Language) -> str:
    if language == "zh":
        return f"这个对话里没有{_NAMES[kind][1]}预订。请先预订，再告诉我。"
    return f"There is no {_NAMES[kind][0]} booking in this conversation. Book one first, then tell me."


def _is(kind: Kind) -> Callable[[Artifact], bool]:
    def is_booking(artifact: Artifact) -> bool:
        data = artifact.data()
        return isinstance(data, dict) and data.get("kind") == kind and {"place", "date", "reference"} <= data.keys()

    return is_booking


def _told(one: FoundArtifact) -> Json:
    booking = cast("dict[str, Json]", one.artifact.data())
    words = f"{booking['reference']}: {one.artifact.description}"
    return {"booking": booking, "words": words, "reference": one.reference.to_json()}


def _words(booking: dict[str, Any], language: Language) -> str:
    """A booking in one sentence."""
    name = _NAMES[cast("Kind", booking["kind"])]
    if language == "zh":
        where = f"{'飞往' if booking['kind'] == 'flight' else ''}{booking['place']}的{name[1]}"
        return f"{where}，{booking['date'] or '日期未定'}，编号{booking['reference']}。"
    where = f"{name[0].capitalize()} {'to' if booking['kind'] == 'flight' else 'in'} {booking['place']}"
    return f"{where}, {booking['date'] or 'date open'}, number {booking['reference']}."


def _found(pattern: re.Pattern[str], text: str) -> str | None:
    match = pattern.search(text)
    return next((group for group in match.groups() if group), None) if match else None


def _date(text: str) -> str | None:
    match = _DATE.search(text)
    if not match:
        return None
    year, month, day = (int(group) for group in match.groups() if group)
    return f"{year:04d}-{month:02d}-{day:02d}"
