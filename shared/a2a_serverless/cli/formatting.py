"""How tasks, events and cards look: to people as lines, to programs as the JSON of A2A 1.0."""

from collections.abc import Iterator
from datetime import UTC, datetime

from rich.text import Text

from a2a_serverless.cli.terminal import STYLES, Row, one_line, plain
from a2a_serverless.client import StreamResponse
from a2a_serverless.domain.card import AgentCard
from a2a_serverless.domain.events import ArtifactEvent, Event
from a2a_serverless.domain.model import Artifact, Json, Message, Part, Task, TaskState, TaskStatus
from a2a_serverless.domain.queries import Update
from a2a_serverless.domain.states import INTERRUPTED, TERMINAL
from a2a_serverless.wire import v1
from a2a_serverless.wire.operations import Operation

WIDTH = 60
_MARKS = dict.fromkeys(TERMINAL - {TaskState.COMPLETED}, "✗") | dict.fromkeys(INTERRUPTED, "?")
_MARKS[TaskState.COMPLETED] = "✓"


def task_json(task: Task) -> Json:
    """The task as GetTask gives it."""
    return v1.answer(Operation.GET, task)


def sent_json(sent: Task | Message) -> Json:
    """What SendMessage gives: an object with ``task`` or ``message``."""
    return v1.answer(Operation.SEND, sent)


def item_json(item: StreamResponse) -> Json:
    """An item of a stream: its number, and a StreamResponse."""
    content = item.content
    if isinstance(content, Update):
        response = v1.stream_item(content.event, content.task_id, content.context_id)
    else:
        response = v1.stream_item(content, "", "")
    return {"eventNumber": item.n, **response}


def item_line(item: StreamResponse) -> Text:
    """An item of a stream in one line, behind its number."""
    return Text.assemble(("    " if item.n is None else f"{item.n:>3} ", "dim"), _content_line(item.content))


def _content_line(content: Task | Message | Update) -> Text:
    if isinstance(content, Message):
        return Text(f"» {one_line(content.text(), WIDTH)}")
    if isinstance(content, Task):
        return status_line(content.status)
    return event_line(content.event)


def event_line(event: Event) -> Text:
    """An event in one line."""
    if isinstance(event, ArtifactEvent):
        return Text(f"+ {chunk_words(event.artifact)}")
    return status_line(TaskStatus(event.state, event.at, event.message))


def status_line(status: TaskStatus) -> Text:
    """A status in one line: its mark, its name, what the agent said."""
    line = Text.assemble((f"{_MARKS.get(status.state, '●')} {status.state}", STYLES.get(status.state, "")))
    if status.message:
        line.append(f"  {one_line(status.message.text(), WIDTH)}", "dim")
    return line


def artifact_json(artifact: Artifact) -> Json:
    """The artifact as a task of 1.0 has it."""
    return v1.DIALECT.print_artifact(artifact)


def chunk_words(artifact: Artifact) -> str:
    """Which artifact a chunk belongs to, and how much it brings."""
    return f"{one_line(artifact.name or artifact.artifact_id, WIDTH)}  {size_words(artifact)}"


def size_words(artifact: Artifact) -> str:
    """How much is in an artifact."""
    characters = len(artifact.text())
    files = sum(part.kind in {"raw", "url"} for part in artifact.parts)
    data = sum(part.kind == "data" for part in artifact.parts)
    words = [f"{characters:,} characters"] if characters else []
    words += [f"{count} {name}" for count, name in ((files, "file"), (data, "data")) if count]
    return ", ".join(words) or "empty"


def task_rows(task: Task) -> list[Row]:
    """What is known of a task, but for its content."""
    status = task.status
    return [
        ("Task", task.task_id),
        ("State", Text(status.state, STYLES.get(status.state, ""))),
        ("Since", moment(status.timestamp)),
        ("Context", task.context_id),
        *([("Message", plain(status.message.text()))] if status.message else []),
        *(("Artifact", chunk_words(artifact)) for artifact in task.artifacts),
    ]


def card_rows(card: AgentCard, url: str) -> list[Row]:
    """An agent's card."""
    return [
        ("Name", one_line(card.name, WIDTH)),
        ("Version", one_line(card.version, WIDTH)),
        ("About", plain(card.description)),
        ("URL", url),
        ("Speaks", ", ".join(dict.fromkeys(f"{one.binding} {one.version}" for one in card.interfaces))),
        ("Can", ", ".join(_abilities(card)) or "answer"),
        ("Takes", ", ".join(card.input_modes)),
        ("Gives", ", ".join(card.output_modes)),
        *(("Skill", f"{one_line(skill.name, WIDTH)}: {plain(skill.description)}") for skill in card.skills),
    ]


def result_text(task: Task) -> str:
    """The text of all artifacts, one after the other."""
    return "\n\n".join(filter(None, (artifact_text(artifact) for artifact in task.artifacts)))


def artifact_text(artifact: Artifact) -> str:
    """The artifact as text: its chunks put together, its data as JSON, its files as lines about them."""
    text = artifact.text()
    return text or "\n".join(map(_part_text, artifact.parts))


def moment(at: int) -> str:
    """A time in milliseconds as a person reads it; nothing for 0, which is "not said"."""
    return f"{datetime.fromtimestamp(at / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC" if at else ""


def _part_text(part: Part) -> str:
    if part.kind == "data":
        import json

        return json.dumps(part.value, ensure_ascii=False, indent=2)
    if part.kind == "url":
        return str(part.value)
    return f"[{part.filename or 'a file'}, {part.media_type or 'of unknown type'}: save it with --out]"


def _abilities(card: AgentCard) -> Iterator[str]:
    if card.streaming:
        yield "stream"
    if card.push:
        yield "notify webhooks"
