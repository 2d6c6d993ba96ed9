"""The agents that A2A's conformance kits call. Only tests deploy them (``tests/manifests.py``).

The beginning of a message's id tells the 1.0 kit's agents what to do; the table below is the kit's own list. There is
one agent for each profile, because an agent's card decides which tests of that kit run. The 0.3 kit sends no such ids:
it needs a task that works for a while and then waits for its client, again and again. It reads the card only at the
root of the host, so its agent comes first. One more agent, for our own tests, gives files back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from a2a_serverless import AgentExtension, Part, Schedule, Skill, TaskContext, TaskRejected, agent

if TYPE_CHECKING:
    from a2a_serverless import Answer

Act = Callable[[TaskContext], Awaitable["Answer"]]

LONG_S: Final = 8.0
SHORT_S: Final = 2.0
TURN_S: Final = 3.0
REQUIRED: Final = AgentExtension("urn:a2a:tck:required-extension", "Every request has to name it.", required=True)
OPTIONAL: Final = AgentExtension("urn:a2a:tck:optional-extension", "Changes nothing.")
OLD_MODES: Final = ("text/plain", "application/json", "text", "file", "data")  # the 0.3 kit requires these words
_FILE: Final = Part(raw="T3V0cHV0IG9mIHRoZSBmaWxlLg==", media_type="text/plain", filename="output.txt")
_LINK: Final = Part(url="https://example.com/output.txt", media_type="text/plain", filename="output.txt")


async def _greet(task: TaskContext) -> Answer:
    return await task.step("greeting", str, "Hello from TCK")


async def _say(_: TaskContext) -> Answer:
    """Answers with a message instead of a task: it never uses the task."""
    return "Direct message response"


async def _reject(_: TaskContext) -> Answer:
    raise TaskRejected("rejected")


async def _ask(task: TaskContext) -> Answer:
    answer = await task.ask("What next?")
    while answer.message_id.startswith("tck-input-required"):
        answer = await task.ask("And then?")
    return await _act(answer.message_id)(task)


async def _sign_in(task: TaskContext) -> Answer:
    """Asks again after every answer: there is nowhere to sign in, and no answer authorizes anything (7.6.4)."""
    while True:
        await task.ask("Sign in. No answer counts as a sign-in.", sign_in=True)


async def _chunks(task: TaskContext) -> Answer:
    await task.emit("output", "chunk-1 ")
    await task.step("pause", asyncio.sleep, 0)  # without it, the chunks would be combined and sent as one
    await task.emit("output", "chunk-2", append=True, last=True)
    return None


async def _nothing(_: TaskContext) -> Answer:
    return None


def _emit(part: Part) -> Act:
    async def act(task: TaskContext) -> Answer:
        await task.emit("output", part)
        return None

    return act


def _wait(seconds: float) -> Act:
    async def act(task: TaskContext) -> Answer:
        await task.step("wait", asyncio.sleep, seconds)
        return None

    return act


ACTS: Final[dict[str, Act]] = {
    "tck-complete-task": _greet,
    "tck-message-response": _say,
    "tck-reject-task": _reject,
    "tck-input-required": _ask,
    "tck-auth-required": _sign_in,
    "tck-delayed-complete": _wait(SHORT_S),
    "tck-artifact-text": _emit(Part(text="Generated text content")),
    "tck-artifact-file": _emit(_FILE),
    "tck-artifact-file-url": _emit(_LINK),
    "tck-artifact-data": _emit(Part(data={"key": "value", "count": 42})),
    "tck-stream-001": _emit(Part(text="Stream hello from TCK")),
    "tck-stream-003": _emit(Part(text="Stream task lifecycle")),
    "tck-stream-ordering-001": _emit(Part(text="Ordered output")),
    "tck-stream-artifact-text": _emit(Part(text="Streamed text content")),
    "tck-stream-artifact-file": _emit(_FILE),
    "tck-stream-artifact-chunked": _chunks,
    "test-resubscribe-message-id": _wait(LONG_S),
}


def _act(message_id: str) -> Act:
    """The action for the longest known prefix of the id. Any other id gets none: the task completes at once."""
    prefixes = [prefix for prefix in ACTS if message_id.startswith(prefix)]
    return ACTS[max(prefixes, key=len)] if prefixes else _nothing


@agent(
    id="conformance",
    name="Conformance agent",
    description="Does what the tests of A2A's conformance kit for 1.0 ask for.",
    runs="inline",
    skills=[Skill("conform", "Conform", "Acts by the beginning of the message's id.", ("conformance",))],
    extended_skills=[Skill("confide", "Confide", "Is told of in the extended card only.", ("conformance",))],
)
async def full(task: TaskContext) -> Answer:
    """Does what the message asks for."""
    return await _act(task.message.message_id)(task)


@agent(
    id="conformance-0.3",
    name="Conformance agent",
    description="Does what the tests of A2A's conformance kit for 0.3 ask for.",
    input_modes=OLD_MODES,
    skills=[Skill("conform", "Conform", "Works for a while, then waits for its client.", ("conformance",))],
)
async def _old(task: TaskContext) -> None:
    """Works and asks, again and again; never ends by itself."""
    patient = task.message.message_id.startswith("test-resubscribe-message-id")
    turn = 0
    while True:
        turn += 1
        await task.step(f"turn {turn}", asyncio.sleep, LONG_S if patient else TURN_S)
        await task.ask("What next?")


@agent(
    id="conformance-files",
    name="Files agent",
    description="Gives each file of a message back as an artifact.",
    input_modes=("application/octet-stream",),
    output_modes=("application/octet-stream",),
    skills=[Skill("give-back", "Give back", "Reads a file and gives it back.", ("conformance",))],
)
async def files(task: TaskContext) -> None:
    """Reads each file and makes an artifact of its bytes."""
    for part in task.message.parts:
        await task.emit(part.filename or "file", await task.read_file(part), media_type="application/octet-stream")


old = replace(_old, extensions=(OPTIONAL,))
daily = (Schedule("daily", "0 7 * * ? *", "Work."),)
plain = replace(full, id="conformance-plain", streaming=False, push=False, extended_skills=(), schedules=daily)
extension = replace(full, id="conformance-extension", extensions=(REQUIRED,))

AGENTS: Final = (old, full, plain, extension, files)
