"""Inline or URL: how content that lies beside the log reaches its owner."""

from __future__ import annotations

import asyncio
import base64
import json
from bisect import bisect_left
from collections import Counter
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless.domain.contents import StoredFile
from a2a_serverless.domain.events import PART_BYTES, ArtifactEvent, StatusEvent, update_of
from a2a_serverless.domain.head import LOST_LIMIT
from a2a_serverless.domain.model import Principal
from a2a_serverless.engine.lease import give_up
from a2a_serverless.protocol.codecs import codec
from a2a_serverless.protocol.operations import Operation
from a2a_serverless.protocol.v1 import (
    Artifact,
    ListedTask,
    ListTasksResponse,
    Message,
    Part,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from a2a_serverless.services.content_links import (
    ADVICE,
    INLINE_BYTES,
    KEPT,
    LARGEST_CHARACTER,
    LINK,
    LINKS,
    PLAIN,
    READS,
    SMALL,
    _Resolution,
    is_plain,
    resolve_contents,
    store_contents,
)
from a2a_serverless.services.requests import RequestContext
from a2a_serverless.services.tasks import cancel, get
from a2a_serverless.store.stores import ContentStore
from a2a_serverless.testing.memory import MemoryBlobStore
from tests.echo import agent_of
from tests.faults.plans import At
from tests.world import ME, MINUTE_MS, World

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_serverless.domain.task_context import TaskContext
    from a2a_serverless.protocol.versions import ProtocolVersion

KEY = ME.key("task-1")


class Scene:
    """A store with one content in it, and a part that names it."""

    def __init__(self, content: bytes = b"a picture") -> None:
        self.blobs = MemoryBlobStore()
        self.contents = ContentStore(self.blobs)
        self.kept = self.contents.store(KEY, content)
        self.part = Part(url=self.kept.address, media_type="image/png", filename="boat.png")
        self.artifact = Artifact(artifact_id="a", parts=(Part(text="see"), self.part))

    def one(self, part: Part, budget: int, principal: Principal = ME) -> Part:
        message = Message(message_id="m", role=Role.AGENT, parts=(part,))
        return resolve_contents(self.contents, principal, message, budget).parts[0]

    def shown_at_rest(self, task: Task, budget: int = INLINE_BYTES) -> Task:
        """The answer of the task, after its worker has stored what the answer links."""
        store_contents(self.contents, ME, task, budget)
        return resolve_contents(self.contents, ME, task, budget)


def test_a_file_within_the_budget_goes_inline_with_its_name_and_type() -> None:
    scene = Scene()
    tiny = Part(url=scene.contents.store(KEY, b"a").address)
    assert scene.one(tiny, 1) == Part(raw=base64.b64encode(b"a").decode())
    assert scene.one(scene.part, 9) == Part(
        raw=base64.b64encode(b"a picture").decode(), media_type="image/png", filename="boat.png"
    )


def test_a_file_above_the_budget_is_a_link_to_the_content_of_its_owner() -> None:
    scene = Scene()
    found = scene.one(scene.part, 8)
    assert (found.kind, found.media_type) == ("url", "image/png")
    assert f"{ME.tenant}/{ME.owner}/task-1/{scene.kept.sha256}" in str(found.value)


def test_the_budget_is_that_of_the_whole_answer() -> None:
    scene = Scene()
    task = Task(
        id="t",
        context_id="c",
        status=TaskStatus(state=TaskState.COMPLETED, timestamp=0),
        artifacts=(scene.artifact, scene.artifact),
    ).as_of(1)
    page = resolve_contents(scene.contents, ME, page_with(task, task), 20)
    kinds = [part.kind for one in page.tasks for artifact in one.artifacts for part in artifact.parts]
    assert kinds == ["text", "raw", "text", "raw", "text", "url", "text", "url"]


def test_the_address_of_another_owners_content_names_nothing() -> None:
    scene = Scene()
    stranger = Principal(ME.tenant, "somebody-else")
    found = scene.one(scene.part, INLINE_BYTES, stranger)
    assert found.kind == "url"
    assert f"{ME.tenant}/somebody-else/" in str(found.value)


@pytest.mark.parametrize("size", [1, 8, 10])
def test_an_address_that_lies_about_the_size_is_never_read_inline(size: int) -> None:
    scene = Scene()
    lie = StoredFile("task-1", scene.kept.sha256, size)
    assert scene.one(Part(url=lie.address), INLINE_BYTES).kind == "url"


def test_content_that_has_changed_is_never_passed_on() -> None:
    scene = Scene()
    scene.blobs.content = dict.fromkeys(scene.blobs.content, b"A picture")
    assert scene.one(scene.part, INLINE_BYTES).kind == "url"


@pytest.mark.requirement(124)
@pytest.mark.parametrize("url", ["https://elsewhere.example/x", "a2a-file:../" + "0" * 64 + "/1", "a2a-file:t/abc/1"])
def test_a_url_that_is_no_content_of_ours_is_not_changed(url: str) -> None:
    assert Scene().one(Part(url=url), INLINE_BYTES) == Part(url=url)


def test_messages_of_a_status_and_chunks_carry_links() -> None:
    scene = Scene()
    said = Message(message_id="m", role=Role.AGENT, parts=(scene.part,))
    status = resolve_contents(scene.contents, ME, update_of(StatusEvent(1, 0, "by", TaskState.WORKING, said), "t", "c"))
    chunk = resolve_contents(scene.contents, ME, update_of(ArtifactEvent(2, 0, "by", scene.artifact), "t", "c"))
    task = resolve_contents(
        scene.contents,
        ME,
        Task(
            id="t",
            context_id="c",
            status=TaskStatus(state=TaskState.WORKING, timestamp=0, message=said),
            history=(said,),
        ).as_of(1),
    )
    assert isinstance(status, TaskStatusUpdateEvent)
    assert isinstance(chunk, TaskArtifactUpdateEvent)
    assert status.status.message
    assert task.status.message
    found = [
        status.status.message.parts[0],
        chunk.artifact.parts[1],
        task.status.message.parts[0],
        task.history[0].parts[0],
    ]
    assert all(str(part.value).startswith("https://") for part in found)


def test_a_deployment_without_a_store_of_content_changes_no_task() -> None:
    task = novel("x").model_copy(update={"artifacts": (*novel("x").artifacts, Scene().artifact)})
    assert [resolve_contents(None, ME, task, budget) is task for budget in (0, INLINE_BYTES)] == [True, True]


# ---- Texts that are too long for an answer

PLATFORM = 6 * 1024 * 1024  # what a function may answer
TEXTS = {"prose": "It was a dark night.\n", "chinese": "\u5927\u6d77", "quotes": '\\"' * 8, "control": "\x00"}


def novel(text: str, chunks: int = 400, size: int = 16_384) -> Task:
    parts = (Part(text=(text * size)[:size]),) * chunks
    return Task(
        id="task-1",
        context_id="c",
        status=TaskStatus(state=TaskState.COMPLETED, timestamp=0),
        artifacts=(Artifact(artifact_id="a", parts=parts, name="novel.txt"),),
    ).as_of(1)


def answered(task: Task, version: ProtocolVersion) -> int:
    """How many bytes the function answers with: the body in JSON, once more in JSON."""
    scene = Scene()
    shown = scene.shown_at_rest(task)
    return len(json.dumps(codec("jsonrpc", version, 0).answer(Operation.GET, shown).decode()))


@pytest.mark.parametrize("version", ["1.0", "0.3"])
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("chunks", [48, 80, 320])
def test_no_amount_of_text_makes_an_answer_longer_than_the_platform_takes(
    version: ProtocolVersion, text: str, chunks: int
) -> None:
    one = novel(text, chunks)
    said = Message(message_id="m", role=Role.AGENT, parts=(Part(text=text * 100_000),))
    several = one.model_copy(
        update={
            "artifacts": one.artifacts * 3,
            "history": (said,),
            "status": one.status.model_copy(update={"message": said}),
        }
    )
    assert answered(one, version) < PLATFORM
    assert answered(several, version) < PLATFORM


@pytest.mark.parametrize(
    ("version", "printed"),
    [
        ("1.0", lambda url: {"url": url, "mediaType": "text/plain; charset=utf-8"}),
        ("0.3", lambda url: {"kind": "file", "file": {"uri": url, "mimeType": "text/plain; charset=utf-8"}}),
    ],
    ids=["1.0", "0.3"],
)
def test_chunks_of_text_that_do_not_fit_are_one_link_to_the_owners_text(version: ProtocolVersion, printed: Any) -> None:
    scene, task = Scene(), novel("It was a dark night.\n")
    told = scene.shown_at_rest(task)
    (part,) = told.artifacts[0].parts
    content = task.artifacts[0].text().encode()
    name = f"{ME.tenant}/{ME.owner}/task-1/{sha256(content).hexdigest()}"
    assert scene.blobs.content[name] == content
    assert name in str(part.value)
    answer = json.loads(codec("jsonrpc", version, 0).answer(Operation.GET, told))
    assert answer["artifacts"][0]["parts"] == [printed(part.value)]


def test_a_text_that_does_not_fit_keeps_its_own_type_and_name() -> None:
    scene = Scene()
    task = (novel("x")).model_copy(
        update={
            "artifacts": (
                Artifact(artifact_id="a", parts=(Part(text="x" * 3_000, media_type="text/markdown", filename="a.md"),)),
            )
        }
    )
    (part,) = scene.shown_at_rest(task, 1).artifacts[0].parts
    assert (part.kind, part.media_type, part.filename) == ("url", "text/markdown", "a.md")


def test_a_text_that_is_no_longer_than_a_link_stays_a_text() -> None:
    task = novel("x", chunks=1, size=1_000)
    assert resolve_contents(Scene().contents, ME, task, 1) == task


LABELS: dict[str, Any] = {"filename": "\u5927" * 300, "media_type": f"text/x-{'m' * 100}", "metadata": {"k": "v" * 500}}
FITTING = {
    "prose": Part(text="It was a dark night.\n" * 200),
    "chinese": Part(text="\u5927\u6d77" * 2_000),
    "quotes": Part(text='\\"' * 2_000),
    "data": Part(data={"rows": [{"name": '"\u5927', "number": n} for n in range(500)]}),
    "file": Part(raw=base64.b64encode(bytes(6_000)).decode()),
    "labelled text": Part(text="x" * 4_000, **LABELS),
    "labelled data": Part(data=["x" * 4_000], **LABELS),
    "labelled file": Part(raw=base64.b64encode(bytes(6_000)).decode(), **LABELS),
}


def task_of(*parts: Part, task: Task | None = None) -> Task:
    return (task or novel("x")).model_copy(update={"artifacts": (Artifact(artifact_id="a", parts=parts),)})


@pytest.mark.parametrize("chunks", [1, 3])
@pytest.mark.parametrize("part", FITTING.values(), ids=FITTING)
def test_inline_parts_take_as_much_of_the_budget_as_of_the_answer(part: Part, chunks: int) -> None:
    """A byte of the budget is a byte of a file: three of them are four in the answer, in base64."""
    parts = [part] * chunks

    def stays(budget: int) -> bool:
        return resolve_contents(Scene().contents, ME, task_of(*parts), budget) == task_of(*parts)

    most = bisect_left(range(INLINE_BYTES), x=True, lo=1, key=stays)
    longer = len(json.dumps(task_of(*parts).json_bytes().decode())) - len(json.dumps(task_of().json_bytes().decode()))
    assert abs(most - longer * 3 / 4) <= chunks * (PART_BYTES + 12)


def test_an_address_with_a_long_name_takes_room_for_its_name() -> None:
    """There is room for so many links; then for some addresses; and what is left out after that is counted."""
    for filename, size in ((None, LINK), ("x" * 1_000, LINK + 750)):
        parts = [
            Part(url=StoredFile("uploads", f"{n:064x}", INLINE_BYTES + 1).address, filename=filename)
            for n in range(LINKS)
        ]
        told = resolve_contents(Scene().contents, ME, task_of(*parts), 1).artifacts[0].parts
        links = [part for part in told if str(part.value).startswith("https://")]
        assert SMALL // (size + 20) <= len(links) <= SMALL // size
        assert str(told[-1].value).endswith(ADVICE)


def test_texts_that_fit_stay_the_parts_that_they_were() -> None:
    task = novel("x", chunks=300)
    assert resolve_contents(Scene().contents, ME, task, INLINE_BYTES) == task


@pytest.mark.parametrize("size", [10, 200, 390])
def test_an_answer_that_is_plain_is_not_changed(size: int) -> None:
    """``is_plain`` only spares the work: what it takes for plain fits, also by the exact count."""
    texts = tuple(Part(text="\U0001f600" * 200, metadata={"n": n}) for n in range(size))
    task = novel("x").model_copy(update={"artifacts": (Artifact(artifact_id="a", parts=texts),)})
    assert is_plain(task, INLINE_BYTES)
    assert [resolve_contents(Scene().contents, ME, task, budget) is task for budget in (0, INLINE_BYTES)] == [
        True,
        True,
    ]
    assert _Resolution(Scene().contents, ME, INLINE_BYTES, limited=True).show(task) == task


def test_an_answer_that_names_a_file_or_is_long_is_not_plain() -> None:
    task, named = novel("x"), Part(url="a2a-file:task/0/1")
    for held in (
        {"history": (Message(role=Role.AGENT, message_id="m", parts=(named,)),)},
        {"artifacts": (Artifact(artifact_id="a", parts=(named,)),)},
    ):
        changed = task.model_copy(update=held)
        assert not any(is_plain(one, budget) for one in (changed, page_with(changed)) for budget in (0, INLINE_BYTES))
    long = Part(text="x" * (INLINE_BYTES // LARGEST_CHARACTER))
    told = task.model_copy(update={"artifacts": (Artifact(artifact_id="a", parts=(long,)),)})
    assert is_plain(told, 0)
    assert not is_plain(told, INLINE_BYTES)


def test_streams_and_webhooks_tell_every_text() -> None:
    scene, task = Scene(), novel("x")
    assert resolve_contents(scene.contents, ME, task) == task
    named = task.model_copy(update={"artifacts": (*task.artifacts, scene.artifact)})
    told = resolve_contents(scene.contents, ME, named)
    assert told.artifacts[0] == task.artifacts[0]
    assert str(told.artifacts[1].parts[1].value).startswith("https://")


def test_a_message_that_belongs_to_no_task_is_told_whole_because_nothing_can_be_stored_with_a_task() -> None:
    scene, text = Scene(), Part(text="x" * 100_000)
    message = Message(message_id="m", role=Role.AGENT, parts=(text, scene.part, *[text] * 60))
    told = resolve_contents(scene.contents, ME, message, 1).parts
    assert (told[0], told[2:]) == (text, message.parts[2:])
    assert str(told[1].value).startswith("https://")


def test_the_tasks_of_a_list_share_the_room_and_what_one_task_has_room_for_is_left_out() -> None:
    scene, task, long = Scene(), novel("x", chunks=200), novel("y").model_copy(update={"id": "task-2"})
    store_contents(scene.contents, ME, task)
    store_contents(scene.contents, ME, long)
    page = resolve_contents(scene.contents, ME, page_with(task, task, long), INLINE_BYTES)
    kinds = [one.artifacts[0].parts[0].kind for one in page.tasks]
    assert kinds == ["text", "text", "url"]
    assert page.tasks[1].artifacts[0].text().endswith(ADVICE)
    assert "/task-2/" in str(page.tasks[2].artifacts[0].parts[0].value)


# ---- Everything else that lies in the log


def told(scene: Scene, answer: Any) -> int:
    return len(json.dumps(resolve_contents(scene.contents, ME, answer, INLINE_BYTES).json_bytes().decode()))


def page_with(*tasks: Task) -> ListTasksResponse:
    listed = tuple(ListedTask(**task.__dict__) for task in tasks)
    return ListTasksResponse(tasks=listed, next_page_token="", page_size=len(tasks), total_size=len(tasks))


def page_of(*parts: Part, tasks: int = 20) -> ListTasksResponse:
    said = Message(message_id="m", role=Role.USER, parts=parts)
    status = TaskStatus(state=TaskState.COMPLETED, timestamp=0)
    every = [
        Task(
            id=f"task-{n}",
            context_id="c",
            status=status,
            artifacts=(Artifact(artifact_id="a", parts=parts),),
            history=(said,),
        ).as_of(1)
        for n in range(tasks)
    ]
    return page_with(*every)


@pytest.mark.parametrize(
    "part",
    [
        Part(data={"rows": [{"name": '"' * 20, "number": n} for n in range(5_000)]}),
        Part(data=["\u5927"] * 100_000),
        Part(raw=base64.b64encode(bytes(300_000)).decode(), media_type="image/png"),
        Part(text="x" * 300_000),
    ],
    ids=["data", "chinese data", "raw", "text"],
)
def test_no_kind_of_part_makes_a_page_longer_than_the_platform_takes(part: Part) -> None:
    assert told(Scene(), page_of(part, part)) < PLATFORM


@pytest.mark.parametrize(
    ("part", "media_type", "content"),
    [
        (
            Part(data={"a": "\u5927" * 2_000}),
            "application/json",
            json.dumps({"a": "\u5927" * 2_000}, ensure_ascii=False),
        ),
        (Part(data=["x" * 3_000], media_type="text/x-list"), "text/x-list", json.dumps(["x" * 3_000])),
        (Part(raw=base64.b64encode(b"x" * 3_000).decode(), media_type="image/png"), "image/png", "x" * 3_000),
    ],
)
def test_a_part_that_does_not_fit_is_a_link_to_what_it_says(part: Part, media_type: str, content: str) -> None:
    scene = Scene()
    task = (novel("x")).model_copy(update={"artifacts": (Artifact(artifact_id="a", parts=(part,)),)})
    (linked,) = scene.shown_at_rest(task, 1).artifacts[0].parts
    assert (linked.kind, linked.media_type) == ("url", media_type)
    (stored,) = [kept for name, kept in scene.blobs.content.items() if str(linked.value).find(name) > 0]
    same = json.loads(stored) == json.loads(content) if part.kind == "data" else stored == content.encode()
    assert same
    assert len(stored) <= len(content.encode())


@pytest.mark.parametrize("kind", ["data", "raw"])
def test_streams_and_webhooks_tell_data_and_small_files_as_they_are(kind: str) -> None:
    part = Part(data=["x" * 5_000]) if kind == "data" else Part(raw=base64.b64encode(bytes(5_000)).decode())
    task = (novel("x")).model_copy(update={"artifacts": (Artifact(artifact_id="a", parts=(part,)),)})
    assert resolve_contents(Scene().contents, ME, task) == task


# ---- What an answer costs


class Counted(MemoryBlobStore):
    """Blobs that know how often they were asked."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: Counter[str] = Counter()

    def get(self, name: str, size: int | None = None) -> bytes:
        self.calls["get"] += 1
        return super().get(name, size)

    def put(self, name: str, content: bytes) -> None:
        self.calls["put"] += 1
        super().put(name, content)

    def size(self, name: str) -> int | None:
        self.calls["look"] += 1
        return super().size(name)

    def presign_get(self, name: str, seconds: int, filename: str | None = None) -> str:
        self.calls["link"] += 1
        return super().presign_get(name, seconds, filename)


def addresses(size: int) -> list[Part]:
    return [Part(url=StoredFile("uploads", f"{n:064x}", size).address) for n in range(255)]


@pytest.mark.parametrize("size", [0, 1], ids=["empty", "missing"])
@pytest.mark.parametrize("tasks", [1, 100])
def test_parts_that_name_nothing_cost_a_bounded_number_of_calls(tasks: int, size: int) -> None:
    blobs, page = Counted(), page_of(*addresses(size), tasks=tasks)
    answer = resolve_contents(ContentStore(blobs), ME, page, INLINE_BYTES)
    assert blobs.calls["get"] == (READS if size else 0)
    assert 0 < blobs.calls["link"] <= LINKS
    assert len(answer.json_bytes()) < PLATFORM


def test_after_so_many_links_a_part_keeps_the_address_that_names_its_content() -> None:
    parts = [Part(url=StoredFile("uploads", f"{n:064x}", INLINE_BYTES + 1).address) for n in range(LINKS + 2)]
    (task,) = page_of(*parts[:1], tasks=1).tasks
    task = task.model_copy(
        update={"artifacts": (), "history": (Message(message_id="m", role=Role.USER, parts=tuple(parts)),)}
    )
    told = resolve_contents(Scene().contents, ME, task, INLINE_BYTES).history[0].parts
    assert [str(part.value).startswith("https://") for part in told] == [True] * LINKS + [False] * 2
    assert list(told[-2:]) == parts[-2:]


def test_an_empty_content_is_never_asked_for_in_a_stream() -> None:
    blobs = Counted()
    resolve_contents(ContentStore(blobs), ME, Message(message_id="m", role=Role.USER, parts=tuple(addresses(0))))
    assert blobs.calls["get"] == 0


def test_texts_that_do_not_fit_cost_a_bounded_number_of_calls_and_say_what_is_left_out() -> None:
    blobs, long = Counted(), Part(text="x" * 3_000, media_type="text/markdown", filename="a.md", metadata={"k": 1})
    page = page_of(*(long.model_copy(update={"metadata": {"k": n}}) for n in range(50)), tasks=10)
    store_contents(ContentStore(blobs), ME, page.tasks[0], 1)
    assert blobs.calls == {"look": KEPT, "put": 1, "link": KEPT}, "equal texts are one file"
    blobs.calls.clear()
    answer = resolve_contents(ContentStore(blobs), ME, page, 1)
    assert blobs.calls == {"look": KEPT, "link": KEPT}
    (left_out,) = answer.tasks[-1].history[-1].parts
    assert left_out == Part(text=f"{50 * 3_032} bytes are left out of this answer. {ADVICE}", media_type=PLAIN)
    assert len(answer.tasks[0].artifacts[0].parts) == KEPT + 1, "those that are left out have one part together"


@pytest.mark.parametrize(
    "part",
    [
        Part(text="x" * 1_500),
        Part(data={"a": 1}, metadata={"k": "\u5927" * 3_000}),
        Part(url="https://elsewhere.example/x", filename="x" * 1_000),
        Part(url=StoredFile("uploads", "0" * 64, 5).address, filename="x" * 1_000),
    ],
    ids=["text", "data", "web", "upload"],
)
def test_no_number_of_small_parts_makes_a_page_longer_than_the_platform_takes(part: Part) -> None:
    assert told(Scene(), page_of(*[part] * 255, tasks=50)) < PLATFORM


# ---- What is stored when a task rests


def long_world(*ends: str, meanwhile: Callable[[World], None] = lambda _: None) -> tuple[World, Task]:
    """A task whose agent writes a text without room in an answer, and then does what ``ends`` says.

    ``meanwhile`` happens when its run reads what it has to store.
    """

    async def write(task: TaskContext) -> None:
        for n in range(6):
            await task.emit("novel.txt", f"{n}" * 1_000_000, append=True)
        if "ask" in ends:
            await task.ask("More?")
        if "sleep" in ends:
            await task.sleep("night", 7200)
        if "work" in ends:
            await asyncio.sleep(600)
        if "fail" in ends:
            raise RuntimeError

    world = World([agent_of(write)], At(1, late=False, what=lambda: meanwhile(world), only="table.read_task"))
    task = world.send(push=False)
    world.wait(MINUTE_MS)
    return world, task


@pytest.mark.parametrize("end", ["complete", "fail", "ask", "sleep"])
def test_a_task_that_rests_has_stored_what_its_readers_get_as_a_link(end: str) -> None:
    world, task = long_world(end)
    blobs = Counted()
    blobs.content = before = dict(world.blobs.content)
    (shown,) = resolve_contents(ContentStore(blobs), ME, world.get(task.id), INLINE_BYTES).artifacts[0].parts
    assert (shown.kind, shown.media_type) == ("url", PLAIN)
    (content,) = [content for name, content in before.items() if name in str(shown.value)]
    assert content == "".join(f"{n}" * 1_000_000 for n in range(6)).encode()
    assert blobs.calls == {"look": 1, "link": 1}, "reading stores nothing"


@pytest.mark.parametrize(
    ("end", "state"),
    [
        ("complete", TaskState.COMPLETED),
        ("fail", TaskState.FAILED),
        ("ask", TaskState.INPUT_REQUIRED),
        ("sleep", TaskState.WORKING),
    ],
)
def test_a_message_that_comes_while_a_long_task_goes_to_rest_hinders_it_in_nothing(end: str, state: TaskState) -> None:
    def send_more(world: World) -> None:
        (entry,) = world.table.list_page(ME, None, None, 0, 10)[0]
        world.send("more", task_id=entry.task, push=False)

    world, task = long_world(end, meanwhile=send_more)
    shown = world.get(task.id)
    assert [message.text() for message in shown.history][:2] == ["hello", "more"]
    assert shown.status.state is state
    assert resolve_contents(world.contents, ME, shown, INLINE_BYTES).artifacts[0].parts[0].kind == "url"


def test_a_task_that_is_given_up_has_links_too() -> None:
    world, task = long_world("work")
    key = ME.key(task.id)
    current = world.table.read_head(key)
    assert world.table.update_head(current.head, current.head._replace(lost=LOST_LIMIT - 1, lease_until=1, rev=99))
    assert give_up(world.engine, key)
    (shown,) = resolve_contents(world.contents, ME, world.get(task.id), INLINE_BYTES).artifacts[0].parts
    assert (world.get(task.id).status.state, shown.kind) == (TaskState.FAILED, "url")


def test_of_a_task_at_work_a_long_text_is_left_out_and_a_cancel_stores_it() -> None:
    world, task = long_world("work")
    working = world.get(task.id)
    (shown,) = resolve_contents(world.contents, ME, working, INLINE_BYTES).artifacts[0].parts
    assert shown == Part(text=f"{6_000_032} bytes are left out of this answer. {ADVICE}", media_type=PLAIN)
    assert world.blobs.content == {}
    canceled = cancel(world.service, RequestContext(ME, "echo", "1.0"), task.id)
    (shown,) = resolve_contents(world.contents, ME, canceled, INLINE_BYTES).artifacts[0].parts
    assert (working.status.state, shown.kind) == (TaskState.WORKING, "url")


# ---- From an agent to its readers


def maker(size: int) -> World:
    async def make(task: TaskContext) -> None:
        await task.emit("big.bin", b"x" * size, last=True)

    world = World([agent_of(make)])
    world.send("go")
    world.settle()
    return world


def ended(world: World, part: Part) -> Task:
    """The task that a message of one part came to."""
    sent = world.sent(
        SendMessageRequest(
            message=Message(message_id="m-1", role=Role.USER, parts=(part,)),
            configuration=SendMessageConfiguration(return_immediately=True),
        )
    )
    world.settle()
    return get(world.service, RequestContext(ME, "echo", "1.0"), sent.id)


def test_a_big_file_of_an_agent_lies_beside_the_log() -> None:
    world = maker(1_000_000)
    (key,) = world.blobs.content
    (chunk,) = [event for event in world.events(key.split("/")[-2]) if isinstance(event, ArtifactEvent)]
    assert (
        chunk.artifact.parts[0].value == f"a2a-file:{key.split('/')[-2]}/{sha256(b'x' * 1_000_000).hexdigest()}/1000000"
    )


def test_a_webhook_gets_a_link_in_place_of_a_megabyte() -> None:
    bodies = [json.dumps(post.body) for post in maker(1_000_000).receiver.posts]
    assert bodies
    assert max(map(len, bodies)) < 2_000
    assert any("https://blobs.example/" in body for body in bodies)


def test_a_small_file_stays_in_the_log() -> None:
    assert maker(1_000).blobs.content == {}


@pytest.mark.parametrize("kind", ["inline", "uploaded"])
def test_an_agent_reads_a_file_however_it_came(kind: str) -> None:
    async def count(task: TaskContext) -> str:
        return str(len(await task.read_file(task.message.parts[0])))

    world = World([agent_of(count)])
    kept = world.contents.store(ME.key("uploads"), b"12345")
    part = Part(url=kept.address) if kind == "uploaded" else Part(raw=base64.b64encode(b"12345").decode())
    assert ended(world, part).status.message.text() == "5"  # type: ignore[union-attr]


@pytest.mark.requirement(124)
@pytest.mark.parametrize(
    "part",
    [
        Part(url=StoredFile("uploads", "0" * 64, 5).address),
        Part(url="http://169.254.169.254/latest/meta-data/"),
        Part(text="no file"),
    ],
)
def test_a_file_that_is_not_there_fails_the_task_with_a_reason(part: Part) -> None:
    async def count(task: TaskContext) -> str:
        return str(len(await task.read_file(task.message.parts[0])))

    task = ended(World([agent_of(count)]), part)
    assert task.status.state is TaskState.FAILED
    assert "file" in task.status.message.text()  # type: ignore[union-attr]
