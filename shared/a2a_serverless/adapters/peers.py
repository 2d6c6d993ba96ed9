"""Other agents over A2A, 1.0 or 0.3, on JSON-RPC: by the names of a directory of base URLs that the operator has set.

These URLs come from configuration, so the egress guard for strangers' URLs does not stand in their way; a card may not
lead away from the host that was configured. urllib3 is in every function already: botocore brings it.
"""

from __future__ import annotations

from copy import copy
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlsplit

from urllib3 import PoolManager, Retry, Timeout
from urllib3.exceptions import HTTPError

from a2a_serverless.domain import trace as traces
from a2a_serverless.domain.agent import PeerFailed
from a2a_serverless.domain.card import Interface
from a2a_serverless.domain.errors import A2AError
from a2a_serverless.domain.model import Message, SendRequest, Task
from a2a_serverless.wire import v1
from a2a_serverless.wire.card import read_card
from a2a_serverless.wire.document import dumps, loads
from a2a_serverless.wire.limits import Limits
from a2a_serverless.wire.operations import Operation

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from a2a_serverless.domain.card import Card
    from a2a_serverless.domain.model import Json, JsonObject, PushRequest

T = TypeVar("T")

TIMEOUT: Final = Timeout(connect=5, read=25)
ANSWER_LIMIT: Final = 8 * 1024 * 1024
LIMITS: Final = Limits(body=ANSWER_LIMIT)
NOT_CANCELABLE: Final = -32002
NOT_FOUND: Final = -32001
CARD_PATH: Final = "/.well-known/agent-card.json"
OLD_METHODS: Final = {
    Operation.SEND: "message/send",
    Operation.GET: "tasks/get",
    Operation.CANCEL: "tasks/cancel",
}


class Refused(PeerFailed):
    """The agent answered with an error; ``code`` is its JSON-RPC code."""

    def __init__(self, agent: str, code: int, text: str) -> None:
        super().__init__(f"The agent {agent!r} refused: {text}")
        self.code = code


class A2APeers:
    """``ports.Peers``. Both map an agent's name to its base URL; of one name, the one among ``others`` counts.

    ``siblings`` are of this deployment: how they are spoken to is known. What ``others`` speak, their cards say.
    """

    def __init__(
        self, siblings: Mapping[str, str], others: Mapping[str, str] | None = None, pool: PoolManager | None = None
    ) -> None:
        self._urls = {**siblings, **(others or {})}
        self._interfaces = {
            name: Interface(url, "JSONRPC", "1.0") for name, url in siblings.items() if name not in (others or {})
        }
        self._pool = pool or PoolManager(retries=Retry(0), timeout=TIMEOUT)
        self._headers: dict[str, str] = {}

    def traced(self, trace: str) -> A2APeers:
        peers = copy(self)
        peers._headers = {traces.HEADER: trace} if trace else {}  # noqa: SLF001 - our own
        return peers

    def card(self, agent: str) -> Card:
        headers = {"Accept": "application/json"}
        card = _understood(agent, read_card, self._exchanged(agent, "GET", self._url(agent) + CARD_PATH, headers))
        _check_host(agent, self._url(agent), _interface(agent, card).url)
        return card

    def send(self, agent: str, message: Message, callback: PushRequest) -> Task | Message:
        request = SendRequest(message, return_immediately=True, push=callback)
        params: JsonObject = self._codec(agent).print_send(request)
        answer = _understood(agent, self._codec(agent).parse_stream_item, self._call(agent, Operation.SEND, params))
        if isinstance(answer, Task | Message):
            return answer
        raise PeerFailed(f"The agent {agent!r} answered with neither a task nor a message.")

    def get(self, agent: str, task_id: str) -> Task:
        answer = self._call(agent, Operation.GET, {"id": task_id, "historyLength": 0})
        task: Task = _understood(agent, self._codec(agent).parse_task, answer)
        return task

    def cancel(self, agent: str, task_id: str) -> None:
        try:
            self._call(agent, Operation.CANCEL, {"id": task_id})
        except Refused as refused:
            if refused.code not in {NOT_CANCELABLE, NOT_FOUND}:
                raise

    def _call(self, agent: str, operation: Operation, params: JsonObject) -> Json:
        spoken = self._spoken(agent)
        if spoken.tenant:
            params = params | {"tenant": spoken.tenant}
        method = operation.value if spoken.version == "1.0" else OLD_METHODS[operation]
        body = dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        headers = {"Content-Type": "application/json", "A2A-Version": spoken.version}
        return _result(agent, self._exchanged(agent, "POST", spoken.url, headers, body))

    def _codec(self, agent: str) -> ModuleType:
        if self._spoken(agent).version == "1.0":
            return v1
        from a2a_serverless.wire import v0_3

        return v0_3

    def _spoken(self, agent: str) -> Interface:
        """How the agent is spoken to; its card is read once."""
        if agent not in self._interfaces:
            self._interfaces[agent] = _interface(agent, self.card(agent))
        return self._interfaces[agent]

    def _url(self, agent: str) -> str:
        url = self._urls.get(agent)
        if url is None:
            known = ", ".join(sorted(self._urls))
            raise PeerFailed(f"There is no agent {agent!r} in the directory; there are {known}.")
        return url

    def _exchanged(
        self, agent: str, verb: str, url: str, headers: Mapping[str, str], body: bytes | None = None
    ) -> Json:
        try:
            headers = {**self._headers, **headers}
            answer = self._pool.request(verb, url, body=body, headers=headers, preload_content=False, redirect=False)
            content = answer.read(ANSWER_LIMIT + 1)
            answer.release_conn()
            return loads(content, LIMITS)
        except (HTTPError, A2AError) as error:
            raise PeerFailed(f"The agent {agent!r} could not be reached ({type(error).__name__}).") from error


def _interface(agent: str, card: Card) -> Interface:
    """The newest version that both speak."""
    spoken = {one.version: one for one in reversed(card.interfaces) if one.binding == "JSONRPC"}
    found = spoken.get("1.0") or spoken.get("0.3")
    if found is None:
        raise PeerFailed(f"The agent {agent!r} does not speak A2A over JSON-RPC.")
    return found


def _check_host(agent: str, configured: str, named: str) -> None:
    ours, theirs = urlsplit(configured), urlsplit(named)
    if (ours.scheme, ours.netloc) != (theirs.scheme, theirs.netloc):
        raise PeerFailed(f"The card of the agent {agent!r} points to another host, {theirs.netloc}.")


def _result(agent: str, document: Json) -> Json:
    answer: dict[str, Any] = document if isinstance(document, dict) else {}
    error = answer.get("error")
    if isinstance(error, dict):
        raise Refused(agent, int(error.get("code", 0)), str(error.get("message", ""))[:500])
    if "result" not in answer:
        raise PeerFailed(f"The agent {agent!r} did not answer in JSON-RPC.")
    return answer["result"]  # type: ignore[no-any-return]


def _understood(agent: str, read: Callable[[Json, Limits], T], answer: Json) -> T:
    try:
        return read(answer, LIMITS)
    except A2AError as error:
        raise PeerFailed(f"The agent {agent!r} gave an answer that is not A2A: {error}") from error
