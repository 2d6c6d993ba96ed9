"""What the use cases need from the world, as small protocols. ``adapters`` holds the real ones and their twins.

Every write may be retried and every call may fail after it took effect; the contracts below say what then holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from a2a_serverless.domain.access import ApiKey, Caller
    from a2a_serverless.domain.card import AgentCard
    from a2a_serverless.domain.challenges import ChallengeState
    from a2a_serverless.domain.circuit_breaker import OpenBreaker
    from a2a_serverless.domain.contents import StoredFile, UploadSlot
    from a2a_serverless.domain.events import ArtifactEvent, Event, StatusEvent
    from a2a_serverless.domain.head import Change, Head, HeadSnapshot
    from a2a_serverless.domain.key_ring import KeyRing, SigningKey
    from a2a_serverless.domain.model import Json, Message, Part, Principal, PushRequest, Task, TaskKey, TaskState
    from a2a_serverless.domain.outbound import Outcome
    from a2a_serverless.domain.push import Attempt, Cursor, PushConfig
    from a2a_serverless.domain.queue_messages import QueueMessage
    from a2a_serverless.domain.quota import SendBucket, UnfinishedTasks
    from a2a_serverless.domain.url_policy import WebhookTarget

SHARDS: Final = 8


@dataclass(frozen=True, slots=True)
class IdempotencyRecord:
    """What makes a send idempotent: the same (tenant, owner, agent, message id) made ``task`` with ``digest``.

    ``digest`` is the SHA-256 of the message's canonical form, so that the same id with another body is noticed.
    """

    agent: str
    message_id: str
    digest: str
    task: str


@dataclass(frozen=True, slots=True)
class NewTask:
    """All that a new task is written with, in one transaction."""

    head: Head
    event: StatusEvent
    idempotency: IdempotencyRecord | None
    pushes: tuple[tuple[PushConfig, Cursor], ...] = ()


@dataclass(frozen=True, slots=True)
class StepResult:
    """What a named step gave: first write wins. ``arguments`` is a digest of what it was called with.

    ``fence`` is that of the run in which it emitted something; the log says what (``ArtifactEvent.step``). ``counts``
    is what else it said: how often it told its progress, and asked which question.
    """

    arguments: str
    value: Json
    fence: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)


class Clock(Protocol):
    """Time. Nothing else in the package knows it."""

    def now(self) -> int:
        """Milliseconds since the epoch."""
        ...

    def sleep(self, seconds: float) -> None:
        """Returns after ``seconds``."""
        ...


class Ids(Protocol):
    """Identifiers that nobody can guess or collide with."""

    def new(self) -> str:
        """A fresh one, URL-safe, at most 40 characters."""
        ...


class TaskLog(Protocol):
    """The tasks and their logs. All reads are strongly consistent; expired tasks do not exist."""

    def create(self, opening: NewTask) -> IdempotencyRecord | None:
        """Writes a new task. Returns None when it is written, also by an earlier try of the same opening.

        Otherwise returns the receipt that stands in the way: then nothing was written.
        """
        ...

    def find_idempotency(self, key: TaskKey, agent: str, message_id: str) -> IdempotencyRecord | None:
        """The receipt of an earlier send, if there is one. Only tenant and owner of ``key`` count."""
        ...

    def read_head(self, key: TaskKey) -> HeadSnapshot | None:
        """The head and the last number, in one query; never an event without the head that it led to."""
        ...

    def read_log(self, key: TaskKey) -> tuple[Head, list[Event]] | None:
        """The head and the whole log (its contiguous run from 1)."""
        ...

    def read_task(self, key: TaskKey) -> tuple[Head, Task] | None:
        """The head and the task as they are: what the whole log folds to, of a long one read from its last fold on."""
        ...

    def read_task_at(self, head: Head, n: int) -> Task:
        """The task as of event ``n``, which has been read. ``head`` is as of any moment."""
        ...

    def store_snapshot(self, key: TaskKey) -> str:
        """Stores the task as it is, for readers; returns the name by which the head has to tell of it (``fold``).

        Doing it twice is doing it once. A fold that is gone or damaged is as good as none.
        """
        ...

    def read(self, key: TaskKey, after: int, limit: int = 200) -> list[Event]:
        """The contiguous run of events after ``after``, at most ``limit``."""
        ...

    def append(self, change: Change, receipt: IdempotencyRecord | None = None) -> bool:
        """Appends a status event and moves the head. False: the world has moved on; look again and decide anew."""
        ...

    def append_chunk(self, key: TaskKey, event: ArtifactEvent, expires: int) -> bool:
        """Appends an artifact chunk by one conditional put. False as in ``append``. ``expires`` is the head's."""
        ...

    def update_head(self, before: Head, after: Head) -> bool:
        """Moves the head without an event (lease, due time). False as in ``append``."""
        ...

    def read_steps(self, key: TaskKey) -> Mapping[str, StepResult]:
        """The results of all steps that have finished."""
        ...

    def store_step(self, key: TaskKey, name: str, result: StepResult, expires: int) -> StepResult:
        """Stores a step's result unless there is one, and returns the one that is stored now."""
        ...

    def store_callback(self, callback: str, key: TaskKey, call: str, expires: int) -> None:
        """Notes which call of which task a callback address stands for. Safe to repeat; ``expires`` is the head's."""
        ...

    def find_callback(self, callback: str) -> tuple[TaskKey, str] | None:
        """The task and the call that a callback address stands for, or None."""
        ...

    def list_due(self, shard: int, until: int) -> Iterator[DueItem]:
        """What is due in one of ``SHARDS`` shards, oldest first, read page by page as it is asked for.

        May be a moment late: what has just been moved may still be there.
        """
        ...

    def postpone(self, due: DueItem, now: int) -> None:
        """Makes an item that cannot be read due a minute later; each time in a row twice as late, up to an hour.

        Nothing else of the item is read or changed. One that is absent, or not due at ``now``, stays as it is.
        """
        ...


@dataclass(frozen=True, slots=True)
class DueItem:
    """An item that is due: the head of ``key``, or with ``config_id`` that configuration's cursor.

    ``place`` is where the store has it. ``key`` is None when the place says nothing to this release.
    """

    item_key: tuple[str, str]
    key: TaskKey | None
    config_id: str | None = None


@dataclass(frozen=True, slots=True)
class TaskEntry:
    """A task as the index knows it, perhaps a moment late. ``position`` is where it stands, for the next page."""

    task: str
    agent: str
    state: TaskState
    position: str


class TaskIndex(Protocol):
    """A caller's tasks, newest status first; tasks of the same millisecond by id, descending."""

    def list_page(
        self, principal: Principal, context_id: str | None, after: str | None, since: int, limit: int
    ) -> tuple[list[TaskEntry], str | None]:
        """At most ``limit`` entries behind position ``after`` whose status is not older than ``since`` (ms).

        Also the position to go on from; None when there are no more. ``context_id`` None is all contexts.
        """
        ...


class PushStore(Protocol):
    """Webhook configurations, their cursors and the attempts."""

    def add_config(
        self, before: Head, after: Head, config: PushConfig, cursor: Cursor, replaced: Cursor | None = None
    ) -> bool:
        """Writes a configuration and its cursor and moves the head. False as in ``TaskLog.append``.

        ``replaced`` is the cursor in whose place it comes. False also when that is not what is stored any more.
        """
        ...

    def close_config(self, key: TaskKey, before: Cursor) -> bool:
        """Deletes the configuration of a cursor, and closes the cursor, while that still equals ``before``."""
        ...

    def get_config(self, key: TaskKey, config_id: str) -> PushConfig | None:
        """A configuration, or None."""
        ...

    def list_configs(self, key: TaskKey) -> list[PushConfig]:
        """All configurations of a task, by id."""
        ...

    def list_cursors(self, key: TaskKey) -> list[Cursor]:
        """All cursors of a task, by config id."""
        ...

    def get_cursor(self, key: TaskKey, config_id: str) -> Cursor | None:
        """One cursor, or None."""
        ...

    def move_cursor(self, key: TaskKey, before: Cursor, after: Cursor) -> bool:
        """Replaces the cursor while the stored one still equals ``before`` in every field; False otherwise.

        A stored cursor that equals ``after`` is an earlier try of the same move that did succeed: True.
        A claim is a move that raises ``lease_no``; a move never brings a deleted cursor back, and a slow writer never
        turns a position back.
        """
        ...

    def remove_config(self, key: TaskKey, config_id: str, incarnation: str) -> None:
        """Deletes the configuration and the cursor of that incarnation. Absent is fine."""
        ...

    def record_attempt(self, key: TaskKey, attempt: Attempt, expires: int) -> None:
        """Stores what became of an attempt. Doing it twice is doing it once."""
        ...

    def list_attempts(self, key: TaskKey) -> list[Attempt]:
        """All attempts of a task, oldest first within each config."""
        ...

    def count_webhook(self, key: TaskKey, day: int, limit: int) -> bool:
        """Counts one more webhook of the task's owner on that day (since the epoch). False when there are ``limit``.

        A request that the network repeats may count twice.
        """
        ...

    def get_challenge_state(self, key: TaskKey, host: str) -> ChallengeState:
        """What webhooks of the task's owner have asked of a host."""
        ...

    def store_challenge_state(
        self, key: TaskKey, host: str, before: ChallengeState, after: ChallengeState, expires: int
    ) -> bool:
        """Replaces that while it is ``before``, until ``expires`` (seconds); False when it is another one.

        What is ``after`` already is an earlier try of the same that did succeed: True.
        """
        ...

    def list_exhausted(self, limit: int = 100, since: int = 0) -> Sequence[tuple[TaskKey, str]]:
        """What was given up at ``since`` (ms) or later (task, config), longest ago first. May be a moment late."""
        ...


class OwnerStore(Protocol):
    """What is kept of owners, to give each its share. Losing any of it does no harm."""

    def get_bucket(self, principal: Principal) -> SendBucket | None:
        """The owner's share; None when nothing is known."""
        ...

    def store_bucket(self, principal: Principal, before: SendBucket | None, after: SendBucket) -> bool:
        """Replaces the share while it is ``before``; False when it is another one, or when that cannot be told."""
        ...

    def get_unfinished(self, principal: Principal) -> UnfinishedTasks | None:
        """The owner's unfinished tasks as they were last counted."""
        ...

    def store_unfinished(self, principal: Principal, counted: UnfinishedTasks) -> None:
        """Stores what was counted."""
        ...

    def lease_stream(self, principal: Principal, name: str, until: int) -> None:
        """Keeps a stream of the owner's for open until ``until`` (ms). Doing it again moves that."""
        ...

    def release_stream(self, principal: Principal, name: str) -> None:
        """Forgets a stream. Absent is fine."""
        ...

    def count_upload(self, principal: Principal, day: int, size: int, limit: int) -> bool:
        """Counts so many bytes of uploads on that day (since the epoch). False when they would come to over ``limit``.

        What is refused is not counted; a write that is retried may count twice.
        """
        ...

    def count_streams(self, principal: Principal | None, limit: int) -> int:
        """How many streams of the owner's are open, of everybody's for None; counting ends at ``limit``."""
        ...


class ErasureStore(Protocol):
    """Whatever is stored of tasks and owners, expired or not; for erasing it. Everything may be done again."""

    def list_tasks(
        self, principal: Principal, context_id: str | None, after: str | None
    ) -> tuple[list[TaskKey], str | None]:
        """Some of the owner's tasks (of a context), and where to go on; None at the end. May be a moment late."""
        ...

    def count_items(self, key: TaskKey) -> int:
        """How many items a task has, without its receipts and the addresses of its calls."""
        ...

    def erase_related(self, key: TaskKey, receipts: Iterable[tuple[str, str]], callbacks: Iterable[str]) -> int:
        """Erases a task's receipts (agent, message id) and the addresses of its calls. Returns how many.

        Its owner's unfinished tasks are forgotten too: they are counted anew.
        """
        ...

    def erase_task(self, key: TaskKey) -> int:
        """Erases all other items of a task; the head goes last. Returns how many."""
        ...

    def count_owner_items(self, principal: Principal) -> int:
        """How many items are kept of the owner itself."""
        ...

    def erase_owner(self, principal: Principal) -> int:
        """Erases those. Returns how many."""
        ...


class Queues(Protocol):
    """Queues of bells."""

    def enqueue(self, message: QueueMessage, delay_s: int = 0) -> None:
        """Sends a bell, to arrive after ``delay_s`` (0 to 900 seconds)."""
        ...

    def enqueue_many(self, queues: Sequence[QueueMessage]) -> None:
        """Sends bells, to arrive at once, ten with each call. Raises when some were not sent; others may have been."""
        ...


class BlobStore(Protocol):
    """Big content, written once under a name that ends with its SHA-256."""

    def put(self, name: str, content: bytes) -> None:
        """Stores ``content``. Doing it twice is doing it once."""
        ...

    def get(self, name: str, size: int | None = None) -> bytes:
        """The content; raises KeyError when there is none, or none of ``size`` bytes."""
        ...

    def list_names(self, prefix: str) -> Iterator[str]:
        """The names that begin with ``prefix``."""
        ...

    def delete(self, name: str) -> None:
        """Deletes a content. Absent is fine."""
        ...


class PresignedBlobStore(BlobStore, Protocol):
    """Blobs that others can be let at, one by one, for a while."""

    def presign_get(self, name: str, seconds: int, filename: str | None = None) -> str:
        """A URL that gives the content to whoever has it, for ``seconds``; ``filename`` is what to save it as."""
        ...

    def presign_put(self, name: str, sha256: str, size: int, seconds: int) -> UploadSlot:
        """Where to PUT exactly the content of that SHA-256 (hex) and size (bytes), for ``seconds``."""
        ...

    def size(self, name: str) -> int | None:
        """How many bytes the content has; None when there is none."""
        ...


class ContentStore(Protocol):
    """Content beside the log (``domain.contents``). An owner reaches its own only."""

    def store(self, key: TaskKey, content: bytes) -> StoredFile:
        """Stores what a task made. Doing it twice is doing it once."""
        ...

    def read(self, principal: Principal, content: StoredFile) -> bytes:
        """The content, its SHA-256 checked; raises ContentNotFound."""
        ...

    def exists(self, principal: Principal, content: StoredFile) -> bool:
        """Whether the content is there, in its size."""
        ...

    def presign_get(self, principal: Principal, content: StoredFile, part: Part) -> str:
        """A URL at which whoever has it can fetch the content of ``part`` for an hour."""
        ...

    def presign_put(self, principal: Principal, content: StoredFile) -> UploadSlot:
        """Where to PUT an upload, for a quarter of an hour."""
        ...


class UrlFetcher(Protocol):
    """The way to a file at a URL that a client gave, past the guard. Never raises."""

    def __call__(self, url: str) -> Outcome:
        """GETs once, from vetted addresses only, without redirects; over ``domain.contents.LARGEST`` is too large."""
        ...


class ApiKeyStore(Protocol):
    """The API keys of a deployment, by their digests."""

    def find(self, digest: str, *, fresh: bool = True) -> ApiKey | None:
        """The key, unless there is none or it was revoked. What is not ``fresh`` may be as it was a moment ago."""
        ...

    def add(self, key: ApiKey) -> None:
        """Keeps a key."""
        ...

    def revoke(self, digest: str) -> None:
        """Forgets a key. Absent is fine."""
        ...

    def list_all(self) -> list[ApiKey]:
        """Every key, by digest."""
        ...


class ServiceTokenSealer(Protocol):
    """Seals the claims of passes (``domain.access``), so that whoever holds one can neither make nor change one."""

    def seal(self, claims: str) -> bytes:
        """The claims, sealed. Raises Overloaded when it cannot be done now."""
        ...

    def open(self, sealed: bytes) -> str:
        """The claims. Raises ValueError when this deployment has not sealed them as a pass, Overloaded as above."""
        ...


class Sealer(Protocol):
    """Seals small secrets. What was sealed for one ``context`` opens for no other."""

    def seal(self, secret: str, context: str) -> str:
        """Sealed text that may be stored."""
        ...

    def open(self, sealed: str, context: str) -> str:
        """The secret; raises ValueError when it was not sealed for ``context``."""
        ...


@dataclass(frozen=True, slots=True)
class Signed:
    """A compact JWS, and the key that signed it."""

    token: str
    kid: str


class Signer(Protocol):
    """Signs tokens with the ring's current key."""

    def sign(self, typ: str, claims: Mapping[str, str | int]) -> Signed:
        """A JWT (ES256) with that ``typ``."""
        ...


class KeyFactory(Protocol):
    """Makes signing keys, and signs with them what is no token."""

    def sign(self, key: SigningKey, content: bytes) -> bytes:
        """An ES256 signature in JWS form: 64 bytes, R and S."""
        ...

    def make(self, now: int) -> SigningKey:
        """A fresh ES256 key, made at ``now``; its ``kid`` is the RFC 7638 thumbprint."""
        ...


class InlineRunner(Protocol):
    """Running inline agents inside the request. Every method says no for an agent that is not inline."""

    def answer_directly(
        self, agent_id: str, message: Message, accepted_output_modes: tuple[str, ...]
    ) -> Message | None:
        """The message that the agent answers with, when it needs no task for it; None otherwise."""
        ...

    def run(self, agent_id: str, key: TaskKey, time_ms: int) -> bool:
        """Runs the task for at most ``time_ms`` and hands on what is left of it."""
        ...

    def start(self, agent_id: str, key: TaskKey, time_ms: int) -> bool:
        """The same, without waiting for it."""
        ...


class RemoteAgents(Protocol):
    """Other agents, by the names of this deployment's directory. Raises AgentCallFailed for whatever does not work.

    ``caller`` is in whose name they are asked: agents of this deployment serve their sibling's caller and nobody else,
    and only as far as its scopes go.
    """

    def address(self, agent: str) -> str:
        """The base URL that the directory has for the agent."""
        ...

    def with_trace(self, trace: str) -> RemoteAgents:
        """The same, whose calls belong to ``trace`` (a ``traceparent``; "" is none)."""
        ...

    def card(self, agent: str) -> AgentCard:
        """The agent's card, whose interfaces are some that we speak."""
        ...

    def send(self, caller: Caller, agent: str, message: Message, callback: PushRequest) -> Task | Message:
        """Sends a message without waiting for the task; news of it comes to ``callback``. Safe to repeat."""
        ...

    def get(self, caller: Caller, agent: str, task_id: str) -> Task:
        """The task as it is now."""
        ...

    def cancel(self, caller: Caller, agent: str, task_id: str) -> None:
        """Asks for the task's end. A task that has ended is fine."""
        ...


@dataclass(frozen=True, slots=True)
class CallbackRequest:
    """A webhook that came in: header names in lower case, the body as it was sent."""

    headers: Mapping[str, str]
    body: bytes


class InvalidCallback(Exception):
    """Nothing proves that the agent sent it. The text is for the log."""


class CallbackVerifier(Protocol):
    """Whether a webhook comes from the agent that was called."""

    def verify(self, incoming: CallbackRequest, call: ExpectedCallback) -> str | None:
        """The challenge to answer with, None for a notification.

        Raises Unproven, and Overloaded when the agent's keys cannot be had just now.
        """
        ...


@dataclass(frozen=True, slots=True)
class ExpectedCallback:
    """What a call waits for: news from the agent at ``address`` to ``url``, with ``token``, about ``task`` if known."""

    address: str
    url: str
    token: str
    task: str | None = None


class Resolver(Protocol):
    """The names of the internet, asked when a webhook is registered."""

    def check(self, target: WebhookTarget) -> None:
        """Returns when every address of the target's name may be sent to; takes a few seconds at most.

        Raises UrlNotAllowed for an address that may not, NameUnresolved when the name has none now.
        """
        ...


class BreakerStore(Protocol):
    """What the instances tell each other about hosts that do not answer. A lost word does no harm."""

    def get_open_breaker(self, host: str) -> OpenBreaker | None:
        """The last trip that an instance told of, for an hour after its time."""
        ...

    def store_open_breaker(self, host: str, open_breaker: OpenBreaker) -> None:
        """Tells the others."""
        ...


class Metrics(Protocol):
    """What operators look at, and are woken for."""

    def count(self, name: str, **what: str | int) -> None:
        """Counts one ``name`` (of ``domain.metrics``); ``what`` says in the log what it was about, in ids."""
        ...

    def record(self, values: Mapping[str, float], **what: str | int) -> None:
        """Notes values by name, in the units of ``domain.metrics``; ``what`` has their one dimension, and ids."""
        ...


class KeyRingStore(Protocol):
    """The one secret value that holds the key ring."""

    def load(self) -> KeyRing | None:
        """The ring, or None before the first."""
        ...

    def save(self, ring: KeyRing, before: KeyRing | None) -> bool:
        """Stores the ring in place of ``before`` (None: of none). False: that is not what is stored any more.

        A stored ring that equals ``ring`` is an earlier try of the same save that did succeed: True.
        """
        ...


class Publications(Protocol):
    """Public documents that the rotator writes and the api serves: the key set, cards, the base URL."""

    def publish(self, name: str, document: Json) -> None:
        """Stores a document."""
        ...

    def get_document(self, name: str) -> Json:
        """The document, or None."""
        ...


class Sender(Protocol):
    """The only way out to a URL that a client gave."""

    def post(self, url: str, headers: Mapping[str, str], body: bytes, deadline_ms: int) -> Outcome:
        """POSTs once. Never raises for what networks and strangers do: that is in the outcome."""
        ...
