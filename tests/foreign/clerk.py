"""The agents that foreign clients call. A word of the message decides what the clerk does.

Many of these clients choose neither message ids nor metadata, and some send the whole conversation as one text: so the
last word that the clerk knows counts.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from a2a_serverless import Skill, TaskContext, TaskFailed, agent

if TYPE_CHECKING:
    from a2a_serverless import Answer

Act = Callable[[TaskContext], Awaitable["Answer"]]

CHUNKS: Final = ("Once upon a time ", "there was a clerk. ", "It answered.")
PICTURE: Final = b"a picture"
SECOND_CHUNK_S: Final = 5.0
SLOW_S: Final = 4.0
"""Longer than the server of the tests waits, and than its streams are open."""


def _word_after(word: str, task: TaskContext) -> str:
    words = task.text().split()
    return words[words.index(word) + 1]


async def _answer(_: TaskContext) -> Answer:
    return "The door is open."


async def _write(task: TaskContext) -> Answer:
    """Two artifacts, of which one comes in chunks, and no message after them."""
    await task.report_progress("I am writing.", percent=10)
    for number, chunk in enumerate(CHUNKS):
        await task.step(f"pause {number}", asyncio.sleep, 0)  # without it, the chunks would be combined
        await task.emit("story.md", chunk, append=number > 0, last=number == len(CHUNKS) - 1)
    await task.emit("title.txt", "The Clerk", last=True)
    return None


async def _report(task: TaskContext) -> Answer:
    """An artifact, and a message after it."""
    await task.emit("report.md", "All doors are open.", last=True)
    return "I have written a report."


async def _stream(task: TaskContext) -> Answer:
    """A chunk, and a second one as soon as the client has seen the first: then it makes the file that it names."""
    await task.emit("stream.txt", "first ")
    seen = await task.step("wait", _exists, _word_after("stream", task))
    await task.emit("stream.txt", "second" if seen else "unseen", append=True, last=True)
    return None


async def _exists(path: str) -> bool:
    end = time.monotonic() + SECOND_CHUNK_S
    while time.monotonic() < end:
        if Path(path).exists():  # noqa: ASYNC240 - a test's file
            return True
        await asyncio.sleep(0.01)
    return False


async def _ask(task: TaskContext) -> Answer:
    answer = await task.ask("Which colour?")
    return f"You chose {answer.text()}."


async def _remember(task: TaskContext) -> Answer:
    await task.conversation.put("word", _word_after("remember", task))
    return "I remember it."


async def _recall(task: TaskContext) -> Answer:
    stored = await task.conversation.get("word")
    return f"It was {stored.value!s}." if stored else "I remember nothing."


async def _fail(_: TaskContext) -> Answer:
    raise TaskFailed("The printer is out of paper.")


async def _wait(task: TaskContext) -> Answer:
    await task.step("wait", asyncio.sleep, 600)
    return "Nobody canceled it."


async def _be_slow(task: TaskContext) -> Answer:
    await task.step("work", asyncio.sleep, SLOW_S)
    return "It took a while."


async def _read(task: TaskContext) -> Answer:
    """A list of everything that the client sent."""
    found = [f"{part.kind} {part.media_type or '-'} {part.filename or '-'}" for part in task.message.parts]
    sizes = [f"{len(await task.read_file(part))} bytes" for part in task.message.parts if part.kind in {"raw", "url"}]
    return "; ".join([*found, *sizes])


async def _draw(task: TaskContext) -> Answer:
    await task.emit("picture.png", PICTURE, media_type="image/png", last=True)
    return None


async def _count(task: TaskContext) -> Answer:
    await task.emit("count.json", {"doors": 3}, last=True)
    return None


ACTS: Final[dict[str, Act]] = {
    "answer": _answer,
    "write": _write,
    "report": _report,
    "stream": _stream,
    "ask": _ask,
    "remember": _remember,
    "recall": _recall,
    "fail": _fail,
    "wait": _wait,
    "slow": _be_slow,
    "read": _read,
    "draw": _draw,
    "count": _count,
}


@agent(
    id="clerk",
    name="Clerk",
    description="Answers, writes, asks and remembers.",
    input_modes=("text/plain", "application/json", "application/octet-stream"),
    output_modes=("text/plain", "application/json", "image/png"),
    skills=[Skill("help", "Help", "Does what a word of the message says.", ("help",))],
)
async def clerk(task: TaskContext) -> Answer:
    """Does what the last known word says; asks if it knows none."""
    text = task.text()
    while not (known := [word for word in text.split() if word in ACTS]):
        text = (await task.ask("What shall I do?")).text()
    return await ACTS[known[-1]](task)


whole = replace(clerk, id="whole-clerk", whole_last_chunk=True)
"""The same, with the setting for clients that keep the last chunk of an artifact only."""


@agent(
    id="greeter",
    name="Greeter",
    description="Answers with a message instead of a task.",
    runs="inline",
    skills=[Skill("greet", "Greet", "Greets.", ("greet",))],
)
async def greeter(_: TaskContext) -> Answer:
    """Makes no task."""
    return "Good morning."


AGENTS: Final = (clerk, whole, greeter)
