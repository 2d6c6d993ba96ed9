"""A client of the project's webhook receiver: registers a token, and lists what it has accepted or refused.

It uses the receiver's HTTP API only: nothing of the receiver is imported.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import quote

from a2a_serverless.client import ClientRequest, HttpError, ResponseTimeout, Transport
from a2a_serverless.client.client import read_events
from a2a_serverless.client.discovery import fetch
from a2a_serverless.client.errors import objects_in
from a2a_serverless.domain.model import JsonObject
from a2a_serverless.protocol.v1 import TaskPushNotificationConfig
from a2a_serverless_tools.cli.formatting import bytes_words, content_words

CREATED = 201
OK = 200
LARGEST = 16 * 1024 * 1024
QUIET_S = 5.0


@dataclass(frozen=True, slots=True)
class InboxEntry:
    """One request that the receiver got. ``at``: ms since the epoch. ``why`` is empty unless it was refused."""

    number: int
    at: int
    outcome: str
    event: int | None
    task_id: str
    kid: str
    jti: str
    state: str | None
    why: str
    view: JsonObject = field(repr=False)

    @property
    def verified(self) -> bool:
        """True if it is genuine, expected and no repetition."""
        return self.outcome in {"accepted", "late"}

    @property
    def artifact(self) -> str:
        """The name of the artifact in it; empty when there is none."""
        return next((name for name, _ in _artifacts(self.view)), "")

    @property
    def says(self) -> str:
        """A short description of its content."""
        artifacts = [f"+ {name}, {size}" for name, size in _artifacts(self.view)]
        words = [*filter(None, [self.state, *artifacts, _text(self.view.get("message"))])]
        return ": ".join(words) or self.outcome


@dataclass(frozen=True, slots=True)
class InboxClient:
    """The receiver at ``url``."""

    url: str
    transport: Transport

    def expect(self, agent: str = "") -> TaskPushNotificationConfig:
        """Registers a token at the receiver; returns the webhook to give to an agent. Raises HttpError.

        ``agent`` is the agent's name in the inbox.
        """
        headers = {"Content-Type": "application/json"}
        url = f"{self.url.rstrip('/')}/expectations{f'?agent={quote(agent[:100])}' if agent else ''}"
        with self.transport(ClientRequest(url, headers, b"{}")) as answer:
            body = answer.body.read(LARGEST)
            if answer.status != CREATED:
                raise HttpError(answer.status, f"the receiver at {self.url} did not register a token")
        config = json.loads(body)["pushNotificationConfig"]
        return TaskPushNotificationConfig(url=config["url"], token=config["token"])

    def list_entries(self, after: int = 0) -> list[InboxEntry]:
        """Lists the entries after number ``after``. Works also with receivers on Lambda, which have no live feed."""
        document = fetch(f"{self.url.rstrip('/')}/api/notifications?after={after}", self.transport)
        return [entry_of(view) for view in objects_in(document, "entries")]

    def entries(self, after: int = 0) -> Iterator[InboxEntry | None]:
        """Yields the entries after number ``after`` as they arrive; None after each ``QUIET_S`` seconds without one."""
        while True:
            try:
                for entry in self._feed(after):
                    after = entry.number
                    yield entry
            except ResponseTimeout:
                yield None

    def _feed(self, after: int) -> Iterator[InboxEntry]:
        call = ClientRequest(f"{self.url.rstrip('/')}/events?after={after}", seconds=QUIET_S, waits=True)
        with self.transport(call) as answer:
            if answer.status != OK:
                raise HttpError(answer.status, f"the receiver at {self.url} has no live feed")
            for event in read_events(answer.body, LARGEST):
                yield entry_of(json.loads(event.data))


def entry_of(view: JsonObject) -> InboxEntry:
    """Parses an entry of the feed."""
    refusal, claimed = _object(view.get("refusal")), _object(view.get("claimed"))
    words, event = claimed | view, view.get("eventNumber")
    return InboxEntry(
        number=int(str(view["number"])),
        at=int(str(view["receivedAt"])),
        outcome=str(view["outcome"]),
        event=event if isinstance(event, int) else None,
        task_id=str(words.get("taskId") or ""),
        kid=str(words.get("kid") or ""),
        jti=str(words.get("jti") or ""),
        state=str(view["state"]) if view.get("state") else None,
        why=f"{refusal.get('code')}: {refusal.get('reason')}" if refusal else "",
        view=view,
    )


def _artifacts(view: JsonObject) -> Iterator[tuple[str, str]]:
    """Yields name and size of each artifact in a notification. The receiver cuts long texts, and says their length."""
    for artifact in _objects(view.get("artifacts")):
        parts = [*_objects(artifact.get("parts"))]
        files = [size for part in parts if (size := _file_words(part))]
        characters = sum(int(str(part["length"])) for part in parts if part.get("kind") == "text")
        data = sum(part.get("kind") == "data" for part in parts)
        yield str(artifact.get("name")), content_words(characters, files, data)


def _file_words(part: JsonObject) -> str:
    """Returns the size of a file as words; empty for texts and data."""
    if part.get("kind") == "link":
        return "a file by link"
    return bytes_words(int(str(part["bytes"]))) if part.get("kind") in {"image", "file"} else ""


def _text(parts: object) -> str:
    return "".join(str(part.get("text", "")) for part in _objects(parts))


def _objects(values: object) -> Iterator[JsonObject]:
    yield from (value for value in (values if isinstance(values, list) else []) if isinstance(value, dict))


def _object(value: object) -> JsonObject:
    return value if isinstance(value, dict) else {}
