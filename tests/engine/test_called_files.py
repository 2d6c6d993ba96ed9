"""Files in the answers of called agents: stored with the caller's task, whatever becomes of the link they came by."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pytest

from a2a_serverless.adapters.remote_agents import A2ARemoteAgents
from a2a_serverless.adapters.s3 import S3BlobStore
from a2a_serverless.adapters.webhook_sender import WebhookSender
from a2a_serverless.domain.contents import LARGEST, file_of, is_expiring
from a2a_serverless.domain.outbound import EgressPolicy
from a2a_serverless.domain.outcomes import OutboundError, Outcome
from a2a_serverless.engine.task_files import TaskFiles
from a2a_serverless.ports.agents import AgentUnavailable
from a2a_serverless.protocol.v1 import Message, Part, Task
from a2a_serverless.services.content_links import INLINE_BYTES, resolve_contents
from tests.adapters.clouds import cloud
from tests.echo import agent_of
from tests.peer import FILE, Failure, Peer
from tests.world import HOUR_MS, ME, World

if TYPE_CHECKING:
    from a2a_serverless.domain.task_context import TaskContext

CONTENT: Final = bytes(range(256)) * 4096  # a megabyte
LINK: Final = "/blobs/tenant/me/task/0a1b?X-Amz-Expires=3600&X-Amz-Signature=s"


async def read_later(task: TaskContext) -> None:
    """Reads the file of the called agent two hours after its end, and hands it on."""
    answer = await task.call("write", "far", "hello")
    (part,) = answer.artifacts[0].parts if isinstance(answer, Task) else answer.parts
    await task.sleep("two hours", 7200)
    same = "same" if await task.read_file(part) == CONTENT else "other"
    await task.emit("file.bin", [part])
    await task.emit("result.txt", f"{same} {part.filename}", last=True)


def world_with(peer: Peer) -> World:
    """A deployment whose agent calls the peer and fetches files of it. The peer's links work for an hour."""
    world = World([agent_of(read_later, "parent")])
    began, peer.now = world.now, lambda: world.now
    may_fail = peer.fails
    peer.files["/blobs/tenant/me/task/0a1b"] = CONTENT
    peer.fails = lambda operation: (
        Failure(403) if operation == FILE and world.now > began + HOUR_MS else may_fail(operation)
    )
    contents = world.contents
    remote_agents = A2ARemoteAgents({}, {"far": peer.url}, transport=peer.transport, contents=contents)
    registry = replace(world.registry, remote_agents=remote_agents)
    world.engine = replace(world.engine, registry=registry, files=TaskFiles(contents, peer.fetch))
    return world


def parts_of(peer: Peer, shape: str) -> list[dict[str, Any]]:
    """The file as the agent sends it."""
    about = {"filename": "a.bin", "mediaType": "application/octet-stream"}
    old = {"name": "a.bin", "mimeType": "application/octet-stream"}
    raw = base64.b64encode(CONTENT).decode()
    if peer.version == "1.0":
        return [{"url": peer.url + LINK, **about} if shape == "link" else {"raw": raw, **about}]
    return [{"kind": "file", "file": {"uri": peer.url + LINK, **old} if shape == "link" else {"bytes": raw, **old}}]


def settled(world: World) -> Task:
    task = world.send("hello", agent="parent", push=False)
    world.settle()
    return world.get(task.id, "parent")


@pytest.mark.parametrize("version", ["1.0", "0.3"])
@pytest.mark.parametrize("shape", ["link", "raw"])
def test_rule_03_a_called_agents_file_is_stored_with_the_callers_task_and_read_after_its_link_has_ended(
    version: str, shape: str
) -> None:
    peer = Peer(version=version)
    world = world_with(peer)
    peer.artifacts = [{"artifactId": "a", "parts": parts_of(peer, shape)}]
    task = settled(world)
    assert task.artifacts[1].text() == "same a.bin"
    stored = file_of(task.artifacts[0].parts[0])
    assert stored
    assert stored.place == task.id, "it is erased with the task"
    assert list(world.blobs.list_names(f"{ME.tenant}/{ME.owner}/{task.id}/"))
    shown = resolve_contents(world.contents, ME, task, INLINE_BYTES)
    assert base64.b64decode(str(shown.artifacts[0].parts[0].value)) == CONTENT, "the client reads it, too"
    assert len(peer.times(FILE)) == (shape == "link")


def test_a_file_that_cannot_be_fetched_now_is_fetched_later() -> None:
    peer = Peer()
    peer.fails = lambda operation: Failure(503) if operation == FILE and len(peer.times(FILE)) < 6 else None
    world = world_with(peer)
    peer.artifacts = [{"artifactId": "a", "parts": parts_of(peer, "link")}]
    assert settled(world).artifacts[1].text() == "same a.bin"
    assert len(peer.times(FILE)) == 6


async def name_files(task: TaskContext) -> str:
    """Says where the files of the called agent's answer are."""
    answer = await task.call("write", "far", "hello")
    parts = [*answer.parts] if isinstance(answer, Message) else []
    if isinstance(answer, Task):
        held: list[Any] = [
            *answer.artifacts,
            *([answer.status.message] if answer.status.message else []),
        ]
        parts = [part for one in held for part in one.parts]
    return " ".join("stored" if file_of(part) else str(part.value) for part in parts)


def named(world: World, files: TaskFiles | None = None) -> str:
    """What ``name_files`` says of the called agent's answer."""
    agents = {"parent": agent_of(name_files, "parent")}
    world.engine = replace(world.engine, agents=agents, files=files or world.engine.files)
    message = settled(world).status.message
    assert message
    return message.text()


@pytest.mark.parametrize("where", ["artifacts", "says", "talks"])
@pytest.mark.parametrize("shape", ["link", "raw"])
def test_a_file_is_stored_wherever_in_the_answer_it_is(where: str, shape: str) -> None:
    peer = Peer(talks=where == "talks")
    parts = parts_of(peer, shape)
    peer.artifacts = [{"artifactId": "a", "parts": parts}] if where == "artifacts" else []
    peer.says = parts if where in {"says", "talks"} else []
    assert named(world_with(peer)) == "stored"


COMES_LATER = {
    "500": Outcome(status=500),
    "timeout": Outcome(error=OutboundError.TIMEOUT),
    "broken off": Outcome(status=200, error=OutboundError.RESET),
    "no answer": Outcome(),
}
STAYS_AWAY = {
    "499": Outcome(status=499),
    "a part": Outcome(status=206),
    "too large": Outcome(status=200, error=OutboundError.TOO_LARGE),
    "refused": Outcome(error=OutboundError.REFUSED),
}


@pytest.mark.parametrize("first", [*COMES_LATER, *STAYS_AWAY])
def test_a_fetch_that_may_succeed_later_is_repeated_and_any_other_leaves_the_link(
    first: str, caplog: pytest.LogCaptureFixture
) -> None:
    peer = Peer(files={LINK.partition("?")[0]: CONTENT})
    peer.artifacts = [{"artifactId": "a", "parts": parts_of(peer, "link")}]
    world, outcomes = world_with(peer), [(COMES_LATER | STAYS_AWAY)[first]]
    files = TaskFiles(world.contents, lambda url: outcomes.pop() if outcomes else peer.fetch(url))
    assert named(world, files) == ("stored" if first in COMES_LATER else peer.url + LINK)
    reasons = [line.__dict__["reason"] for line in caplog.records if "stays a link" in line.getMessage()]
    short = {"a part": "206", "too large": "too_large"}
    assert reasons == ([] if first in COMES_LATER else [short.get(first, first)])


@pytest.mark.parametrize(
    ("outcome", "reason"), [(Outcome(status=500), "HTTP 500"), (Outcome(error=OutboundError.TIMEOUT), "timeout")]
)
def test_the_reason_why_a_file_cannot_be_fetched_now_is_told(outcome: Outcome, reason: str) -> None:
    files = TaskFiles(world_with(Peer()).contents, lambda _: outcome)
    with pytest.raises(AgentUnavailable, match=rf"could not be fetched: {reason}\."):
        files.keep(ME.key("task-1"), Part(url=f"https://far.example.com{LINK}"))


def test_a_message_is_not_sent_again_for_a_file_in_its_answer_which_stays_a_link() -> None:
    peer = Peer(talks=True, fails=lambda operation: Failure(503) if operation == FILE else None)
    peer.says = parts_of(peer, "link")
    assert named(world_with(peer)) == peer.url + LINK
    assert len(peer.messages) == 1


def test_files_that_take_more_than_five_minutes_in_all_stay_links() -> None:
    peer = Peer()
    peer.artifacts = [{"artifactId": "a", "parts": parts_of(peer, "link") * 3}]
    world = world_with(peer)

    def fetch(url: str) -> Outcome:
        world.now += 150_000
        return peer.fetch(url)

    assert named(world, TaskFiles(world.contents, fetch)) == f"stored stored {peer.url}{LINK}"


@pytest.mark.parametrize("has_bucket", [True, False])
def test_only_with_a_bucket_and_a_fetcher_files_are_taken_over(*, has_bucket: bool) -> None:
    peer = Peer()
    peer.artifacts = [{"artifactId": "a", "parts": parts_of(peer, "link")}]
    world = world_with(peer)
    files = TaskFiles(world.contents) if has_bucket else TaskFiles(None, peer.fetch)
    assert named(world, files) == peer.url + LINK
    assert peer.times(FILE) == []


@pytest.mark.parametrize("why", ["refused by the policy", "gone", "does not expire"])
def test_a_link_that_is_refused_or_gone_or_does_not_expire_stays_a_link(why: str) -> None:
    peer = Peer(url="https://10.0.0.1")
    peer.fails = lambda operation: Failure(404) if operation == FILE and why == "gone" else None
    sender = WebhookSender(EgressPolicy())
    world = world_with(peer)
    if why == "refused by the policy":
        files = TaskFiles(world.contents, lambda url: sender.get(url, {}, 5_000, LARGEST))
        world.engine = replace(world.engine, files=files)
    (part,) = parts_of(peer, "link")
    if why == "does not expire":
        part["url"] = part["url"].partition("?")[0]
    peer.artifacts = [{"artifactId": "a", "parts": [part]}]
    world.send("hello", agent="parent", push=False)
    world.wait(60_000)
    (entry,) = world.table.list_page(ME, None, None, 0, 10)[0]
    steps = world.table.read_steps(ME.key(entry.task))
    (answer,) = [step.value for name, step in steps.items() if name.endswith("/done")]
    assert part["url"] in str(answer)
    assert len(peer.times(FILE)) == (why == "gone")


def test_a_stored_file_is_sent_to_an_agent_elsewhere_as_a_link() -> None:
    peer = Peer()
    world = world_with(peer)

    async def forward(task: TaskContext) -> str:
        return str(type(await task.call("write", "far", list(task.message.parts))).__name__)

    world.engine = replace(world.engine, agents={"parent": agent_of(forward, "parent")})
    stored = world.contents.store(ME.key("uploads"), CONTENT)
    request = world.request("hello", push=False)
    message = request.message.model_copy(update={"parts": (Part(url=stored.address),)})
    world.sent(request.model_copy(update={"message": message}), "parent")
    world.settle()
    assert peer.parts[0]["url"].startswith("https://blobs.example/")


def test_a_presigned_link_of_our_bucket_is_a_link_that_expires() -> None:
    with cloud("s3") as client:
        url = S3BlobStore(lambda: client, "blobs").presign_get("tenant/me/task/0a1b", 3600, "a b.png")
    assert is_expiring(Part(url=url))
    assert not is_expiring(Part(url="https://example.com/a.png?size=3&used=1"))
    assert not is_expiring(Part(text="?Expires=1"))
