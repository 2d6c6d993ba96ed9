"""The agents of the transcripts, and what their client does: one play of each kind of act that is stored."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from a2a_serverless import Agent, AgentCallFailed, Retry, Step, TaskFailed, TaskRejected
from a2a_serverless.domain.agent_errors import StepConflict
from a2a_serverless.protocol.v1 import Message, Part, Role, Task
from tests.echo import agent_of

if TYPE_CHECKING:
    from a2a_serverless import TaskContext
    from a2a_serverless.domain.task_context import MessageContent
    from tests.transcripts.play import Client

Work = Callable[["TaskContext"], Awaitable[Any]]
Script = Callable[["Client"], None]
TRIES: Final[Counter[str]] = Counter()
"""How often each of ``flaky``'s steps was tried, in this play."""
FILE: Final = {"raw": "aGVsbG8=", "mediaType": "text/plain", "filename": "a.txt"}


@dataclass(frozen=True)
class Play:
    """An agent with its helpers, and what its client does. ``run_ms`` is the platform's time limit of a run."""

    agents: tuple[Agent, ...]
    script: Script
    run_ms: int = 900_000


async def write(name: str, seconds: float = 0.5) -> str:
    await asyncio.sleep(seconds)
    return f"{name}. "


def roll() -> int:
    TRIES["roll"] += 1
    return TRIES["roll"]


def text_of(answer: Task | Message) -> str:
    """The text of a called agent's artifacts, or of its message."""
    return answer.text() if isinstance(answer, Message) else "".join(one.text() for one in answer.artifacts)


# ---- Steps


async def steps(task: TaskContext) -> None:
    for name in ("one", "two", "three"):
        await task.emit("document.md", await task.step(name, write, name), append=True, last=name == "three")


async def repeated(task: TaskContext) -> str:
    rolled = [await task.step(Step("roll", repeat=True), roll) for _ in range(3)]
    return f"{rolled}, and {await task.step('last', write, 'last')}"


async def nested(task: TaskContext) -> str:
    async def outer() -> list[str]:
        return [await task.step(f"inner {at}", write, f"inner {at}") for at in (1, 2)]

    return " ".join([*await task.step("outer", outer), await task.step("beside", write, "beside")])


async def parallel(task: TaskContext) -> None:
    async def branch(name: str, seconds: float) -> None:
        await task.emit(f"{name}.md", await task.step(name, write, name, seconds), last=True)

    await asyncio.gather(branch("slow", 3), branch("quick", 1), branch("middle", 2))


async def raised(task: TaskContext) -> str:
    for _ in range(3):
        try:
            return await task.step("flaky", flaky, "flaky", 2)
        except ValueError as error:
            await task.report_progress(f"{error}")
    return "never"


async def flaky(name: str, times: int) -> str:
    await asyncio.sleep(0.3)
    TRIES[name] += 1
    if TRIES[name] <= times:
        raise ValueError(f"try {TRIES[name]}")
    return f"done at try {TRIES[name]}"


async def retried(task: TaskContext) -> None:
    async def says() -> str:
        await task.emit("draft", f"draft {TRIES['says'] + 1}, ", append=True)
        return await flaky("says", 1)

    await task.emit("result", await task.step(Step("says", retry=Retry()), says), last=True)


async def conflicts(task: TaskContext) -> str:
    await task.step("same", write, "first")
    try:
        await task.step("same", write, "second")
    except StepConflict:
        return "A name is used once."
    return "never"


# ---- What clients see


async def chunks(task: TaskContext) -> None:
    for at in range(6):
        await task.emit("log", f"{at} ", append=True, last=at == 5)
        await asyncio.sleep(0.2)
    await task.emit("data", {"rows": [1, 2.5, None, True]}, description="Rows", metadata={"by": "us"}, last=True)
    await task.emit("page", "<p>海</p>", media_type="text/html", extensions=["urn:example"], last=True)


async def emits_in_steps(task: TaskContext) -> str:
    async def draft() -> str:
        for at in range(3):
            await task.emit("draft", f"{at} ", append=at > 0, last=at == 2)
            await asyncio.sleep(1)
        return "drafted"

    said = await task.step("draft", draft)
    answer = await task.ask("Is it good?")
    return f"{said}: {answer.text()}"


async def progress(task: TaskContext) -> None:
    contents: tuple[MessageContent, ...] = ("a third", "a third", {"percent": 66})
    for content in contents:
        await task.report_progress(content, metadata={"phase": "work"})
        await asyncio.sleep(1)


async def files(task: TaskContext) -> None:
    content = await task.read_file(task.message.parts[-1])
    await task.emit("copy", content, media_type="application/octet-stream", last=True)
    await task.emit("link", [Part(url="https://example.com/a", media_type="image/png")], last=True)


async def answers(task: TaskContext) -> dict[str, Any]:
    return {"text": task.text(), "data": task.data(), "owner": task.caller.owner}


async def usage(task: TaskContext) -> None:
    async def spend() -> None:
        await task.record_usage("small", input_tokens=10, output_tokens=2)
        await task.record_usage("large", cost_usd=0.25)

    await task.step("spend", spend)
    await task.record_usage("small", input_tokens=5)
    await task.ask("More?")
    await task.record_usage("small", input_tokens=5)


async def values(task: TaskContext) -> str:
    for store in (task.store, task.conversation):
        version = await store.put("a/b", {"n": 1})
        await store.put("a/b", {"n": 2}, version=version)
        await store.put("gone", b"\x00")
        await store.delete("gone")
    found = [*await task.store.list(), *await task.conversation.list()]
    return ", ".join(f"{one.key}={one.value!r}" for one in found)


# ---- Questions


async def asks(task: TaskContext) -> None:
    colour = await task.step("prepare", write, "prepared") + (await task.ask("Which colour?")).text()
    size = await task.ask({"question": "Which size?"}, metadata={"of": "2"})
    await task.emit("picture", f"{colour}, {size.text()}", last=True)


async def asks_again(task: TaskContext) -> str:
    return " ".join([(await task.ask("Go on?")).text() for _ in range(2)])


async def signs_in(task: TaskContext) -> str:
    answer = await task.ask("Sign in at https://example.com/", sign_in=True)
    return f"Welcome. {answer.text()}"


# ---- Other agents


async def calls(task: TaskContext) -> None:
    card = await task.get_card("steps")
    document = await task.call("write", "steps", task.text())
    await task.emit("document", f"{card.name}: {text_of(document)}", last=True)


async def calls_many(task: TaskContext) -> str:
    found = await task.find_agents("s")
    answers = await asyncio.gather(*(task.call(f"ask {name}", name, "go") for name in sorted(found)[:2]))
    return "; ".join(text_of(one) for one in answers)


async def relays_a_question(task: TaskContext) -> str:
    return text_of(await task.call("paint", "asks", "go"))


async def calls_too_long(task: TaskContext) -> str:
    late = await task.call("wait", "slow", "go", timeout_s=5)
    return f"the call is {late.status.state}" if isinstance(late, Task) else "never"


async def calls_nobody(task: TaskContext) -> str:
    try:
        await task.call("nobody", "nobody", "go")
    except AgentCallFailed as error:
        return f"{error}"
    return "never"


async def slow(task: TaskContext) -> None:
    for at in range(20):
        await task.step(f"wait {at}", asyncio.sleep, 4)


async def writes_long(task: TaskContext) -> None:
    async def section(number: int) -> str:
        for at in range(4):
            await task.emit(f"section {number}", f"{at} ", append=at > 0, last=at == 3)
            await asyncio.sleep(1)
        return f"{number}"

    for number in range(3):
        await task.step(f"section {number}", section, number)


# ---- Ends


async def fails(task: TaskContext) -> None:
    await task.emit("half", "half of it")
    raise TaskFailed({"reason": "no paper", "at": task.text()})


async def breaks(task: TaskContext) -> None:
    await task.step("before", write, "before")
    raise RuntimeError("a secret of the author's")


async def rejects(task: TaskContext) -> None:
    raise TaskRejected(f"Not {task.text()}.")


async def remembers(task: TaskContext) -> Message:
    mine, others = await task.get_task(), await task.get_previous_tasks()
    text = f"{len(mine.history)} messages, {[other.status.state for other in others]}"
    return Message(message_id="own", role=Role.AGENT, parts=(Part(text=text),), metadata={"by": "us"})


# ---- What clients do


def stream(client: Client) -> None:
    client.stream("hello")
    client.get()


def answered(*texts: str) -> Script:
    def script(client: Client) -> None:
        client.stream("hello")
        for text in texts:
            client.send(text)
        client.get()
        client.subscribe()

    return script


def waited(client: Client) -> None:
    """Sends without a stream: twice the same message, and one more in the same context."""
    client.send("hello")
    client.send("hello", again=True)
    client.begin()
    client.send("hello")
    client.list()


def canceled(client: Client) -> None:
    client.send("hello", wait=False)
    client.later(6_000, client.cancel)
    client.settle()
    client.cancel()
    client.get()


def followed_up(client: Client) -> None:
    client.send("hello", wait=False)
    client.later(700, lambda: client.send("and more", wait=False))
    client.settle()
    client.get()


def with_file(client: Client) -> None:
    client.stream("hello", FILE)
    client.get()


def _play(work: Work, script: Script = stream, *helpers: Work, **options: Any) -> tuple[str, Play]:
    agents = tuple(agent_of(one, one.__name__) for one in (work, *helpers))
    return work.__name__, Play(agents, script, **options)


def _inline(work: Work) -> Play:
    return Play((replace(agent_of(work, work.__name__), runs="inline"),), waited)


PLAYS: Final[dict[str, Play]] = dict(
    [
        *map(_play, (steps, repeated, nested, parallel, raised, retried, conflicts, chunks, progress, values)),
        *map(_play, (calls_nobody, fails, breaks, rejects)),
        _play(emits_in_steps, answered("yes")),
        _play(files, with_file),
        _play(answers, waited),
        _play(usage, answered("yes")),
        _play(asks, answered("red", "large")),
        _play(asks_again, answered("yes", "yes")),
        _play(signs_in, answered("done")),
        _play(calls, stream, steps),
        _play(calls_many, stream, steps, chunks),
        _play(relays_a_question, answered("red", "large"), asks),
        _play(calls_too_long, stream, slow),
        _play(slow, canceled),
        _play(remembers, waited),
    ]
) | {
    "handed over": Play((agent_of(writes_long, "slow"),), stream, run_ms=25_500),
    "followed up": Play((agent_of(steps, "steps"),), followed_up),
    "inline message": _inline(answers),
    "inline task": _inline(steps),
}
