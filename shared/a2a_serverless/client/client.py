"""The operations of an agent as methods: they take and return the model, and raise the errors of the protocol."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Protocol, TypeVar
from uuid import uuid4

from a2a_serverless.client.errors import (
    BY_HTTP,
    ERROR,
    REDIRECT,
    SERVER_ERROR,
    HttpError,
    SkippedContent,
    a2a_error,
    beginning_of,
    http_error,
    kind_by_code,
    log_skipped,
    redirect_error,
    retry_after_s,
)
from a2a_serverless.client.event_stream import EventStreamParser, ServerEvent
from a2a_serverless.domain.errors import (
    A2AError,
    InternalError,
    InvalidAgentResponse,
    UnsupportedOperation,
)
from a2a_serverless.http_client.sockets import always
from a2a_serverless.http_client.transport import ClientRequest, ClientResponse, ResponseBody, Transport
from a2a_serverless.protocol import jsonrpc, peers, v1
from a2a_serverless.protocol.operations import Operation
from a2a_serverless.protocol.strict_json import ANSWER_LIMITS, loads
from a2a_serverless.protocol.versions import EXTENSION_HEADERS, VERSION_HEADER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from a2a_serverless.domain.model import Json
    from a2a_serverless.domain.remotes import Binding
    from a2a_serverless.protocol.protojson import ProtoModel
    from a2a_serverless.protocol.versions import ProtocolVersion

JSON: Final = "application/json"
A2A_JSON: Final = "application/a2a+json"
EVENT_STREAM: Final = "text/event-stream"
BLOCK: Final = 64 * 1024
METHOD_NOT_ALLOWED: Final = 405
MOST_SKIPPED: Final = 1_000
"""So many items of a stream may be unreadable: each is logged."""


T = TypeVar("T")


R_co = TypeVar("R_co", covariant=True)


class Reader(Protocol[R_co]):
    """Reads a result of a version, and names what it leaves out in ``skipped``. Raises InvalidAgentResponse."""

    def __call__(self, version: ProtocolVersion, result: Json, skipped: list[str], /) -> R_co: ...


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
    ``on_skipped`` is told what of an answer is not understood, and so was left out. A stream ends at the first bytes,
    also of a keep-alive, after which ``goes_on`` returns False; without any it breaks.

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
    on_skipped: Callable[[SkippedContent], None] = log_skipped
    goes_on: Callable[[], bool] = always

    def with_extensions(self, *uris: str) -> Client:
        """The client, with the extensions named in every request (specification 4.6)."""
        extensions = {EXTENSION_HEADERS[self.version]: ", ".join(uris)} if uris else {}
        return replace(self, headers={**self.headers, **extensions})

    def send(self, request: v1.SendMessageRequest) -> v1.Task | v1.Message:
        """Sends a message (specification 3.1.1). Without ``return_immediately`` the agent may wait first."""
        content = self._read(Operation.SEND, request, peers.read_item)
        if isinstance(content, v1.TaskStatusUpdateEvent | v1.TaskArtifactUpdateEvent):
            raise self._unusable(Operation.SEND, "It is an event.")
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
            tasks, token = self._read(Operation.LIST, request, lambda _, *page: peers.read_page(*page))
            yield from tasks
            if not token:
                return
            if token == request.page_token:
                raise self._unusable(Operation.LIST, "It is the same page of tasks again.")
            request = request.model_copy(update={"page_token": token})

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
        return self._read(operation, request, peers.read_task)

    def _read(self, operation: Operation, request: ProtoModel, read: Reader[T]) -> T:
        with self.transport(self._call(operation, request, JSON)) as answer:
            return self._understand(operation, answer, answer.body.read(ANSWER_LIMITS.body + 1), read)

    def _stream(self, operation: Operation, request: ProtoModel, after: int | None) -> Iterator[ClientEvent]:
        call = self._call(operation, request, EVENT_STREAM, after)
        with self.transport(call) as answer:
            if not _is_refused_verb(answer, call):
                yield from self._events(operation, answer)
                return
        with self.transport(replace(call, body=None)) as answer:
            yield from self._events(operation, answer)

    def _events(self, operation: Operation, answer: ClientResponse) -> Iterator[ClientEvent]:
        """Yields the items that can be read, and tells of the others.

        Raises the last mistake if no item can be read, or too many cannot.
        """
        unreadable, is_read, skipped = None, False, 0
        for event in _server_events(answer, self.goes_on):
            if not event.data:
                continue  # some keep a connection alive with them
            try:
                content = self._understand(operation, answer, event.data, peers.read_item)
            except InvalidAgentResponse as mistake:
                unreadable, skipped = mistake, skipped + 1
                self._tell(operation, [str(mistake)], event.data)
                if skipped >= MOST_SKIPPED:
                    raise
            else:
                is_read = True
                yield ClientEvent(event.number, content)
        if unreadable and not is_read:
            raise unreadable

    def _understand(self, operation: Operation, answer: ClientResponse, body: bytes, read: Reader[T]) -> T:
        """What ``read`` makes of the result in a body, of which it tells what was left out."""
        skipped = list[str]()
        try:
            content = read(self.version, self._result_in(operation, answer, body), skipped)
        except InvalidAgentResponse as mistake:
            raise self._unusable(operation, str(mistake)) from mistake
        if skipped:
            self._tell(operation, skipped, body)
        return content

    def _unusable(self, operation: Operation, why: str) -> InvalidAgentResponse:
        method = jsonrpc.name_of(operation, self.version)
        place = f"{method} of A2A {self.version} at {self._address}"
        return InvalidAgentResponse(f"The answer to {place} is of no use. {why}")

    def _tell(self, operation: Operation, skipped: list[str], body: bytes) -> None:
        method = jsonrpc.name_of(operation, self.version)
        self.on_skipped(SkippedContent(method, self.version, self._address, tuple(skipped), beginning_of(body)))

    @property
    def _address(self) -> str:
        return self.url.partition("?")[0]

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
        return ClientRequest(url, headers, body, self.seconds, waits=accept == EVENT_STREAM, goes_on=self.goes_on)

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


def _server_events(answer: ClientResponse, goes_on: Callable[[], bool]) -> Iterator[ServerEvent]:
    """The events of a stream; of any other answer the body as one event. A stream may come without its type."""
    content_type, *_ = answer.headers.get("content-type", "").split(";")
    block, is_stream = b"", content_type.strip().lower() == EVENT_STREAM
    if not content_type.strip() or answer.status >= ERROR:
        block = answer.body.read1(BLOCK)
        is_stream = answer.status < ERROR and bool(block) and not block.lstrip().startswith((b"{", b"[", b"<"))
    if not is_stream or answer.status >= ERROR:
        return iter([ServerEvent(block + answer.body.read(ANSWER_LIMITS.body + 1 - len(block)))])
    return read_events(answer.body, ANSWER_LIMITS.body, block, goes_on)


def _document_in(answer: ClientResponse, body: bytes) -> Json:
    """The JSON document of an answer. Raises HttpError for an error without one, else InvalidAgentResponse."""
    if REDIRECT <= answer.status < ERROR:
        raise redirect_error(answer)
    try:
        return loads(body, ANSWER_LIMITS)
    except A2AError as error:
        if answer.status < ERROR:
            raise InvalidAgentResponse(f"{error} It begins with {beginning_of(body)!r}.") from error
        raise HttpError(answer.status, "", retry_after_s(answer.headers)) from None


def _rpc_result_in(answer: ClientResponse, document: Json) -> Json:
    """Returns the ``result`` of a response, or a document without an envelope, as it is.

    Raises its ``error``, or HttpError if the status says more than that.
    """
    status, members = answer.status, document if isinstance(document, dict) else {}
    has_envelope = "jsonrpc" in members or "result" in members or "error" in members
    problem = members.get("error") if has_envelope else None
    kind = kind_by_code(problem)
    if status in BY_HTTP or (status >= SERVER_ERROR and kind in {None, InternalError}):
        raise http_error(answer, document)
    if problem is not None and (status < ERROR or "jsonrpc" in members or isinstance(problem, dict)):
        raise a2a_error(kind, problem, "data")
    if status >= ERROR:
        raise http_error(answer, document)
    if "jsonrpc" in members and "result" not in members:
        raise InvalidAgentResponse("It has neither result nor error.")
    if members.get("result", ...) is None:
        raise InvalidAgentResponse("Its result is null.")
    return members.get("result", document)


def read_events(
    body: ResponseBody, limit: int, block: bytes = b"", goes_on: Callable[[], bool] = always
) -> Iterator[ServerEvent]:
    """Yields each event of a body, whose first bytes are in ``block``, once it is complete, while it ``goes_on``.

    An event that is incomplete when the connection breaks is dropped: the next stream repeats it. Raises
    InvalidAgentResponse for an event over ``limit`` bytes.
    """
    parser = EventStreamParser(limit)
    while block := block or body.read1(BLOCK):
        yield from parser.feed(block)
        block = b""
        if not goes_on():
            return
