"""Protocols (ports) for everything outside: storage, queues, network, time. ``adapters`` implements them.

Every write may be retried, and every call may fail after it took effect; each method says what holds then.
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
    """Makes a send idempotent: it records which ``task`` a (tenant, owner, agent, message id) created.

    ``digest`` is the SHA-256 of the message's canonical form; it shows when the same id comes with another body.
    """

    agent: str
    message_id: str
    digest: str
    task: str


@dataclass(frozen=True, slots=True)
class NewTask:
    """All items of a new task; they are written in one transaction."""

    head: Head
    event: StatusEvent
    idempotency: IdempotencyRecord | None
    pushes: tuple[tuple[PushConfig, Cursor], ...] = ()


@dataclass(frozen=True, slots=True)
class StepResult:
    """The stored result of a named step; the first write wins. ``arguments`` is a digest of the step's arguments.

    ``fence`` is that of the run in which the step emitted chunks (``ArtifactEvent.step`` marks them in the log), or 0.
    ``counts`` says how often the step reported progress and asked each question.
    """

    arguments: str
    value: Json
    fence: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)


class Clock(Protocol):
    """The only source of time in this package."""

    def now(self) -> int:
        """Milliseconds since the epoch."""
        ...

    def sleep(self, seconds: float) -> None:
        """Returns after ``seconds``."""
        ...


class Ids(Protocol):
    """Makes unique identifiers that cannot be guessed."""

    def new(self) -> str:
        """A new identifier, URL-safe, at most 40 characters."""
        ...


class TaskLog(Protocol):
    """The tasks and their logs. All reads are strongly consistent; expired tasks do not exist."""

    def create(self, opening: NewTask) -> IdempotencyRecord | None:
        """Writes a new task. Returns None when it is written, also by an earlier try of the same ``opening``.

        Otherwise nothing was written, and it returns the idempotency record that exists already.
        """
        ...

    def find_idempotency(self, key: TaskKey, agent: str, message_id: str) -> IdempotencyRecord | None:
        """The idempotency record of an earlier send, or None. Only tenant and owner of ``key`` are used."""
        ...

    def read_head(self, key: TaskKey) -> HeadSnapshot | None:
        """The head and the last event number from one query; the head is never older than that event."""
        ...

    def read_log(self, key: TaskKey) -> tuple[Head, list[Event]] | None:
        """The head and the whole log: the events from 1 without a gap."""
        ...

    def read_task(self, key: TaskKey) -> tuple[Head, Task] | None:
        """The head and the current task, by a replay of the log; a long log is replayed from its last snapshot."""
        ...

    def read_task_at(self, head: Head, n: int) -> Task:
        """The task as of event ``n``, which must have been read before. ``head`` may be of any moment."""
        ...

    def store_snapshot(self, key: TaskKey) -> str:
        """Stores a snapshot of the current task and returns the reference that belongs in ``Head.fold``.

        Idempotent. Readers ignore a missing or corrupt snapshot.
        """
        ...

    def read(self, key: TaskKey, after: int, limit: int = 200) -> list[Event]:
        """The events after number ``after``, without a gap, at most ``limit``."""
        ...

    def append(self, change: Change, receipt: IdempotencyRecord | None = None) -> bool:
        """Appends a status event and updates the head. False on a conflict: read the head again and decide again."""
        ...

    def append_chunk(self, key: TaskKey, event: ArtifactEvent, expires: int) -> bool:
        """Appends an artifact chunk by one conditional put. False as in ``append``. ``expires`` is the head's."""
        ...

    def update_head(self, before: Head, after: Head) -> bool:
        """Updates the head without an event (lease, due time). False as in ``append``."""
        ...

    def read_steps(self, key: TaskKey) -> Mapping[str, StepResult]:
        """The results of all steps that have finished."""
        ...

    def store_step(self, key: TaskKey, name: str, result: StepResult, expires: int) -> StepResult:
        """Stores a step's result unless one is stored already, and returns the stored one."""
        ...

    def store_callback(self, callback: str, key: TaskKey, call: str, expires: int) -> None:
        """Stores which call of which task a callback address belongs to. Idempotent; ``expires`` is the head's."""
        ...

    def find_callback(self, callback: str) -> tuple[TaskKey, str] | None:
        """The task and the call that a callback address belongs to, or None."""
        ...

    def list_due(self, shard: int, until: int) -> Iterator[DueItem]:
        """The items due by ``until`` (ms) in one of ``SHARDS`` shards, oldest first, read page by page on demand.

        Eventually consistent: an item that was changed just now may still be listed.
        """
        ...

    def postpone(self, due: DueItem, now: int) -> None:
        """Delays the due time of an item that cannot be read: by a minute, doubled each time in a row, up to an hour.

        Nothing else of the item is read or changed. An item that is absent or not due at ``now`` (ms) is left alone.
        """
        ...


@dataclass(frozen=True, slots=True)
class DueItem:
    """An item that is due: the head of ``key``, or with ``config_id`` that configuration's cursor.

    ``item_key`` is its key in the store. ``key`` is None when this release cannot interpret the item key.
    """

    item_key: tuple[str, str]
    key: TaskKey | None
    config_id: str | None = None


@dataclass(frozen=True, slots=True)
class TaskEntry:
    """A task in the index, which is eventually consistent. ``position`` is the page token for what follows it."""

    task: str
    agent: str
    state: TaskState
    position: str


class TaskIndex(Protocol):
    """A caller's tasks, newest status first; tasks of the same millisecond by id, descending."""

    def list_page(
        self, principal: Principal, context_id: str | None, after: str | None, since: int, limit: int
    ) -> tuple[list[TaskEntry], str | None]:
        """At most ``limit`` entries after position ``after`` whose status is not older than ``since`` (ms).

        Also the position of the next page; None when there are no more. ``context_id`` None means all contexts.
        """
        ...


class PushStore(Protocol):
    """Webhook configurations, their cursors and the attempts."""

    def add_config(
        self, before: Head, after: Head, config: PushConfig, cursor: Cursor, replaced: Cursor | None = None
    ) -> bool:
        """Writes a configuration and its cursor and updates the head. False as in ``TaskLog.append``.

        ``replaced`` is the cursor that it replaces. False also when the stored cursor is no longer that one.
        """
        ...

    def close_config(self, key: TaskKey, before: Cursor) -> bool:
        """Deletes a cursor's configuration and closes the cursor. False when the cursor no longer equals ``before``."""
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
        """Replaces the cursor if the stored one equals ``before`` in every field; False otherwise.

        True also when the stored cursor equals ``after``: then an earlier try of the same call succeeded.
        A worker takes the lease by a move that raises ``lease_no``. A move never recreates a deleted cursor, and a
        slow writer never sets a position back.
        """
        ...

    def remove_config(self, key: TaskKey, config_id: str, incarnation: str) -> None:
        """Deletes the configuration and the cursor of that incarnation. Nothing happens if they are absent."""
        ...

    def record_attempt(self, key: TaskKey, attempt: Attempt, expires: int) -> None:
        """Stores an attempt and its result. Idempotent."""
        ...

    def list_attempts(self, key: TaskKey) -> list[Attempt]:
        """All attempts of a task, oldest first within each config."""
        ...

    def count_webhook(self, key: TaskKey, day: int, limit: int) -> bool:
        """Counts a webhook of the task's owner on ``day`` (days since the epoch). False when ``limit`` is reached.

        A retried request may count twice.
        """
        ...

    def get_challenge_state(self, key: TaskKey, host: str) -> ChallengeState:
        """The challenges that webhooks of the task's owner have sent to a host."""
        ...

    def store_challenge_state(
        self, key: TaskKey, host: str, before: ChallengeState, after: ChallengeState, expires: int
    ) -> bool:
        """Replaces the state if it equals ``before``; False otherwise. It is stored until ``expires`` (seconds).

        True also when the state equals ``after``: then an earlier try of the same call succeeded.
        """
        ...

    def list_exhausted(self, limit: int = 100, since: int = 0) -> Sequence[tuple[TaskKey, str]]:
        """Webhooks (task, config id) given up at ``since`` (ms) or later, oldest first. Eventually consistent."""
        ...


class OwnerStore(Protocol):
    """State per owner for quotas. It may be lost without harm."""

    def get_bucket(self, principal: Principal) -> SendBucket | None:
        """The owner's token bucket for sends; None when there is none."""
        ...

    def store_bucket(self, principal: Principal, before: SendBucket | None, after: SendBucket) -> bool:
        """Replaces the bucket if it equals ``before``; False when it does not, or when that is not known."""
        ...

    def get_unfinished(self, principal: Principal) -> UnfinishedTasks | None:
        """The owner's unfinished tasks as last counted, or None."""
        ...

    def store_unfinished(self, principal: Principal, counted: UnfinishedTasks) -> None:
        """Stores the result of a count."""
        ...

    def lease_stream(self, principal: Principal, name: str, until: int) -> None:
        """Counts a stream of the owner's as open until ``until`` (ms). A further call replaces that time."""
        ...

    def release_stream(self, principal: Principal, name: str) -> None:
        """Removes a stream. Nothing happens if it is absent."""
        ...

    def count_upload(self, principal: Principal, day: int, size: int, limit: int) -> bool:
        """Counts ``size`` bytes of uploads on ``day`` (days since the epoch). False if the sum would exceed ``limit``.

        A refused upload is not counted; a retried write may count twice.
        """
        ...

    def count_streams(self, principal: Principal | None, limit: int) -> int:
        """The number of the owner's open streams, or of all for None; counting stops at ``limit``."""
        ...


class ErasureStore(Protocol):
    """All stored items of tasks and owners, expired or not, for erasure. Every method may be repeated."""

    def list_tasks(
        self, principal: Principal, context_id: str | None, after: str | None
    ) -> tuple[list[TaskKey], str | None]:
        """A page of the owner's tasks (of a context, or all), and where the next page starts, or None.

        Eventually consistent.
        """
        ...

    def count_items(self, key: TaskKey) -> int:
        """How many items a task has, without idempotency records and callback addresses."""
        ...

    def erase_related(self, key: TaskKey, receipts: Iterable[tuple[str, str]], callbacks: Iterable[str]) -> int:
        """Erases a task's idempotency records (agent, message id) and callback addresses. Returns how many.

        Also erases the count of its owner's unfinished tasks; it is made again when it is needed.
        """
        ...

    def erase_task(self, key: TaskKey) -> int:
        """Erases all other items of a task, the head last. Returns how many."""
        ...

    def count_owner_items(self, principal: Principal) -> int:
        """How many items are stored about the owner itself."""
        ...

    def erase_owner(self, principal: Principal) -> int:
        """Erases the items about the owner itself. Returns how many."""
        ...


class Queues(Protocol):
    """Sends queue messages."""

    def enqueue(self, message: QueueMessage, delay_s: int = 0) -> None:
        """Sends a queue message that arrives after ``delay_s`` seconds (0 to 900)."""
        ...

    def enqueue_many(self, queues: Sequence[QueueMessage]) -> None:
        """Sends queue messages without a delay, ten with each call. Raises when some were not sent, perhaps not all."""
        ...


class BlobStore(Protocol):
    """Large content, written once under a name that ends with its SHA-256."""

    def put(self, name: str, content: bytes) -> None:
        """Stores ``content``. Idempotent."""
        ...

    def get(self, name: str, size: int | None = None) -> bytes:
        """The content; raises KeyError when it is absent or does not have ``size`` bytes."""
        ...

    def list_names(self, prefix: str) -> Iterator[str]:
        """The names that begin with ``prefix``."""
        ...

    def delete(self, name: str) -> None:
        """Deletes a blob. Nothing happens if it is absent."""
        ...


class PresignedBlobStore(BlobStore, Protocol):
    """Blobs that can be shared by presigned URL."""

    def presign_get(self, name: str, seconds: int, filename: str | None = None) -> str:
        """A URL that returns the content for ``seconds``, without credentials; ``filename`` is for saving it."""
        ...

    def presign_put(self, name: str, sha256: str, size: int, seconds: int) -> UploadSlot:
        """A request that uploads content with exactly that SHA-256 (hex) and size (bytes), valid for ``seconds``."""
        ...

    def size(self, name: str) -> int | None:
        """The size of the content in bytes; None when it is absent."""
        ...


class ContentStore(Protocol):
    """Content outside the log (``domain.contents``). Owners can only access their own."""

    def store(self, key: TaskKey, content: bytes) -> StoredFile:
        """Stores content that a task produced. Idempotent."""
        ...

    def read(self, principal: Principal, content: StoredFile) -> bytes:
        """The content, after a check of its SHA-256; raises ContentNotFound."""
        ...

    def exists(self, principal: Principal, content: StoredFile) -> bool:
        """Whether the content is stored with its full size."""
        ...

    def presign_get(self, principal: Principal, content: StoredFile, part: Part) -> str:
        """A URL that returns the content of ``part`` for an hour, without credentials."""
        ...

    def presign_put(self, principal: Principal, content: StoredFile) -> UploadSlot:
        """A request that uploads the content, valid for a quarter of an hour."""
        ...


class UrlFetcher(Protocol):
    """Fetches a file from a URL that a client gave, after the URL checks. Never raises."""

    def __call__(self, url: str) -> Outcome:
        """One GET, only from checked addresses, without redirects, of at most ``domain.contents.LARGEST`` bytes."""
        ...


class ApiKeyStore(Protocol):
    """The API keys of a deployment, stored by their digests."""

    def find(self, digest: str, *, fresh: bool = True) -> ApiKey | None:
        """The key; None if it is absent or revoked. Without ``fresh`` the answer may be slightly out of date."""
        ...

    def add(self, key: ApiKey) -> None:
        """Stores a key."""
        ...

    def revoke(self, digest: str) -> None:
        """Deletes a key. Nothing happens if it is absent."""
        ...

    def list_all(self) -> list[ApiKey]:
        """Every key, sorted by digest."""
        ...


class ServiceTokenSealer(Protocol):
    """Seals the claims of service tokens (``domain.access``): holders can neither create nor change a token."""

    def seal(self, claims: str) -> bytes:
        """The sealed claims. Raises Overloaded when sealing is not possible now."""
        ...

    def open(self, sealed: bytes) -> str:
        """The claims. Raises ValueError if this deployment did not seal them as a service token, else as ``seal``."""
        ...


class Sealer(Protocol):
    """Seals small secrets. A secret sealed for one ``context`` cannot be opened for another."""

    def seal(self, secret: str, context: str) -> str:
        """The sealed secret as text that may be stored."""
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
    """Makes signing keys, and signs content other than tokens with them."""

    def sign(self, key: SigningKey, content: bytes) -> bytes:
        """An ES256 signature in JWS form: 64 bytes, R and S."""
        ...

    def make(self, now: int) -> SigningKey:
        """A new ES256 key, made at ``now`` (ms); its ``kid`` is the RFC 7638 thumbprint."""
        ...


class InlineRunner(Protocol):
    """Runs inline agents inside the request. Every method returns None or False for an agent that is not inline."""

    def answer_directly(
        self, agent_id: str, message: Message, accepted_output_modes: tuple[str, ...]
    ) -> Message | None:
        """The message that the agent answers with if it does so without a task; None otherwise."""
        ...

    def run(self, agent_id: str, key: TaskKey, time_ms: int) -> bool:
        """Runs the task for at most ``time_ms`` and hands over what is left of it."""
        ...

    def start(self, agent_id: str, key: TaskKey, time_ms: int) -> bool:
        """As ``run``, but returns without waiting for the end."""
        ...


class RemoteAgents(Protocol):
    """A client of other agents, by their names in the agent registry. Every failure raises AgentCallFailed.

    Calls are made in the name of ``caller``: agents of the same deployment serve that caller only, within its scopes.
    """

    def address(self, agent: str) -> str:
        """The agent's base URL in the registry."""
        ...

    def with_trace(self, trace: str) -> RemoteAgents:
        """A client whose calls belong to ``trace`` (a ``traceparent``; "" means none)."""
        ...

    def card(self, agent: str) -> AgentCard:
        """The agent's card, with the interfaces that we support."""
        ...

    def send(self, caller: Caller, agent: str, message: Message, callback: PushRequest) -> Task | Message:
        """Sends a message without waiting for the task, whose callbacks come to ``callback``. Idempotent."""
        ...

    def get(self, caller: Caller, agent: str, task_id: str) -> Task:
        """The current task."""
        ...

    def cancel(self, caller: Caller, agent: str, task_id: str) -> None:
        """Cancels the task. No error if it has ended."""
        ...


@dataclass(frozen=True, slots=True)
class CallbackRequest:
    """A received callback: header names in lower case, the body as sent."""

    headers: Mapping[str, str]
    body: bytes


class InvalidCallback(Exception):
    """A callback that is not proven to come from the called agent. The text is for the log."""


class CallbackVerifier(Protocol):
    """Checks that a callback comes from the agent that was called."""

    def verify(self, incoming: CallbackRequest, call: ExpectedCallback) -> str | None:
        """The challenge to answer with, or None for a notification.

        Raises InvalidCallback, and Overloaded when the agent's keys cannot be fetched now.
        """
        ...


@dataclass(frozen=True, slots=True)
class ExpectedCallback:
    """The callback that a call expects: from the agent at ``address`` to ``url``, with ``token``.

    It is about ``task``, if that is known.
    """

    address: str
    url: str
    token: str
    task: str | None = None


class Resolver(Protocol):
    """Resolves host names when a webhook is registered."""

    def check(self, target: WebhookTarget) -> None:
        """Returns if every address of the target's name is allowed; takes a few seconds at most.

        Raises UrlNotAllowed for an address that is not, NameUnresolved when the name has no address now.
        """
        ...


class BreakerStore(Protocol):
    """Open circuit breakers, shared between instances. They may be lost without harm."""

    def get_open_breaker(self, host: str) -> OpenBreaker | None:
        """The host's open breaker that was stored last, until an hour after its time; None without one."""
        ...

    def store_open_breaker(self, host: str, open_breaker: OpenBreaker) -> None:
        """Stores an open breaker for the other instances."""
        ...


class Metrics(Protocol):
    """Operational metrics."""

    def count(self, name: str, **what: str | int) -> None:
        """Adds one to the metric ``name`` (of ``domain.metrics``); ``what`` holds its dimension, if any, and ids."""
        ...

    def record(self, values: Mapping[str, float], **what: str | int) -> None:
        """Records values by name, in the units of ``domain.metrics``; ``what`` as in ``count``."""
        ...


class KeyRingStore(Protocol):
    """Stores the key ring in one secret value."""

    def load(self) -> KeyRing | None:
        """The key ring, or None when none was stored yet."""
        ...

    def save(self, ring: KeyRing, before: KeyRing | None) -> bool:
        """Stores ``ring`` if the stored one equals ``before`` (None: nothing is stored); False otherwise.

        True also when the stored ring equals ``ring``: then an earlier try of the same call succeeded.
        """
        ...


class Publications(Protocol):
    """Public documents that the rotator function writes and the API serves: the key set, cards, the base URL."""

    def publish(self, name: str, document: Json) -> None:
        """Stores a document."""
        ...

    def get_document(self, name: str) -> Json:
        """The document, or None."""
        ...


class Sender(Protocol):
    """Sends requests to URLs that clients gave; nothing else does."""

    def post(self, url: str, headers: Mapping[str, str], body: bytes, deadline_ms: int) -> Outcome:
        """One POST. Network and receiver errors do not raise; they are in the outcome."""
        ...
