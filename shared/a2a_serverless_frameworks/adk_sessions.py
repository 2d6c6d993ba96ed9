"""Sessions of Google's ADK in the values of a conversation."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from google.adk.events import Event, EventActions
from google.adk.sessions import BaseSessionService, Session
from google.adk.sessions.base_session_service import ListSessionsResponse
from google.genai import types

from a2a_serverless import VersionConflict, current_task
from a2a_serverless_frameworks.history import TRIES, newest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from google.adk.sessions.base_session_service import GetSessionConfig
    from pydantic import BaseModel

    from a2a_serverless import TaskContext

EMPTY: Final[dict[str, Any]] = {"state": {}, "turns": []}
"""The stored form of a session without events. ``state`` is that of the events that are not stored any more."""


class ConversationSessions(BaseSessionService):
    """Sessions in the values of the current task's conversation, for a ``Runner`` in an agent's function or executor.

    A conversation belongs to one owner, so its sessions and all of their state do, whatever ``user_id`` is. State of
    the app and of the user lives as long as the conversation. An event is stored at once; if its turn is interrupted
    and runs again, the turn's events are replaced. The events of the newest ``turns`` turns stay stored, as far as they
    have 300,000 characters. The client's files are stored as their media types.
    """

    def __init__(self, turns: int = 40, *, record: Any = None, at_end: bool = False) -> None:  # noqa: ANN401 - JSON
        self._turns = turns
        self._record = record
        self._at_end = at_end
        # What this run has appended, by session. An interrupted turn runs again in another run.
        self._new_events: WeakKeyDictionary[TaskContext, dict[tuple[str, str], list[Event]]] = WeakKeyDictionary()

    async def create_session(
        self, *, app_name: str, user_id: str, state: dict[str, Any] | None = None, session_id: str | None = None
    ) -> Session:
        """A session with this state. It is stored with its first event."""
        session_id = session_id or current_task().context_id
        session = Session(id=session_id, app_name=app_name, user_id=user_id)
        self._added_to(session_key(app_name, session_id))
        if state:
            await self.append_event(session, Event(author="user", actions=EventActions(state_delta=state)))
        return session

    async def get_session(
        self, *, app_name: str, user_id: str, session_id: str, config: GetSessionConfig | None = None
    ) -> Session | None:
        """The session with the events of the earlier turns, or None."""
        key = session_key(app_name, session_id)
        record, is_new = await self._read(key), (key, self._turn()) in self._new_events.get(current_task(), {})
        if record is None and not is_new:
            return None
        turns = [turn for turn in (record or EMPTY)["turns"] if turn["turn"] != self._turn()]
        earlier_events = [load(Event, event) for turn in turns for event in turn["events"]]
        events = [*earlier_events, *self._added_to(key)]
        state = (record or EMPTY)["state"] | _state_in(events)
        if config and config.num_recent_events is not None:
            events = events[len(events) - config.num_recent_events :] if config.num_recent_events else []
        if config and config.after_timestamp is not None:
            events = [event for event in events if event.timestamp >= config.after_timestamp]
        return Session(id=session_id, app_name=app_name, user_id=user_id, state=state, events=events)

    async def list_sessions(self, *, app_name: str, user_id: str | None = None) -> ListSessionsResponse:
        """The sessions of this app in the conversation, without events."""
        prefix = session_key(app_name, "")
        ids = [value.key.removeprefix(prefix) for value in await current_task().conversation.list(prefix)]
        return ListSessionsResponse(
            sessions=[Session(id=session_id, app_name=app_name, user_id=user_id or "") for session_id in ids]
        )

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        """Deletes the session."""
        del user_id
        await current_task().conversation.delete(session_key(app_name, session_id))

    async def append_event(self, session: Session, event: Event) -> Event:
        """Appends the event to the session, and stores it."""
        event = await super().append_event(session, event)
        if not event.partial:
            self._added_to(session_key(session.app_name, session.id)).append(event)
            if not self._at_end:
                await self.save()
        return event

    def _turn(self) -> str:
        """The name of the turn: the task, in an executor with the message that it works on."""
        task = current_task()
        return task.id if self._at_end else f"{task.id}/{task.request.message.message_id}"

    def _added_to(self, key: str) -> list[Event]:
        return self._new_events.setdefault(current_task(), {}).setdefault((key, self._turn()), [])

    async def _read(self, key: str) -> Any:  # noqa: ANN401 - JSON
        if self._at_end:
            return self._record
        entry = await current_task().conversation.get(key)
        return entry and entry.value

    async def save(self) -> None:
        """Stores the events of the current turn. Idempotent."""
        for (key, turn), events in self._new_events.get(current_task(), {}).items():
            if turn == self._turn():
                await self._put(key, {"turn": turn, "events": [dump(_without_files(event)) for event in events]})

    async def _put(self, key: str, turn: dict[str, Any]) -> None:
        conversation = current_task().conversation
        for _ in range(TRIES):
            entry = await conversation.get(key)
            record: Any = entry.value if entry else EMPTY
            turns = [*(one for one in record["turns"] if one["turn"] != turn["turn"]), turn]
            newest_turns = newest(turns[-self._turns :])
            old_events = [
                load(Event, event) for one in turns[: len(turns) - len(newest_turns)] for event in one["events"]
            ]
            new_record = {"state": record["state"] | _state_in(old_events), "turns": newest_turns}
            try:
                await conversation.put(key, new_record, version=entry.version if entry else "")
            except VersionConflict:  # another task of the conversation has stored a turn in between
                continue
            return


def session_key(app_name: str, session_id: str) -> str:
    """The key of a session's value."""
    return f"adk/{app_name}/{session_id}"


def _state_in(events: Sequence[Event]) -> dict[str, Any]:
    """The state that the events have written."""
    return {name: value for event in events for name, value in event.actions.state_delta.items()}


def _without_files(event: Event) -> Event:
    """The event with the media types of the client's files in place of their bytes."""
    if event.author != "user" or not event.content:
        return event
    parts = [
        types.Part(text=f"[{part.inline_data.mime_type}]") if part.inline_data else part
        for part in event.content.parts or ()
    ]
    return event.model_copy(update={"content": types.Content(role=event.content.role, parts=parts)})


def dump(model: Any) -> Any:  # noqa: ANN401 - any JSON value
    """A model of the framework as a JSON value, by the names of fields."""
    return json.loads(model.model_dump_json(by_alias=False, exclude_none=True))


def load(kind: type[BaseModel], value: Any) -> Any:  # noqa: ANN401 - JSON, and a model of the framework
    """The model that was dumped. Bytes are base64 in JSON only, so it is read from JSON's text."""
    return kind.model_validate_json(json.dumps(value), by_alias=False, by_name=True)
