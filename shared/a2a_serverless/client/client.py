"""The operations of an agent as methods: they take and return the model, and raise the errors of the protocol."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from a2a_serverless.client.errors import (
    BY_HTTP,
    SERVER_ERROR,
    HttpError,
    a2a_error,
    http_error,
    kind_by_code,
    retry_after_s,
)
from a2a_serverless.domain.errors import (
    A2AError,
    InternalError,
    InvalidAgentResponse,
    UnsupportedOperation,
)
from a2a_serverless.http_client.transport import ClientRequest, ClientResponse, ResponseBody, Transport
from a2a_serverless.protocol import jsonrpc, peers, v1
from a2a_serverless.protocol.operations import Operation
from a2a_serverless.protocol.protojson import ProtoModel, read_peer
from a2a_serverless.protocol.sse import last_event_id
from a2a_serverless.protocol.strict_json import ANSWER_LIMITS, loads
from a2a_serverless.protocol.versions import EXTENSION_HEADERS, VERSION_HEADER

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from a2a_serverless.domain.model import Json
    from a2a_serverless.domain.remotes import Binding
    from a2a_serverless.protocol.versions import ProtocolVersion

JSON: Final = "application/json"
A2A_JSON: Final = "application/a2a+json"
EVENT_STREAM: Final = "text/event-stream"
OK: Final = 200
METHOD_NOT_ALLOWED: Final = 405


@dataclass(frozen=True, slots=True)
class ClientEvent:
    """One item of a stream. ``n`` is the number of the last event in it; None if the agent does not number events."""

    n: int | None
    content: v1.StreamContent

    @property
    def status(self) -> v1.TaskStatus | None:
        """The status in this item; None when it has none."""
        return self.content.status if isinstance(self.content, v1.Task | v1.TaskStatusUpdateEvent) else None

    @property
    def state(self) -> v1.TaskState | None:
        """The state in this item; None when it has none."""
        return self.status.state if self.status else None

    @property
    def task_id(self) -> str | None:
        """The id of the task; None for a message without a task."""
        return self.content.id if isinstance(self.content, v1.Task) else self.content.task_id


@dataclass(frozen=True, slots=True)
class Client:
    """A client of one agent.

    ``url`` is the URL of its interface, ``headers`` are sent with every request, ``version`` and
    ``binding`` are those of the interface. A request takes at most ``seconds``; of a stream, each wait for an item.

    Every call raises Unreachable, HttpError, or the A2AError that the agent answers with. A send that raised
    Unreachable may be repeated unchanged: agents of this project recognise the message id and start no second task.
    """

    url: str
    transport: Transport
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    tenant: str | None = None
    version: ProtocolVersion = "1.0"
    binding: Binding = "JSONRPC"
    seconds: float = 30.0

    def with_extensions(self, *uris: str) -> Client:
        """The client, with the extensions named in every request (specification 4.6)."""
        extensions = {EXTENSION_HEADERS[self.version]: ", ".join(uris)} if uris else {}
        return replace(self, headers={**self.headers, **extensions})

    def send(self, request: v1.SendMessageRequest) -> v1.Task | v1.Message:
        """Sends a message (specification 3.1.1). Without ``return_immediately`` the agent may wait first."""
        content = peers.read_item(self.version, self._result(Operation.SEND, request), self.binding)
        if isinstance(content, v1.TaskStatusUpdateEvent | v1.TaskArtifactUpdateEvent):
            raise InvalidAgentResponse("The agent answered a send with an event.")
        return content

    def get(self, task_id: str, history_length: int | None = None) -> v1.Task:
        """Returns the task as it is now (3.1.3)."""
        return self._task(Operation.GET, v1.GetTaskRequest(id=task_id, history_length=history_length))

    def task_ids(self, context_id: str) -> Iterator[str]:
        """Lists the task ids of a context, in the agent's order. Raises UnsupportedOperation in 0.3."""
        request = v1.ListTasksRequest(context_id=context_id, page_size=v1.MAX_PAGE_SIZE, history_length=0)
        return (task.id for task in self.tasks(request))

    def tasks(self, request: v1.ListTasksRequest) -> Iterator[v1.Task]:
        """Lists tasks (3.1.4), page after page, in the agent's order. Raises UnsupportedOperation in 0.3."""
        if self.version != "1.0":
            raise UnsupportedOperation("Tasks are listed in A2A 1.0 only.")
        while True:
            page = read_peer(peers.TaskPage, self._result(Operation.LIST, request))
            yield from page.tasks
            if not page.next_page_token:
                return
            if page.next_page_token == request.page_token:
                raise InvalidAgentResponse("The agent gave the same page of tasks again.")
            request = request.model_copy(update={"page_token": page.next_page_token})

    def cancel(self, task_id: str) -> v1.Task:
        """Cancels the task (3.1.5)."""
        return self._task(Operation.CANCEL, v1.CancelTaskRequest(id=task_id))

    def stream(self, request: v1.SendMessageRequest) -> Iterator[ClientEvent]:
        """Sends a message and yields the items of its stream (3.1.2) until the agent ends it. Close it when done."""
        return self._stream(Operation.STREAM, request, None)

    def subscribe(self, task_id: str, after: int | None = None) -> Iterator[ClientEvent]:
        """Yields the items of a task's stream (3.1.6). With ``after`` it starts behind the event of that number."""
        return self._stream(Operation.SUBSCRIBE, v1.SubscribeToTaskRequest(id=task_id), after)

    def _task(self, operation: Operation, request: ProtoModel) -> v1.Task:
        return peers.read_task(self.version, self._result(operation, request), self.binding)

    def _result(self, operation: Operation, request: ProtoModel) -> Json:
        with self.transport(self._call(operation, request, JSON)) as answer:
            return self._result_in(operation, answer, answer.body.read(ANSWER_LIMITS.body + 1))

    def _stream(self, operation: Operation, request: ProtoModel, after: int | None) -> Iterator[ClientEvent]:
        call = self._call(operation, request, EVENT_STREAM, after)
        with self.transport(call) as answer:
            if not _is_refused_verb(answer, call):
                yield from self._events(operation, answer)
                return
        with self.transport(replace(call, body=None)) as answer:
            yield from self._events(operation, answer)

    def _events(self, operation: Operation, answer: ClientResponse) -> Iterator[ClientEvent]:
        if answer.status != OK or not answer.headers.get("content-type", "").startswith(EVENT_STREAM):
            events: Iterator[ServerEvent] = iter([ServerEvent(answer.body.read(ANSWER_LIMITS.body + 1))])
        else:
            events = read_events(answer.body, ANSWER_LIMITS.body)
        for event in events:
            result = self._result_in(operation, answer, event.data)
            yield ClientEvent(event.number, peers.read_item(self.version, result, self.binding))

    def _result_in(self, operation: Operation, answer: ClientResponse, body: bytes) -> Json:
        document = _document_in(answer, body)
        if self.binding == "JSONRPC":
            return _rpc_result_in(answer, document)
        from a2a_serverless.client.http_json import error_in

        if error := error_in(self.version, operation, answer, document):
            raise error
        return document

    def _call(self, operation: Operation, request: ProtoModel, accept: str, after: int | None = None) -> ClientRequest:
        if self.tenant:
            request = request.model_copy(update={"tenant": self.tenant})
        url, body = self._address_and_body(operation, request)
        if self.binding == "HTTP+JSON" and accept == JSON:
            accept = f"{A2A_JSON}, {JSON}"
        headers = {VERSION_HEADER: self.version, "Content-Type": JSON, "Accept": accept, **self.headers}
        if after is not None:
            headers["Last-Event-ID"] = str(after)
        return ClientRequest(url, headers, body, self.seconds, waits=accept == EVENT_STREAM)

    def _address_and_body(self, operation: Operation, request: ProtoModel) -> tuple[str, bytes | None]:
        if self.binding == "HTTP+JSON":
            from a2a_serverless.client.http_json import address_and_body  # agents of this deployment use JSON-RPC

            return address_and_body(self.url, self.version, operation, request)
        params = peers.print_params(self.version, request)
        method = jsonrpc.name_of(operation, self.version).encode()
        return self.url, b'{"jsonrpc":"2.0","id":1,"method":"%b","params":%b}' % (method, params)


def text_message(
    text: str, media_type: str | None = None, *, context_id: str | None = None, task_id: str | None = None
) -> v1.Message:
    """Makes a user's message with a new id, which may continue a context or a task."""
    parts = (v1.Part(text=text, media_type=media_type),)
    return v1.Message(message_id=uuid4().hex, role=v1.Role.USER, parts=parts, context_id=context_id, task_id=task_id)


def _is_refused_verb(answer: ClientResponse, call: ClientRequest) -> bool:
    """Whether a subscription was refused for its verb: POST in the specification, GET in its proto."""
    return answer.status == METHOD_NOT_ALLOWED and call.url.endswith(":subscribe")


def _document_in(answer: ClientResponse, body: bytes) -> Json:
    """The JSON document of an answer. Raises HttpError for an error without one, else InvalidAgentResponse."""
    try:
        return loads(body, ANSWER_LIMITS)
    except A2AError as error:
        if answer.status == OK:
            raise InvalidAgentResponse(f"The agent's answer cannot be read: {error}") from error
        raise HttpError(answer.status, "", retry_after_s(answer.headers)) from None


def _rpc_result_in(answer: ClientResponse, document: Json) -> Json:
    """Returns the ``result`` of a response. Raises its ``error``, or HttpError if the status says more than that."""
    status = answer.status
    problem = document.get("error") if isinstance(document, dict) and "jsonrpc" in document else None
    kind = kind_by_code(problem)
    is_by_http = status in BY_HTTP or (status >= SERVER_ERROR and kind in {None, InternalError})
    if not isinstance(document, dict) or "jsonrpc" not in document or is_by_http:
        raise http_error(answer, document)
    if isinstance(problem, dict):
        raise a2a_error(kind, problem, "data")
    if "result" not in document:
        raise InvalidAgentResponse("The agent answered with neither result nor error.")
    return document["result"]


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One event. ``number`` is its id; None if that is not a number."""

    data: bytes
    number: int | None = None


def read_events(body: ResponseBody, limit: int) -> Iterator[ServerEvent]:
    """Yields each server-sent event (WHATWG HTML, 9.2) of a body once it is complete.

    Raises InvalidAgentResponse for an event over ``limit`` bytes.
    An event that is incomplete when the connection breaks is dropped: the next stream repeats it.
    """
    data: list[bytes] = []
    number: int | None = None
    while line := body.readline(limit + 1):
        if len(line) + sum(map(len, data)) > limit:
            raise InvalidAgentResponse("The agent's stream has an event that is too large.")
        name, _, value = line.rstrip(b"\r\n").partition(b":")
        if not name and not value and data:
            yield ServerEvent(b"\n".join(data), number)
            data = []
        elif name == b"data":
            data.append(value.removeprefix(b" "))
        elif name == b"id":
            number = last_event_id(value.decode("ascii", "replace"))
