"""Other agents over A2A 1.0 JSON-RPC, by the names of a directory of base URLs that the operator has set.

These URLs come from configuration, so the egress guard for strangers' URLs does not stand in their way. urllib3 is in
every function already: botocore brings it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

from urllib3 import PoolManager, Retry, Timeout
from urllib3.exceptions import HTTPError

from a2a_serverless.domain.agent import PeerFailed
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


class Refused(PeerFailed):
    """The agent answered with an error; ``code`` is its JSON-RPC code."""

    def __init__(self, agent: str, code: int, text: str) -> None:
        super().__init__(f"The agent {agent!r} refused: {text}")
        self.code = code


class A2APeers:
    """``ports.Peers``. ``directory`` maps an agent's name to its base URL."""

    def __init__(self, directory: Mapping[str, str], pool: PoolManager | None = None) -> None:
        self._directory = directory
        self._pool = pool or PoolManager(retries=Retry(0), timeout=TIMEOUT)

    def card(self, agent: str) -> Card:
        url = f"{self._url(agent)}/.well-known/agent-card.json"
        card = _understood(agent, read_card, self._exchanged(agent, "GET", url, {"Accept": "application/json"}))
        if not any(one.binding == "JSONRPC" and one.version == "1.0" for one in card.interfaces):
            raise PeerFailed(f"The agent {agent!r} does not speak A2A 1.0 over JSON-RPC.")
        return card

    def send(self, agent: str, message: Message, callback: PushRequest) -> Task | Message:
        request = v1.print_send(SendRequest(message, return_immediately=True, push=callback))
        answer = _understood(agent, v1.parse_stream_item, self._call(agent, Operation.SEND, request))
        if isinstance(answer, Task | Message):
            return answer
        raise PeerFailed(f"The agent {agent!r} answered with neither a task nor a message.")

    def get(self, agent: str, task_id: str) -> Task:
        return _understood(agent, v1.parse_task, self._call(agent, Operation.GET, {"id": task_id, "historyLength": 0}))

    def cancel(self, agent: str, task_id: str) -> None:
        try:
            self._call(agent, Operation.CANCEL, {"id": task_id})
        except Refused as refused:
            if refused.code not in {NOT_CANCELABLE, NOT_FOUND}:
                raise

    def _call(self, agent: str, operation: Operation, params: JsonObject) -> Json:
        body = dumps({"jsonrpc": "2.0", "id": 1, "method": operation.value, "params": params})
        headers = {"Content-Type": "application/json", "A2A-Version": "1.0"}
        return self._result(agent, self._exchanged(agent, "POST", self._url(agent), headers, body))

    def _url(self, agent: str) -> str:
        url = self._directory.get(agent)
        if url is None:
            known = ", ".join(sorted(self._directory))
            raise PeerFailed(f"There is no agent {agent!r} in the directory; there are {known}.")
        return url

    def _exchanged(
        self, agent: str, verb: str, url: str, headers: Mapping[str, str], body: bytes | None = None
    ) -> Json:
        try:
            answer = self._pool.request(verb, url, body=body, headers=headers, preload_content=False, redirect=False)
            content = answer.read(ANSWER_LIMIT + 1)
            answer.release_conn()
            return loads(content, LIMITS)
        except (HTTPError, A2AError) as error:
            raise PeerFailed(f"The agent {agent!r} could not be reached ({type(error).__name__}).") from error

    def _result(self, agent: str, document: Json) -> Json:
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
        raise PeerFailed(f"The agent {agent!r} gave an answer that is not A2A 1.0: {error}") from error
