"""How agents of this deployment show each other for whom they work: by passes, API keys that end within the hour.

What one agent asks of another it asks in the name of its own caller, so that the tasks it makes there belong to that
caller too. It may do what that caller may do, and admits nobody once the key is revoked that the caller signed in with.
A pass is kept as a digest only, and in clear nowhere but in the memory of the process that made it.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Final

from a2a_serverless.domain.access import ENTROPY_BYTES, PASS_PREFIX, ApiKey, digest_of, spelled

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_serverless.domain.access import Caller
    from a2a_serverless.ports import ApiKeys

LIFE_MS: Final = 3_600_000
USED_MS: Final = LIFE_MS - 300_000  # nobody starts out with a pass that is about to end
KEPT: Final = 1000


class Passes:
    """The passes that this process has made. ``entropy`` gives so many random bytes, ``now`` the time in ms."""

    def __init__(self, keys: ApiKeys, now: Callable[[], int], entropy: Callable[[int], bytes]) -> None:
        self._keys = keys
        self._now = now
        self._entropy = entropy
        self._lock = Lock()
        self._made: dict[Caller, tuple[int, str]] = {}

    def headers(self, caller: Caller) -> dict[str, str]:
        """What to send along so that a sibling serves ``caller``."""
        with self._lock:
            made = self._made.get(caller)
            if made is None or self._now() - made[0] >= USED_MS:
                made = self._new(caller)
        return {"X-API-Key": made[1]}

    def _new(self, caller: Caller) -> tuple[int, str]:
        now, key = self._now(), spelled(self._entropy(ENTROPY_BYTES), PASS_PREFIX)
        note, expires = "a call to a sibling", now + LIFE_MS
        made = ApiKey(digest_of(key), caller.who, note, now, scopes=caller.scopes, expires=expires, parent=caller.key)
        self._keys.add(made)
        if len(self._made) >= KEPT:
            self._made.clear()
        self._made[caller] = (now, key)
        return self._made[caller]
