"""Formats tasks, events and cards: as lines for people, as A2A 1.0 JSON for programs."""

import json
from datetime import UTC, datetime

from rich.text import Text

from a2a_serverless.client import ClientEvent
from a2a_serverless.domain.model import Json
from a2a_serverless.domain.progress import percent_of
from a2a_serverless.domain.states import INTERRUPTED, TERMINAL
from a2a_serverless.protocol.protojson import as_json
from a2a_serverless.protocol.v1 import (
    Artifact,
    Message,
    Part,
    StreamContent,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    stream_response,
)
from a2a_serverless.protocol.v1_card import AgentCard
from a2a_serverless_tools.cli.terminal import STYLES, Row, one_line, plain

WIDTH = 60
INDENT = 6
KB = 1024
_MARKS = dict.fromkeys(TERMINAL - {TaskState.COMPLETED}, "✗") | dict.fromkeys(INTERRUPTED, "?")
_MARKS[TaskState.COMPLETED] = "✓"


def item_json(item: ClientEvent) -> Json:
    """Prints an item of a stream: an A2A StreamResponse, with its ``eventNumber``."""
    return {"eventNumber": item.n, **as_json(stream_response(item.content))}


def item_line(item: ClientEvent, before: TaskState | None = None, *, with_answer: bool = True) -> Text:
    """Formats an item of a stream, with its number first. The state ``before`` is not named again.

    The message with which a task completes is left out without ``with_answer``.

    Progress is one short line; a question, an answer or the reason of a failure is whole.
    """
    line = _content_line(item.content, before, with_answer=with_answer)
    return Text.assemble(("    " if item.n is None else f"{item.n:>3} ", "dim"), line)


def _content_line(content: StreamContent, before: TaskState | None, *, with_answer: bool) -> Text:
    if isinstance(content, Message):
        return Text(f"» {_whole(content.text())}")
    if isinstance(content, TaskArtifactUpdateEvent):
        return Text(f"+ {_chunk_words(content.artifact)}")
    is_answer = content.status.state is TaskState.COMPLETED
    status = content.status if with_answer or not is_answer else TaskStatus(state=TaskState.COMPLETED)
    return _status_line(status, before)


def _status_line(status: TaskStatus, before: TaskState | None) -> Text:
    mark, style = _MARKS.get(status.state, "●"), STYLES.get(status.state, "")
    if not status.message:
        return Text(f"{mark} {status.state}", style)
    is_progress = status.state not in TERMINAL | INTERRUPTED
    text = one_line(status.message.text(), WIDTH) if is_progress else _whole(status.message.text())
    percent = percent_of(status.message.metadata)
    text = text if percent is None else f"{percent:g} % {text}"
    if status.state == before:
        return Text.assemble((mark, style), f" {text}")
    return Text.assemble((f"{mark} {status.state}", style), (f"  {text}", "dim" if is_progress else ""))


def _whole(text: str) -> str:
    """The text with all its lines, those after the first indented."""
    return plain(text).strip().replace("\n", f"\n{' ' * INDENT}")


def _chunk_words(artifact: Artifact) -> str:
    return f"{one_line(artifact.name or artifact.artifact_id, WIDTH)}  {size_words(artifact)}"


def size_words(artifact: Artifact) -> str:
    """Formats the size of an artifact: characters of texts, bytes of files, data parts, links."""
    files = [file_size(str(part.value)) for part in artifact.parts if part.kind == "raw"]
    links = [part.media_type or "a file" for part in artifact.parts if part.kind == "url"]
    data = sum(part.kind == "data" for part in artifact.parts)
    words = [bytes_words(sum(files))] if files else []
    return content_words(len(artifact.text()), [*words, *(f"{one} by link" for one in links)], data)


def content_words(characters: int, files: list[str], data: int) -> str:
    """Formats what an artifact has: characters of texts, files (each as words), data parts."""
    words = [f"{characters:,} character{'s' if characters > 1 else ''}"] if characters else []
    words += [*files, f"{data} data part{'s' if data > 1 else ''}"] if data else files
    return ", ".join(words) or "empty"


def file_size(encoded: str) -> int:
    """Returns how many bytes a text in base64 is."""
    return len(encoded) * 3 // 4 - encoded.count("=", -2)


def bytes_words(size: int) -> str:
    """Formats a number of bytes: 287 KB."""
    if size < KB:
        return f"{size} bytes"
    return f"{size / KB:,.0f} KB" if size < KB * KB else f"{size / KB / KB:,.1f} MB"


def task_rows(task: Task) -> list[Row]:
    """Formats a task as rows, without the content of its artifacts."""
    status = task.status
    return [
        ("Task", task.id),
        ("State", Text(status.state, STYLES.get(status.state, ""))),
        ("Since", moment(status.timestamp)),
        ("Context", task.context_id),
        *([("Message", plain(status.message.text()))] if status.message else []),
        *(("Artifact", _chunk_words(artifact)) for artifact in task.artifacts),
    ]


def card_rows(card: AgentCard, url: str) -> list[Row]:
    """Formats an agent's card as rows."""
    spoken = (f"{one.protocol_binding} {one.protocol_version}" for one in card.supported_interfaces)
    abilities = {"stream": card.capabilities.streaming, "notify webhooks": card.capabilities.push_notifications}
    return [
        ("Name", one_line(card.name, WIDTH)),
        ("Version", one_line(card.version, WIDTH)),
        ("About", plain(card.description)),
        ("URL", url),
        ("Speaks", ", ".join(dict.fromkeys(spoken))),
        ("Can", ", ".join(name for name, has in abilities.items() if has) or "answer"),
        ("Takes", ", ".join(card.default_input_modes)),
        ("Gives", ", ".join(card.default_output_modes)),
        *(("Skill", f"{one_line(skill.name, WIDTH)}: {plain(skill.description)}") for skill in card.skills),
    ]


def result_text(task: Task) -> str:
    """The result of a task: its artifacts, and the message with which it completed (``Task.text``).

    What has no text is JSON, or one line for each file.
    """
    texts = [artifact_text(artifact) for artifact in task.artifacts]
    return "\n\n".join(filter(None, [*texts, answer_text(task)]))


def answer_text(task: Task) -> str:
    """The message with which a task completed; empty if there is none."""
    answer = task.answer
    return answer.text() or "\n".join(_part_text(part, "") for part in answer.parts) if answer else ""


def artifact_text(artifact: Artifact) -> str:
    """Formats an artifact as text: its chunks joined; if it has no text, data as JSON and one line for each file."""
    return artifact.text() or "\n".join(_part_text(part, artifact.name or "") for part in artifact.parts)


def moment(at: float) -> str:
    """Formats a time in ms since the epoch; empty for 0, which means that the agent gave no time."""
    return f"{datetime.fromtimestamp(at / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC" if at else ""


def _part_text(part: Part, name: str) -> str:
    if part.kind == "data":
        return json.dumps(part.value, ensure_ascii=False, indent=2)
    if part.kind == "url":
        return str(part.value)
    size = bytes_words(file_size(str(part.value)))
    about = [part.filename or name or "a file", part.media_type or "of unknown type", size]
    return f"[{', '.join(about)}: save it with --out]"
