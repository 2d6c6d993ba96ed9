"""Takes the requests of other systems to the address of a task's callback. The first body counts; it wakes the task.

The body and the task's new head are one write. So a request that was answered is never lost: if its process dies before
it has enqueued the task, the sweeper does. Nothing of the body is interpreted here. A signature is checked before the
body is stored, with the secret that the worker has sealed for this address.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

from a2a_serverless.domain.errors import TaskNotFound, TooManyRequests
from a2a_serverless.domain.head import wake
from a2a_serverless.domain.outside_events import REQUESTS_A_MINUTE, dump_event, event_digest
from a2a_serverless.domain.queue_messages import WorkMessage
from a2a_serverless.domain.records import StepResult
from a2a_serverless.domain.step_names import EVENT, GOT, SIGNED
from a2a_serverless.domain.times import MINUTE_MS
from a2a_serverless.services.task_changes import check_written, retry_on_conflict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from a2a_serverless.domain.head import Head
    from a2a_serverless.domain.model import TaskKey
    from a2a_serverless.services.tasks import TaskService


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

    The requests after the one that was taken are counted.
    """
    digest = event_digest(event_id)
    callback = service.log.find_callback(digest)
    if callback is None or not callback[1].startswith((EVENT, SIGNED)):
        raise TaskNotFound
    key, record = callback
    path, minute = record.removeprefix(EVENT).removeprefix(SIGNED), service.clock.now() // MINUTE_MS
    address = EventAddress(key, GOT + path, digest, record if record.startswith(SIGNED) else "")
    _read_head(service, key)
    if service.log.read_step(key, address.name) and not service.log.count_request(digest, minute, REQUESTS_A_MINUTE):
        raise TooManyRequests("This address takes ten requests a minute.", MINUTE_MS // 1000)
    return address


def store_event(service: TaskService, address: EventAddress, headers: Mapping[str, str], body: bytes) -> bool:
    """Stores the event and wakes its task; False if another body is stored.

    Raises TaskNotFound for an ended task, and InvalidSignature.
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
    from a2a_serverless.domain.webhook_signatures import check_signature

    stored = service.log.read_step(address.key, address.signing)
    if stored is None:
        raise TaskNotFound  # it is being erased
    record = cast("dict[str, str]", stored.value)
    secret = service.callback_sealer().open(record["sealed"], address.digest)
    check_signature(record["scheme"], secret, headers, body, now)


def _read_head(service: TaskService, key: TaskKey) -> Head:
    """The task's head. Raises TaskNotFound if the task has ended, as for an unknown address."""
    snapshot = service.log.read_head(key)
    if snapshot is None or snapshot.head.is_terminal:
        raise TaskNotFound
    return snapshot.head
