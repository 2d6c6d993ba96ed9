"""Handles the requests to a task's addresses: webhooks of agents that it has called, and events from outside.

An agent's notification is only a hint: the resumed task asks the agent for its state. It resumes no task that does not
wait for it. If the task has ended and the called agent still works for it, that work is canceled.

Another system sends an event to the address of a task's callback. The first body counts; it wakes the task. The body
and the task's new head are one write. So a request that was answered is never lost: if its process dies before it has
enqueued the task, the sweeper does. Nothing of the body is interpreted here. A signature is checked before the body is
stored, with the secret that the worker has sealed for this address.
"""

from __future__ import annotations

import logging
from hmac import compare_digest
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from a2a_serverless.domain.call_records import OpenedCall, SentCall
from a2a_serverless.domain.decisions import mark_orphan, wake
from a2a_serverless.domain.errors import InvalidSignature, TaskNotFound, TooManyRequests
from a2a_serverless.domain.model import MINUTE_MS
from a2a_serverless.domain.outside_events import REQUESTS_A_MINUTE, dump_event, event_digest
from a2a_serverless.domain.queue_messages import WorkMessage
from a2a_serverless.domain.record_names import CALL, EVENT, GOT, SIGNED, CallName
from a2a_serverless.domain.states import RUNNABLE, TERMINAL
from a2a_serverless.domain.step_results import StepResult
from a2a_serverless.ports.agents import CallbackVerifier, ExpectedCallback, IncomingNotification, InvalidCallback
from a2a_serverless.services.task_changes import check_written, retry_on_conflict, update_head

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from a2a_serverless.domain.head import Head
    from a2a_serverless.domain.model import TaskKey
    from a2a_serverless.protocol.notification_bodies import NotifiedTask
    from a2a_serverless.services.requests import TaskService
    from a2a_serverless.store.task_log import TaskLog

TOKEN_HEADER: Final = "x-a2a-notification-token"  # noqa: S105 - a name, not a token
GO_TOKEN_HEADER: Final = "a2a-notification-token"  # noqa: S105 - of the official SDK in Go

logger = logging.getLogger(__name__)


def handle_callback(
    service: TaskService,
    verifier: CallbackVerifier,
    callback: str,
    incoming: IncomingNotification,
    check_body: Callable[[bytes], object] = bytes,
) -> str | None:
    """Resumes the task that made the call, if the task waits for it. Returns the challenge in the request, or None.

    Raises TaskNotFound unless the request has the token of the call and ``verifier`` accepts it. The body is read
    after the check of address and token; ``check_body`` raises for a body that it refuses.
    """
    record = service.log.find_callback(callback)
    if record is None or not record[1].startswith(CALL):
        raise TaskNotFound
    key, opened_name = record
    name = CallName(opened_name)
    # Only this record: whoever does not know the token must not make us read the whole task.
    # tests/services/test_callbacks.py: test_a_refused_request_reads_its_own_call_and_no_other_record_of_the_task
    if (stored := service.log.read_step(key, name.opened)) is None:
        raise TaskNotFound
    opened = OpenedCall.of(stored.value)
    token = incoming.headers.get(TOKEN_HEADER) or incoming.headers.get(GO_TOKEN_HEADER, "")
    if not compare_digest(opened.token.encode(), token.encode()):
        _count_refusal(service, callback)
        raise TaskNotFound
    check_body(incoming.body)
    call = _Call(service.log, key, name, opened)
    try:
        challenge = verifier.verify(incoming, ExpectedCallback(opened.address, opened.url, opened.token, call.task))
    except InvalidCallback as refusal:
        logger.warning("callback refused", extra={"task": key.task, "call": name.path, "reason": str(refusal)})
        _count_refusal(service, callback)
        raise TaskNotFound from refusal
    if challenge is None:
        from a2a_serverless.protocol.notification_bodies import read_notification

        if opened.elsewhere:
            service.log.note_webhook(opened.elsewhere, service.clock.now())
        _wake_caller(service, key, call, read_notification(incoming.body))
    return challenge


def _count_refusal(service: TaskService, callback: str) -> None:
    """Counts a refused request to an address. Raises TooManyRequests if there were too many in this minute."""
    if not service.log.count_request(callback, _minute(service), REQUESTS_A_MINUTE):
        text = (
            f"This address has refused {REQUESTS_A_MINUTE} requests in this minute. Check the token or the signature."
        )
        raise TooManyRequests(text, MINUTE_MS // 1000)


class _Call:
    """The stored facts of a call. Each is read when it is asked for."""

    def __init__(self, log: TaskLog, key: TaskKey, name: CallName, opened: OpenedCall) -> None:
        self._log, self._key = log, key
        self.name, self.agent = name, opened.agent
        sent = log.read_step(key, name.sent)
        self.task = SentCall.of(sent.value).task if sent else None
        # No ``cached_property``: in Python 3.11 its lock lets all threads wait for the read of one call.
        # tests/simulation/test_simulation.py: test_a_guard_that_is_removed_is_missed
        self._stored: dict[str, bool] = {}

    @property
    def done(self) -> bool:
        """Whether the answer is stored."""
        return self._is_stored(self.name.done)

    @property
    def failed(self) -> bool:
        """Whether the call has ended without an answer."""
        return self._is_stored(self.name.failed)

    @property
    def canceled(self) -> bool:
        """Whether the caller's code has cancelled the call."""
        return self._is_stored(self.name.canceled)

    def _is_stored(self, name: str) -> bool:
        if name not in self._stored:
            self._stored[name] = self._log.has_step(self._key, name)
        return self._stored[name]


def _wake_caller(service: TaskService, key: TaskKey, call: _Call, incoming: NotifiedTask) -> None:
    """Resumes the task if it waits for the call. If the task has ended, has the call's unfinished work canceled."""
    if incoming.task_id and call.task is None and not call.done:
        _store_child_task(service, key, call, SentCall(call.agent, incoming.task_id))

    def decide(head: Head) -> Head | None:
        return (_mark_orphan if head.is_terminal else _wake_task)(head, call, incoming, service)

    if update_head(service.log, key, decide):
        service.queues.enqueue(WorkMessage(key))


def _store_child_task(service: TaskService, key: TaskKey, call: _Call, child: SentCall) -> None:
    """Stores the called agent's task, from its callback: the run may have died before it stored that task."""
    current = service.log.read_head(key)
    if current is not None:
        service.log.store_step(current.head, call.name.told, StepResult("", child.value), of_run=False)


def _wake_task(head: Head, call: _Call, incoming: NotifiedTask, service: TaskService) -> Head | None:
    """The resumed head; None if the task does not wait for this callback: the call is over, or its agent goes on.

    A canceled call is over when its agent does not go on.
    """
    if incoming.state in (TERMINAL if call.canceled else RUNNABLE) or call.done or call.failed:
        return None
    return wake(head, now=service.clock.now())


def _mark_orphan(head: Head, call: _Call, incoming: NotifiedTask, service: TaskService) -> Head | None:
    """The head of a task whose called agent's task has to be canceled; None if there is nothing to cancel."""
    if call.done or not incoming.task_id or incoming.state in TERMINAL:
        return None
    return mark_orphan(head, now=service.clock.now())


class EventAddress(NamedTuple):
    """An address: its task, the name under which the task's event is stored, and its digest.

    ``signing`` is the name of the record by which signatures are checked; "" if none is needed.
    """

    key: TaskKey
    name: str
    digest: str
    signing: str


def find_event_address(service: TaskService, event_id: str) -> EventAddress:
    """The address with this id. Raises TaskNotFound, TooManyRequests; it reads no body.

    An address without signatures counts the requests after the one that was taken.
    """
    digest = event_digest(event_id)
    callback = service.log.find_callback(digest)
    if callback is None or not callback[1].startswith((EVENT, SIGNED)):
        raise TaskNotFound
    key, record = callback
    path = record.removeprefix(EVENT).removeprefix(SIGNED)
    address = EventAddress(key, GOT + path, digest, record if record.startswith(SIGNED) else "")
    _read_head(service, key)
    is_taken = not address.signing and service.log.has_step(key, address.name)
    if is_taken and not service.log.count_request(digest, _minute(service), REQUESTS_A_MINUTE):
        raise TooManyRequests(f"This address takes {REQUESTS_A_MINUTE} requests a minute.", MINUTE_MS // 1000)
    return address


def store_event(service: TaskService, address: EventAddress, headers: Mapping[str, str], body: bytes) -> bool:
    """Stores the event and wakes its task; False if another body is stored.

    Raises TaskNotFound for an ended task, InvalidSignature, and TooManyRequests for too many wrong signatures.
    """
    key, name, now = address.key, address.name, service.clock.now()
    if address.signing:
        _check_signature(service, address, headers, body, now)
    event = cast("dict[str, Any]", dump_event(headers, body, now))

    def attempt() -> bool:
        head = _read_head(service, key)
        stored = service.log.read_step(key, name)
        if stored:
            return bool(cast("dict[str, Any]", stored.value)["body"] == event["body"])
        check_written(service.log.update_head(head, wake(head, now=now), (name, StepResult("", event))))
        return True

    is_stored = retry_on_conflict(attempt)
    if is_stored:
        service.queues.enqueue(WorkMessage(key))
    return is_stored


def _check_signature(
    service: TaskService, address: EventAddress, headers: Mapping[str, str], body: bytes, now: int
) -> None:
    from a2a_serverless.domain.outside_events import check_signature

    stored = service.log.read_step(address.key, address.signing)
    if stored is None:
        raise TaskNotFound  # it is being erased
    record = cast("dict[str, str]", stored.value)
    secret = service.callback_sealer().open(record["sealed"], address.digest)
    try:
        check_signature(record["scheme"], secret, headers, body, now)
    except InvalidSignature:
        _count_refusal(service, address.digest)
        raise


def _minute(service: TaskService) -> int:
    return service.clock.now() // MINUTE_MS


def _read_head(service: TaskService, key: TaskKey) -> Head:
    """The task's head. Raises TaskNotFound if the task has ended, as for an unknown address."""
    current = service.log.read_head(key)
    if current is None or current.head.is_terminal:
        raise TaskNotFound
    return current.head
