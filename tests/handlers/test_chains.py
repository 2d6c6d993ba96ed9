"""What an agent may ask of its siblings: what its caller may, for as long as its caller's key holds."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless.adapters.remote_agents import A2ARemoteAgents
from a2a_serverless.adapters.service_tokens import (
    ServiceTokenIssuer,
    ServiceTokenVerifier,
    dump_claims,
    load_claims,
    require_worker,
)
from a2a_serverless.client import Client, ClientRequest, text_message
from a2a_serverless.domain.access import (
    SERVICE_TOKEN_LIFE_MS,
    SERVICE_TOKEN_PREFIX,
    ApiKey,
    Caller,
    ServiceToken,
    digest_of,
    encode_key,
)
from a2a_serverless.domain.errors import Overloaded, Unauthenticated
from a2a_serverless.domain.model import Principal
from a2a_serverless.engine.inline import EngineInlineRunner
from a2a_serverless.http.api import OidcOrApiKey
from a2a_serverless.protocol.v1 import SendMessageConfiguration, SendMessageRequest, Task, TaskState
from a2a_serverless.store.api_keys import KEPT_MS, CachedApiKeyStore
from tests.client.deployment import BASE, Deployment
from tests.doubles import MemoryApiKeyStore, MemoryServiceTokenSealer
from tests.echo import agent_of

if TYPE_CHECKING:
    from a2a_serverless.domain.agent import Agent
    from a2a_serverless.domain.head import Head
    from a2a_serverless.domain.task_context import TaskContext

ALICE = Principal("acme", "alice")
KEY = "a2a_alice"


def calling(name: str, below: str) -> Agent:
    async def work(task: TaskContext) -> str:
        child = await task.call("down", below, task.text())
        assert isinstance(child, Task)
        return f"{below} {child.status.state}"

    return agent_of(work, name)


class Late:
    """Calls a sibling, waits until its client says more, and calls again."""

    def __init__(self) -> None:
        self.agent = agent_of(self.work, "first")

    async def work(self, task: TaskContext) -> None:
        await task.call("before", "echo", task.text())
        await task.ask("Go on?")
        await task.call("after", "echo", task.text())


async def echo(task: TaskContext) -> str:
    return task.text()


class Noting(MemoryServiceTokenSealer):
    """Keeps the claims that it has sealed."""

    def __init__(self) -> None:
        super().__init__()
        self.claims: list[str] = []
        self.down = False

    def open(self, sealed: bytes) -> str:
        if self.down:
            raise Overloaded
        return super().open(sealed)

    def seal(self, claims: str) -> bytes:
        self.claims.append(claims)
        return super().seal(claims)


class Chain:
    """A deployment whose agents call each other through its own front door."""

    def __init__(self, *agents: Agent) -> None:
        self.deployment = Deployment(*agents, authenticator=OidcOrApiKey(self.find, self.token, self.opened))
        self.world = self.deployment.world
        self.keys, self.sealer = MemoryApiKeyStore(), Noting()
        self.remembered = CachedApiKeyStore(self.keys, lambda: self.world.now)
        self.passes_opened = ServiceTokenVerifier(self.sealer, lambda: self.world.now)
        self.scopes = frozenset[str]()
        service_tokens = ServiceTokenIssuer(self.sealer, lambda: self.world.now)
        remote_agents = A2ARemoteAgents(
            {agent.id: f"{BASE}/{agent.id}" for agent in agents},
            None,
            service_tokens.headers,
            self.deployment.transport,
        )
        self.world.engine = replace(
            self.world.engine, registry=replace(self.world.registry, remote_agents=remote_agents)
        )

    def find(self, digest: str) -> ApiKey | None:
        return self.remembered.find(digest)

    def token(self, token: str) -> Caller:
        assert token == "token"
        return Caller(ALICE, self.scopes)

    def opened(self, token: str) -> ServiceToken | None:
        return self.passes_opened.find(token)

    def add(self, key: str, *scopes: str) -> None:
        self.keys.add(ApiKey(digest_of(key), ALICE, "", self.world.now, scopes=frozenset(scopes)))

    def send(self, agent: str, key: str = KEY, task_id: str | None = None, **headers: str) -> str:
        signed_in = headers or {"X-API-Key": key}
        client = Client(f"{BASE}/{agent}", self.deployment.transport, signed_in)
        sent = client.send(
            SendMessageRequest(
                message=text_message("hello", task_id=task_id),
                configuration=SendMessageConfiguration(return_immediately=True),
            )
        )
        assert isinstance(sent, Task)
        return sent.id

    def heads(self) -> dict[str, Head]:
        """The tasks' heads, by agent; the newest of each."""
        entries = self.world.table.list_page(ALICE, None, None, 0, 10)[0]
        return {one.agent: self.world.table.read_head(ALICE.key(one.task)).head for one in reversed(entries)}

    def said(self, agent: str) -> tuple[TaskState, str]:
        """The state of the agent's task, and the text of its status."""
        (_, task) = self.world.table.read_task(self.heads()[agent].key)
        return task.status.state, task.status.message.text() if task.status.message else ""

    def service_tokens(self) -> list[ServiceToken]:
        return [load_claims(claims, self.world.now) for claims in self.sealer.claims]


THREE = (calling("first", "second"), calling("second", "echo"), agent_of(echo))


def test_every_task_of_a_chain_has_the_scopes_and_the_key_of_the_first_caller() -> None:
    chain = Chain(*THREE)
    chain.add(KEY, "a2a:first", "a2a:second", "a2a:echo")
    chain.send("first")
    chain.world.settle()
    assert chain.said("first") == (TaskState.COMPLETED, "second completed")
    heads = chain.heads()
    assert set(heads) == {"first", "second", "echo"}
    assert {(head.scopes, head.api_key) for head in heads.values()} == {
        ("a2a:echo a2a:first a2a:second", digest_of(KEY))
    }
    assert {(one.scopes, one.api_key) for one in chain.service_tokens()} == {
        (frozenset({"a2a:first", "a2a:second", "a2a:echo"}), digest_of(KEY))
    }


def test_a_key_for_one_agent_has_no_other_called() -> None:
    chain = Chain(*THREE)
    chain.add(KEY, "a2a:first")
    chain.send("first")
    chain.world.settle()
    state, reason = chain.said("first")
    assert state is TaskState.FAILED
    assert "The agent 'second' refused" in reason
    assert "a2a:second" in reason
    assert set(chain.heads()) == {"first"}


def test_scopes_do_not_widen_on_the_second_level_either() -> None:
    chain = Chain(*THREE)
    chain.add(KEY, "a2a:first", "a2a:second", "a2a:read")
    chain.send("first")
    chain.world.settle()
    assert chain.said("first") == (TaskState.COMPLETED, "second failed")
    state, reason = chain.said("second")
    assert state is TaskState.FAILED
    assert "a2a:echo" in reason
    assert set(chain.heads()) == {"first", "second"}


def test_a_revoked_key_takes_its_passes_along() -> None:
    chain = Chain(Late().agent, agent_of(echo))
    chain.add(KEY, "a2a")
    task_id = chain.send("first")
    chain.world.wait(10_000)
    assert chain.said("first") == (TaskState.INPUT_REQUIRED, "Go on?")
    (before,) = chain.service_tokens()
    chain.send("first", task_id=task_id)
    chain.keys.revoke(digest_of(KEY))
    chain.world.now += KEPT_MS
    chain.world.wait(60_000)
    state, reason = chain.said("first")
    assert state is TaskState.FAILED
    assert "The agent 'echo' refused" in reason
    assert "revoked" in reason
    assert chain.service_tokens() == [before], "the pass has not ended, and admits nobody"


def test_a_child_that_no_longer_admits_the_caller_is_left_to_itself_and_not_asked_for_ever() -> None:
    async def asks(task: TaskContext) -> None:
        await task.ask("Which colour?")

    chain = Chain(calling("first", "echo"), agent_of(asks))
    chain.add(KEY, "a2a")
    task_id = chain.send("first")
    chain.world.wait(10_000)
    assert chain.said("first") == (TaskState.INPUT_REQUIRED, "Which colour?")
    chain.send("first", task_id=task_id)
    chain.keys.revoke(digest_of(KEY))
    chain.world.now += KEPT_MS
    chain.world.settle(120_000)
    assert (chain.said("first")[0], chain.said("echo")[0]) == (TaskState.FAILED, TaskState.INPUT_REQUIRED)
    head = chain.heads()["first"]
    assert (head.children, head.due_at) == (False, None)


def test_a_pass_works_no_longer_than_a_revoked_key_is_remembered() -> None:
    chain = Chain(agent_of(echo))
    chain.add(KEY, "a2a")
    made = ServiceTokenIssuer(chain.sealer, lambda: chain.world.now).headers(Caller(ALICE, key=digest_of(KEY)))
    headers = {"x-api-key": made["X-API-Key"]}
    authenticator = OidcOrApiKey(chain.find, service_tokens=chain.opened)
    assert authenticator.authenticate(headers) == Caller(ALICE, key=digest_of(KEY), is_agent=True)
    chain.keys.revoke(digest_of(KEY))
    chain.world.now += KEPT_MS
    with pytest.raises(Unauthenticated):
        authenticator.authenticate(headers)


def test_a_token_has_no_key_and_its_passes_end_by_themselves() -> None:
    chain = Chain(*THREE)
    chain.scopes = frozenset({"a2a:first", "a2a:second", "a2a:echo", "openid", "a2apple"})
    made_at = chain.world.now
    chain.send("first", Authorization="Bearer token")
    chain.world.settle()
    assert chain.said("first") == (TaskState.COMPLETED, "second completed")
    assert {(head.scopes, head.api_key) for head in chain.heads().values()} == {("a2a:echo a2a:first a2a:second", "")}
    assert {(one.scopes, one.api_key) for one in chain.service_tokens()} == {
        (frozenset({"a2a:first", "a2a:second", "a2a:echo"}), "")
    }
    assert all(made_at < one.expires_at <= chain.world.now + SERVICE_TOKEN_LIFE_MS for one in chain.service_tokens())


def test_the_caller_whose_message_came_last_is_the_one_that_counts() -> None:
    chain = Chain(Late().agent, agent_of(echo))
    chain.add(KEY, "a2a")
    chain.add("a2a_narrow", "a2a:first")
    task_id = chain.send("first")
    chain.world.wait(10_000)
    chain.send("first", "a2a_narrow", task_id)
    chain.world.settle()
    state, reason = chain.said("first")
    assert (state, "a2a:echo" in reason) == (TaskState.FAILED, True)
    assert chain.heads()["first"].api_key == digest_of("a2a_narrow")


def test_a_task_of_an_earlier_release_has_its_agents_read_and_call_nobody() -> None:
    chain = Chain(*THREE)
    chain.add(KEY, "a2a")
    chain.send("first")
    head: Any = chain.heads()["first"]
    assert chain.world.table.update_head(head, head._replace(scopes="", api_key="", rev=head.rev + 1))
    chain.world.settle()
    assert chain.said("first")[0] is TaskState.FAILED
    assert {one.scopes for one in chain.service_tokens()} == {frozenset({"a2a:read", "a2a:first"})}


@pytest.mark.parametrize("parent", [digest_of(KEY), digest_of("a2a_unknown"), ""])
def test_a_pass_stands_for_nobody_but_the_owner_of_its_key(parent: str) -> None:
    keys, sealer = MemoryApiKeyStore(), MemoryServiceTokenSealer()
    keys.add(ApiKey(digest_of(KEY), ALICE, "", 0))
    claims = dump_claims(ServiceToken(Principal("acme", "bob"), frozenset({"a2a"}), parent, SERVICE_TOKEN_LIFE_MS))
    authenticator = OidcOrApiKey(keys.find, service_tokens=ServiceTokenVerifier(sealer, lambda: 0).find)
    headers = {"x-api-key": encode_key(sealer.seal(claims), SERVICE_TOKEN_PREFIX)}
    with pytest.raises(Unauthenticated):
        authenticator.authenticate(headers)


@pytest.mark.parametrize("path", ["/echo", "/echo/tasks"])
def test_while_passes_cannot_be_checked_callers_are_told_to_come_again_and_keys_go_on_working(path: str) -> None:
    chain = Chain(agent_of(echo))
    chain.add(KEY, "a2a")
    token = ServiceTokenIssuer(chain.sealer, lambda: chain.world.now).headers(Caller(ALICE, key=digest_of(KEY)))[
        "X-API-Key"
    ]
    chain.sealer.down = True
    body = b'{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":{}}' if path == "/echo" else None
    for key, status in ((token, 503), (KEY, 200), (token, 503)):
        headers = {"X-API-Key": key, "A2A-Version": "1.0", "Content-Type": "application/json"}
        with chain.deployment.transport(ClientRequest(BASE + path, headers, body)) as answer:
            assert (answer.status, answer.headers.get("retry-after")) == (status, "1" if status == 503 else None)


def test_an_inline_agent_leaves_its_calls_to_the_worker_which_alone_may_make_passes() -> None:
    chain = Chain(replace(calling("first", "echo"), runs="inline"), agent_of(echo))
    chain.add(KEY, "a2a")
    remote_agents = A2ARemoteAgents({"first": f"{BASE}/first", "echo": f"{BASE}/echo"}, None, require_worker)
    registry = replace(chain.world.registry, remote_agents=remote_agents, worker_only=frozenset({"first", "echo"}))
    chain.send("first")
    here = EngineInlineRunner(replace(chain.world.engine, registry=registry), chain.world.play)
    here.run(chain.heads()["first"].key, 20_000)
    assert (set(chain.heads()), chain.service_tokens()) == ({"first"}, [])
    chain.world.settle()
    assert chain.said("first") == (TaskState.COMPLETED, "echo completed")
