"""Ports of the system: time, ids, queue messages, metrics, blobs, secrets, keys, the sender."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from a2a_serverless.domain.contents import UploadSlot
    from a2a_serverless.domain.key_ring import KeyRing, SigningKey
    from a2a_serverless.domain.outcomes import Outcome
    from a2a_serverless.domain.queue_messages import QueueMessage


class Clock(Protocol):
    """The time, for all code that stores or compares times."""

    def now(self) -> int:
        """Milliseconds since the epoch."""

    def sleep(self, seconds: float) -> None:
        """Returns after ``seconds``."""


class Ids(Protocol):
    """Makes unique identifiers that cannot be guessed."""

    def new(self) -> str:
        """A new identifier, URL-safe, at most 40 characters."""

    def secret(self) -> str:
        """A new URL-safe text of 256 random bits, for an address that authorizes whoever knows it."""


class Queues(Protocol):
    """Sends queue messages."""

    def enqueue(self, message: QueueMessage, delay_s: int = 0) -> None:
        """Sends a queue message that arrives after ``delay_s`` seconds (0 to 900)."""

    def enqueue_many(self, messages: Sequence[QueueMessage]) -> None:
        """Sends queue messages without a delay, ten with each call. Raises if some, perhaps not all, were not sent."""


class Metrics(Protocol):
    """Operational metrics."""

    def count(self, name: str, **fields: str | int) -> None:
        """Adds one to the metric ``name`` (of ``domain.metrics``); ``fields`` holds its dimension, if any, and ids."""

    def record(self, values: Mapping[str, float], **fields: str | int) -> None:
        """Records values by name, in the units of ``domain.metrics``; ``fields`` as in ``count``."""


class BlobStore(Protocol):
    """Large content, written once under a name that ends with its SHA-256, and shared by presigned URL."""

    def put(self, name: str, content: bytes) -> None:
        """Stores ``content``. Idempotent."""

    def get(self, name: str, size: int | None = None) -> bytes:
        """The content; raises KeyError when it is absent or does not have ``size`` bytes."""

    def list_names(self, prefix: str) -> Iterator[str]:
        """The names that begin with ``prefix``."""

    def delete(self, name: str) -> None:
        """Deletes a blob. Nothing happens if it is absent."""

    def presign_get(self, name: str, seconds: int, filename: str | None = None) -> str:
        """A URL that returns the content for ``seconds``, without credentials; ``filename`` is for saving it."""

    def presign_put(self, name: str, sha256: str, size: int, seconds: int) -> UploadSlot:
        """A request that uploads content with exactly that SHA-256 (hex) and size (bytes), valid for ``seconds``."""

    def size(self, name: str) -> int | None:
        """The size of the content in bytes; None when it is absent."""


UrlFetcher: TypeAlias = "Callable[[str], Outcome]"
"""Fetches a file from a client's URL, by one GET from checked addresses, without redirects. Never raises.

The file has at most ``domain.contents.LARGEST`` bytes.
"""


class Sender(Protocol):
    """Sends requests to clients' URLs; no other code does."""

    def post(self, url: str, headers: Mapping[str, str], body: bytes, deadline_ms: int) -> Outcome:
        """One POST. Network and receiver errors do not raise; they are in the outcome."""


class ServiceTokenSealer(Protocol):
    """Seals the claims of service tokens (``domain.access``): holders can neither create nor change a token."""

    def seal(self, claims: str) -> bytes:
        """The sealed claims. Raises Overloaded when sealing is not possible now."""

    def open(self, sealed: bytes) -> str:
        """The claims. Raises ValueError if this deployment did not seal them as a service token, else as ``seal``."""


class Sealer(Protocol):
    """Seals small secrets. A secret sealed for one ``context`` cannot be opened for another."""

    def seal(self, secret: str, context: str) -> str:
        """The sealed secret as text that may be stored."""

    def open(self, sealed: str, context: str) -> str:
        """The secret; raises ValueError when it was not sealed for ``context``."""


@dataclass(frozen=True, slots=True)
class Signed:
    """A compact JWS, and the key that signed it."""

    token: str
    kid: str


class Signer(Protocol):
    """Signs tokens with the ring's current key."""

    def sign(self, typ: str, claims: Mapping[str, str | int]) -> Signed:
        """A JWT (ES256) with that ``typ``."""


class KeyFactory(Protocol):
    """Makes signing keys, and signs content other than tokens with them."""

    def sign(self, key: SigningKey, content: bytes) -> bytes:
        """An ES256 signature in JWS form: 64 bytes, R and S."""

    def make(self, now: int) -> SigningKey:
        """A new ES256 key, made at ``now`` (ms); its ``kid`` is the RFC 7638 thumbprint."""


class KeyRingStore(Protocol):
    """Stores the key ring in one secret value."""

    def load(self) -> KeyRing | None:
        """The key ring; None before the first one is stored."""

    def save(self, ring: KeyRing, before: KeyRing | None) -> bool:
        """Stores ``ring`` if the stored ring equals ``before`` (or ``ring`` already); False otherwise."""
