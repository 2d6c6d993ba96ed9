"""Files that an agent reads: stored ones, and those at URLs past the guard. The client reads why one is refused."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

import pytest

from a2a_serverless.domain.contents import LARGEST, StoredFile
from a2a_serverless.domain.outcomes import OutboundError, Outcome
from a2a_serverless.engine.task_files import INLINE_FILE_LIMIT, TaskFiles
from a2a_serverless.protocol.v1 import Part, TaskState
from tests.adapters.strangers import Line, answer, serve, server_context
from tests.adapters.test_webhook_sender import MINUTE, Names, sender_to
from tests.echo import agent_of
from tests.world import World

if TYPE_CHECKING:
    from a2a_serverless.adapters.webhook_sender import WebhookSender
    from a2a_serverless.domain.task_context import TaskContext
    from a2a_serverless.ports.system import UrlFetcher
    from a2a_serverless.protocol.v1 import Task

URL: Final = "https://hooks.example.com/boat.png?secret=s3cret"
BOAT: Final = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nboat"
AWAY: Final = b"HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/latest/\r\nContent-Length: 0\r\n\r\n"
ZIPPED: Final = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\n\x1f\x8b\x08\x00"


async def reads(task: TaskContext) -> None:
    """Says what is in the file."""
    for part in task.message.parts:
        if part.kind == "url":
            await task.emit("content.txt", (await task.read_file(part)).hex(), last=True)


def told(fetch: UrlFetcher, url: str = URL) -> Task:
    """What comes of a message with a file at the URL."""
    world = World([agent_of(reads)])
    world.engine = replace(world.engine, files=TaskFiles(fetch=fetch))
    request = world.request("see", push=False)
    parts = (*request.message.parts, Part(url=url, media_type="image/png", filename="boat.png"))
    task_id = world.sent(request.model_copy(update={"message": request.message.model_copy(update={"parts": parts})})).id
    world.settle()
    return world.get(task_id)


def past_the_guard(sender: WebhookSender) -> UrlFetcher:
    """As the functions fetch."""
    return partial(_get, sender)


def _get(sender: WebhookSender, url: str) -> Outcome:
    return sender.get(url, {}, MINUTE, LARGEST)


def reason(task: Task) -> str:
    """Why it failed."""
    assert task.status.state is TaskState.FAILED
    assert task.status.message is not None
    return task.status.message.text()


UNKNOWN: Final = StoredFile("uploads", "0" * 64, 4).address
NO_FILE: Final = "The part is not a file of a message."
NOT_READ: Final = {
    "gone": (UNKNOWN, True, "The file was not uploaded, or does not exist any more."),
    "no bucket": (UNKNOWN, False, NO_FILE),
    "a URL without a fetcher": (URL, True, NO_FILE),
    "a text": ("", True, NO_FILE),
}


@pytest.mark.parametrize(("url", "has_bucket", "said"), NOT_READ.values(), ids=NOT_READ)
def test_a_part_that_cannot_be_read_fails_the_task_with_the_reason(url: str, said: str, *, has_bucket: bool) -> None:
    async def work(task: TaskContext) -> None:
        await task.read_file(Part(url=url) if url else Part(text="boat"))

    world = World([agent_of(work)])
    world.engine = replace(world.engine, files=TaskFiles(world.contents if has_bucket else None))
    task_id = world.send("see", push=False).id
    world.settle()
    assert reason(world.get(task_id)) == said


def test_a_file_is_read_from_its_url_or_from_the_part_itself() -> None:
    assert told(lambda url: Outcome(status=200, body=url.encode())).artifacts[0].text() == URL.encode().hex()

    async def work(task: TaskContext) -> str:
        return (await task.read_file(Part(raw="Ym9hdA=="))).decode()

    world = World([agent_of(work)])
    task_id = world.send("see", push=False).id
    world.settle()
    message = world.get(task_id).status.message
    assert message
    assert message.text() == "boat"


@pytest.mark.parametrize("has_bucket", [True, False])
@pytest.mark.parametrize(
    ("size", "is_large"), [(INLINE_FILE_LIMIT * 3 // 4, False), (INLINE_FILE_LIMIT * 3 // 4 + 1, True)]
)
def test_an_emitted_file_of_more_than_half_a_megabyte_is_stored_in_the_bucket_if_there_is_one(
    size: int, *, is_large: bool, has_bucket: bool
) -> None:
    async def work(task: TaskContext) -> None:
        await task.emit("boat.bin", bytes(size))
        await task.emit("boat.txt", "x" * size)

    world = World([agent_of(work)])
    world.engine = replace(world.engine, files=TaskFiles(world.contents if has_bucket else None))
    task_id = world.send("see", push=False).id
    world.settle()
    kinds = [artifact.parts[0].kind for artifact in world.get(task_id).artifacts]
    assert kinds == ["url" if is_large and has_bucket else "raw", "text"]


@pytest.mark.enable_socket
def test_a_file_at_a_url_is_read_like_any_other() -> None:
    with serve(answer(BOAT), server_context()) as stranger, sender_to(stranger) as (sender, _):
        task = told(past_the_guard(sender))
    assert (task.status.state, task.artifacts[0].text()) == (TaskState.COMPLETED, b"boat".hex())
    assert stranger.requests[0].startswith(b"GET /boat.png?secret=s3cret HTTP/1.1\r\n")


@pytest.mark.enable_socket
def test_rule_09_a_redirect_is_an_end_and_not_a_way_to_another_address() -> None:
    with serve(answer(AWAY), server_context()) as stranger, sender_to(stranger) as (sender, wire):
        task = told(past_the_guard(sender))
    assert reason(task) == "The URL of the file answered 302; redirects are not followed."
    assert len(wire.dialled) == len(stranger.requests) == 1


@pytest.mark.enable_socket
def test_a_fetch_returns_a_compressed_body_without_unpacking_it() -> None:
    with serve(answer(ZIPPED), server_context()) as stranger, sender_to(stranger) as (sender, _):
        task = told(past_the_guard(sender))
    assert task.artifacts[0].text() == "1f8b0800"


@pytest.mark.parametrize(
    ("url", "answers"),
    [
        ("https://169.254.169.254/latest/meta-data/", []),
        ("http://hooks.example.com/boat.png", []),
        ("https://user:secret@hooks.example.com/", []),
        ("file:///etc/passwd", []),
        (URL, [["10.0.0.1"]]),
        (URL, [["93.184.215.14", "127.0.0.1"]]),
    ],
    ids=["metadata", "no TLS", "user", "no http", "a private address", "one of two private"],
)
def test_rule_09_a_url_that_the_guard_refuses_is_not_fetched_and_the_client_reads_why(
    url: str, answers: list[list[str]]
) -> None:
    with sender_to(None, Names([*answers])) as (sender, wire):
        task = told(past_the_guard(sender), url)
    assert reason(task).startswith("The URL of the file is refused: ")
    assert wire.dialled == []


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        (Outcome(error=OutboundError.TOO_LARGE, status=200), "The file at the URL is larger than 100 MiB."),
        (Outcome(error=OutboundError.TIMEOUT), "The file could not be fetched from its URL (timeout)."),
        (Outcome(error=OutboundError.RESET, status=200), "The file could not be fetched from its URL (reset)."),
        (Outcome(), "The file could not be fetched from its URL (no answer)."),
        (Outcome(status=299), "The URL of the file answered 299."),
        (Outcome(status=300), "The URL of the file answered 300; redirects are not followed."),
        (Outcome(status=399), "The URL of the file answered 399; redirects are not followed."),
        (Outcome(status=400), "The URL of the file answered 400."),
        (Outcome(status=206, body=b"bo"), "The URL of the file answered 206."),
    ],
    ids=["too large", "late", "broken off", "none", "299", "300", "399", "400", "a part of it"],
)
def test_a_fetch_that_fails_ends_the_task_with_the_reason_but_without_the_url(outcome: Outcome, said: str) -> None:
    assert reason(told(lambda _: outcome)) == said


@pytest.mark.enable_socket
def test_a_signed_link_may_be_longer_than_a_webhook_and_has_an_end_too() -> None:
    with serve(answer(BOAT), server_context()) as stranger, sender_to(stranger) as (sender, _):
        fetch = past_the_guard(sender)
        assert told(fetch, URL + "x" * 4000).status.state is TaskState.COMPLETED
        assert "8192" in reason(told(fetch, URL + "x" * 8192))
        assert sender.post(URL + "x" * 4000, {}, b"{}", MINUTE).error is OutboundError.REFUSED


@pytest.mark.enable_socket
def test_a_file_that_ends_before_its_length_is_none() -> None:
    def script(line: Line) -> None:
        line.read_request()
        line.write(b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nboat")

    with serve(script, server_context()) as stranger, sender_to(stranger) as (sender, _):
        assert told(past_the_guard(sender)).status.state is TaskState.FAILED


@pytest.mark.enable_socket
def test_a_file_without_end_is_cut_at_the_limit() -> None:
    def script(line: Line) -> None:
        line.read_request()
        line.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        line.write_for_ever(b"400\r\n" + b"x" * 1024 + b"\r\n")

    with serve(script, server_context()) as stranger, sender_to(stranger) as (sender, _):
        assert "larger than" in reason(told(lambda url: sender.get(url, {}, MINUTE, 64 * 1024)))


@pytest.mark.enable_socket
def test_a_file_that_drips_ends_with_the_deadline() -> None:
    def script(line: Line) -> None:
        line.read_request()
        line.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
        line.drip(b"x")

    with serve(script, server_context()) as stranger, sender_to(stranger) as (sender, _):
        assert "timeout" in reason(told(lambda url: sender.get(url, {}, 300, LARGEST)))


def test_the_file_in_a_data_uri_is_read_without_a_request() -> None:
    async def work(task: TaskContext) -> None:
        await task.emit(
            "content.txt", (await task.read_file(Part(url="data:image/png;base64,Ym9hdA=="))).hex(), last=True
        )

    world = World([agent_of(work)])
    task_id = world.sent(world.request("see", push=False)).id
    world.settle()
    assert world.get(task_id).artifacts[0].text() == b"boat".hex()
