"""The parts of a message for a model, the artifact with an agent's answer, approvals, and other agents' answers."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeVar

from a2a_serverless import AgentCallFailed, Message, Part, TaskState

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from a2a_serverless import Artifact, Task, TaskContext
    from a2a_serverless.domain.model import Json, JsonObject

ANSWER: Final = "answer"
"""The name of the artifact."""
Decision: TypeAlias = Literal["approve", "edit", "reject", "respond"]
T = TypeVar("T")
_WORDS: Final[dict[Decision, str]] = {
    "approve": "approve approved accept accepted yes y ok okay true tool-approved",
    "edit": "edit edited",
    "reject": "reject rejected deny denied ignore no n false tool-denied",
    "respond": "respond response",
}
_DECISIONS: Final = {word: decision for decision, words in _WORDS.items() for word in words.split()}
_HINTS: Final[dict[Decision, str]] = {
    "approve": "yes",
    "edit": "edit and the arguments as JSON",
    "reject": "no and why",
    "respond": "respond and the result",
}
APPROVAL: Final[JsonObject] = {"kind": "approval"}
"""The metadata of the question for an approval."""
REPEATS: Final = 3
"""How often a question is asked again whose answer cannot be read."""
UNREAD: Final = "The client has not given an answer that can be read."


class AnswerStream:
    """Emits the text of one model response while it arrives, in place of the former content of the artifact ``name``.

    The last piece waits for ``end``, which knows whether it is the last chunk of the answer.
    """

    def __init__(self, task: TaskContext, name: str = ANSWER) -> None:
        self._task = task
        self._name = name
        self._piece = ""
        self._append = False

    async def add(self, text: str) -> None:
        """Emits the piece before this one."""
        if text and self._piece:
            await self._emit(last=False)
        self._piece = text or self._piece

    async def end(self, *, last: bool) -> None:
        """Emits the last piece."""
        if self._piece:
            await self._emit(last=last)

    async def _emit(self, *, last: bool) -> None:
        await self._task.emit(self._name, self._piece, append=self._append, last=last)
        self._append = True


def text_in(part: Part) -> str | None:
    """The content of a text or a text file, data as JSON; None for any other file."""
    if part.kind == "data":
        return json.dumps(part.value, ensure_ascii=False)
    return part.text if part.text is not None else part.readable or None


@dataclass(frozen=True, slots=True)
class Approval:
    """A client's decision on an action: do it, do it with other arguments, do not, or take ``message`` as its result.

    ``message`` is why the client rejects, or the result. ``arguments`` are those of an edit, and ``action`` is the
    name of the action that an edit names, or "".
    """

    decision: Decision
    message: str = ""
    arguments: dict[str, Any] | None = None
    action: str = ""


class UnreadableAnswer(ValueError):
    """An answer is no decision, or not one that the action allows. The text tells the client the reason."""


async def ask_approval(
    task: TaskContext, question: str, data: Json, *, allowed: Collection[Decision] = ("approve", "reject")
) -> Approval:
    """Asks the client for its decision on an action, one of ``allowed``, which has "reject".

    ``question`` is a sentence, such as "May I call x?", to which the ways to answer are added; ``data`` is a data part
    for programs. An answer that ``read_approval`` cannot read is asked for again, see ``ask_until_read``; in the end it
    is a rejection. Approvals at once need a ``task.scope`` each.
    """
    parts = [Part(text=f"{question} {how_to_answer(allowed)}"), Part(data=data)]

    def read(answer: Message) -> Approval:
        return read_approval(data_or_text(answer), allowed)

    return await ask_until_read(task, parts, read, Approval("reject", UNREAD), is_approval=takes_yes_and_no(allowed))


async def ask_until_read(
    task: TaskContext, parts: Sequence[Part], read: Callable[[Message], T], otherwise: T, *, is_approval: bool
) -> T:
    """Asks the client, and asks again with the reason while ``read`` raises UnreadableAnswer, ``REPEATS`` times.

    Returns ``otherwise`` if no answer could be read. With ``is_approval`` the texts "yes" and "no" are answers, and the
    question's metadata says that it is an approval: then pages have a button for each.
    """
    question, metadata = list(parts), APPROVAL if is_approval else None
    for times in reversed(range(REPEATS + 1)):
        try:
            return read(await task.ask(question, metadata=metadata))
        except UnreadableAnswer as error:
            question = [Part(text=text_of_repeat(str(error), times)), *parts]
    return otherwise


def takes_yes_and_no(allowed: Collection[Decision]) -> bool:
    """Whether an action can be approved and rejected."""
    return {"approve", "reject"} <= {*allowed}


def answers_by_id(answer: Message, ids: Sequence[str]) -> dict[str, Any]:
    """The answers to several questions: a data part may have them by id; any other answer belongs to the first.

    Raises UnreadableAnswer for a data part that has other members beside ids.
    """
    data = answer.data()
    if not isinstance(data, dict) or not data.keys() & set(ids):
        return {ids[0]: data_or_text(answer)}
    if others := data.keys() - set(ids):
        raise UnreadableAnswer(f"No question that is open has the id {', '.join(others)}.")
    return data


def text_of_repeat(reason: str, times: int | None) -> str:
    """The text before a question that is asked again.

    ``times`` is how often it may be asked, this time included; None if it is asked until an answer can be read.
    """
    text = f"I cannot read the answer: {reason}"
    if times is None:
        return text
    rest = "This is the last time: an" if times == 1 else f"After {times} more, an"
    return f"{text} {rest} answer that I cannot read is a no."


def how_to_answer(allowed: Collection[Decision]) -> str:
    """A sentence with the answers to a question for these decisions."""
    *hints, last = [hint for decision, hint in _HINTS.items() if decision in allowed]
    return f"Answer {', '.join(hints)}, or {last}." if hints else f"Answer {last}."


def read_approval(answer: Json, allowed: Collection[Decision] = ("approve", "reject")) -> Approval:
    """The decision in a client's answer. Raises UnreadableAnswer.

    A text is a word for the decision, and after it the reason, the result, or the arguments as JSON. Data is such a
    text, true or false, or an object: ``approved`` or ``confirmed`` is true or false, or ``type`` or ``kind`` is a word
    for the decision. The reason or the result is in ``message``, ``reason`` or ``args``; arguments are in
    ``override_args``, ``args``, or in ``edited_action`` with the action's name. An object may have no other members.
    """
    if isinstance(answer, str):
        approval = Approval("respond", answer) if set(allowed) == {"respond"} else _read_text(answer)
    elif isinstance(answer, bool):
        approval = Approval("approve" if answer else "reject")
    elif isinstance(answer, dict):
        approval = _read_members({name: value for name, value in answer.items() if value is not None})
    else:
        raise UnreadableAnswer("It is no text and no object.")
    if approval.decision not in allowed:
        raise UnreadableAnswer(f"The decision {approval.decision!r} is not possible here. {how_to_answer(allowed)}")
    return approval


def _read_text(text: str) -> Approval:
    word, rest = _split(text)
    decision = _DECISIONS.get(word)
    if decision is None:
        raise UnreadableAnswer("It does not begin with a yes or a no.")
    if decision == "edit":
        return _approval(decision, "", _load(rest))
    return _approval(decision, rest if rest.strip(".! ").lower() not in {"please", "thanks"} else "", None)


def _split(text: str) -> tuple[str, str]:
    """The first word, and the text after it."""
    match = re.match(r"\s*([\w-]+)[\s.,:;!-]*", text)
    return (match[1].lower(), text[match.end() :].strip()) if match else ("", text)


def _load(text: str) -> Any:  # noqa: ANN401 - any JSON value
    try:
        return json.loads(text)
    except ValueError as error:
        raise UnreadableAnswer('The arguments after "edit" are no JSON.') from error


def _read_members(members: dict[str, Any]) -> Approval:
    """The decision in an object, with each member that belongs to it."""
    rest = dict(members)
    names = [name for name in ("approved", "confirmed", "type", "kind") if name in members]
    value = rest.pop(names[0]) if names else None
    decision: Decision | None = None
    if isinstance(value, bool):
        decision = "approve" if value else "reject"
    elif isinstance(value, str) and names[0] in {"type", "kind"}:
        decision = _DECISIONS.get(value.lower())
    if decision is None:
        raise UnreadableAnswer('It is an object without a decision, such as {"approved": true}.')
    texts = [rest.pop(name) for name in ("message", "reason", "args") if isinstance(rest.get(name), str)]
    edits = [rest.pop(name) for name in ("override_args", "edited_action", "args") if isinstance(rest.get(name), dict)]
    if rest or len(texts) > 1 or len(edits) > 1:
        raise UnreadableAnswer(f"I do not know what to do with the members {', '.join(members)} of the object.")
    return _approval(decision, *(texts or [""]), *(edits or [None]))


def _approval(decision: Decision, message: str, arguments: Any) -> Approval:  # noqa: ANN401 - any JSON value
    """The decision, with the message and the arguments that it needs and no others."""
    if arguments is not None and not isinstance(arguments, dict):
        raise UnreadableAnswer("The arguments are no object.")
    if decision == "approve" and arguments is not None:
        decision = "edit"
    if (decision == "edit") is (arguments is None):
        raise UnreadableAnswer("Arguments belong to an edit, and an edit has arguments.")
    if message and decision in {"approve", "edit"}:
        raise UnreadableAnswer("There is more text than a yes. Answer yes alone, or no and why.")
    if decision == "respond" and not message:
        raise UnreadableAnswer("The result is empty.")
    match arguments:
        case {"name": str(action), "args": dict(edited)} | {"action": str(action), "args": dict(edited)}:
            return Approval(decision, message, edited, action)
    return Approval(decision, message, arguments)


def content_of(answer: Task | Message) -> Json:
    """The answer of another agent: data or text, or a list of both. Raises AgentCallFailed if its task failed."""
    if isinstance(answer, Message):
        return data_or_text(answer)
    text = answer.status.message.text() if answer.status.message else ""
    if answer.status.state is not TaskState.COMPLETED:
        raise AgentCallFailed(f"The task of the other agent is {answer.status.state}: {text}")
    match [data_or_text(artifact) for artifact in answer.artifacts]:
        case []:
            return text
        case [content]:
            return content
        case contents:
            return contents


def data_or_text(holder: Message | Artifact) -> Json:
    """The first data part, whose value may be None; or else the text."""
    return next((part.value for part in holder.parts if part.kind == "data"), holder.text())
