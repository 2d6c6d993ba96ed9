"""What an agent may ask of its siblings: what its caller may, for as long as its caller's key holds."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless.adapters.api_keys import KEPT_MS, MemoryApiKeys, RememberedApiKeys
from a2a_serverless.adapters.passes import LIFE_MS, Passes
from a2a_serverless.adapters.peers import A2APeers
from a2a_serverless.client import Client, text_message
from a2a_serverless.domain.access import PASS_DIGEST, ApiKey, Caller, digest_of
from a2a_serverless.domain.errors import Unauthenticated
from a2a_serverless.domain.model import Principal, SendRequest, Task, TaskState
from a2a_serverless.handlers.gate import SignIn
from tests.client.deployment import BASE, Deployment
from tests.echo import agent_of

if TYPE_CHECKING:
    from a2a_serverless.domain.agent import Agent, AgentTask
    from a2a_serverless.domain.head import Head

ALICE = Principal("acme", "alice")
KEY = "a2a_alice"


def calling(name: str, below: str) -> Agent:
    async def work(task: AgentTask) -> str:
        child = await task.call("down", below, task.text())
        assert isinstance(child, Task)
        return f"{below} {child.status.state}"

    return agent_of(work, name)


class Late:
    """Calls a sibling, waits until its client says more, and calls again."""

    def __init__(self) -> None:
        self.agent = agent_of(self.work, "first")

    async def work(self, task: AgentTask) -> None:
        await task.call("before", "echo", task.text())
        await task.ask("Go on?")
        await task.call("after", "echo", task.text())


async def echo(task: AgentTask) -> str:
    return task.text()


class Chain:
    """A deployment whose agents call each other through its own front door."""

    def __init__(self, *agents: Agent) -> None:
        self.deployment = Deployment(*agents, gate=SignIn(self.find, self.token))
        self.world = self.deployment.world
        self.keys = MemoryApiKeys(lambda: self.world.now)
        self.remembered = RememberedApiKeys(self.keys, lambda: self.world.now)
        self.scopes = frozenset[str]()
        self.made = 0
        passes = Passes(self.keys, lambda: self.world.now, self._entropy)
        peers = A2APeers(
            {agent.id: f"{BASE}/{agent.id}" for agent in agents}, None, passes.headers, self.deployment.transport
        )
        self.world.engine = replace(self.world.engine, directory=replace(self.world.directory, peers=peers))

    def find(self, digest: str) -> ApiKey | None:
        return self.remembered.find(digest)

    def token(self, token: str) -> Caller:
        assert token == "token"
        return Caller(ALICE, self.scopes)

    def _entropy(self, count: int) -> bytes:
        self.made += 1
        return bytes([self.made] * count)

    def add(self, key: str, *scopes: str) -> None:
        self.keys.add(ApiKey(digest_of(key), ALICE, "", self.world.now, scopes=frozenset(scopes)))

    def send(self, agent: str, key: str = KEY, task_id: str | None = None, **headers: str) -> str:
        signed_in = headers or {"X-API-Key": key}
        client = Client(f"{BASE}/{agent}", self.deployment.transport, signed_in)
        sent = client.send(SendRequest(text_message("hello", task_id=task_id), return_immediately=True))
        assert isinstance(sent, Task)
        return sent.task_id

    def heads(self) -> dict[str, Head]:
        """The tasks' heads, by agent; the newest of each."""
        entries = self.world.table.page(ALICE, None, None, 0, 10)[0]
        return {one.agent: self.world.table.look(ALICE.key(one.task)).head for one in reversed(entries)}

    def said(self, agent: str) -> tuple[TaskState, str]:
        """The state of the agent's task, and the text of its status."""
        (_, task) = self.world.table.task(self.heads()[agent].key)
        return task.status.state, task.status.message.text() if task.status.message else ""

    def passes(self) -> list[ApiKey]:
        kept: dict[str, ApiKey] = self.keys._keys  # noqa: SLF001 - no list has them
        return [key for digest, key in kept.items() if digest.startswith(PASS_DIGEST)]


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
    assert {(key.scopes, key.parent) for key in chain.passes()} == {
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
    (before,) = chain.passes()
    chain.send("first", task_id=task_id)
    chain.keys.revoke(digest_of(KEY))
    chain.world.now += KEPT_MS
    chain.world.wait(60_000)
    state, reason = chain.said("first")
    assert state is TaskState.FAILED
    assert "The agent 'echo' refused" in reason
    assert "revoked" in reason
    assert chain.passes() == [before], "the pass is still in the table, and admits nobody"
    assert chain.keys.find(before.digest) == before


def test_a_child_that_no_longer_admits_the_caller_is_left_to_itself_and_not_asked_for_ever() -> None:
    async def asks(task: AgentTask) -> None:
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
    made = Passes(chain.keys, lambda: chain.world.now, chain._entropy).headers(Caller(ALICE, key=digest_of(KEY)))  # noqa: SLF001
    headers = {"x-api-key": made["X-API-Key"]}
    gate = SignIn(chain.find)
    assert gate.admit(headers) == Caller(ALICE, key=digest_of(KEY))
    chain.keys.revoke(digest_of(KEY))
    chain.world.now += KEPT_MS
    with pytest.raises(Unauthenticated):
        gate.admit(headers)


def test_a_token_has_no_key_and_its_passes_end_by_themselves() -> None:
    chain = Chain(*THREE)
    chain.scopes = frozenset({"a2a:first", "a2a:second", "a2a:echo", "openid", "a2apple"})
    chain.send("first", Authorization="Bearer token")
    chain.world.settle()
    assert chain.said("first") == (TaskState.COMPLETED, "second completed")
    assert {(head.scopes, head.api_key) for head in chain.heads().values()} == {("a2a:echo a2a:first a2a:second", "")}
    assert {(key.scopes, key.parent, key.expires) for key in chain.passes()} == {
        (frozenset({"a2a:first", "a2a:second", "a2a:echo"}), "", chain.passes()[0].made_at + LIFE_MS)
    }


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
    assert chain.world.table.touch(head, replace(head, scopes="", api_key="", rev=head.rev + 1))
    chain.world.settle()
    assert chain.said("first")[0] is TaskState.FAILED
    assert {key.scopes for key in chain.passes()} == {frozenset({"a2a:read", "a2a:first"})}


@pytest.mark.parametrize("parent", [digest_of(KEY), digest_of("a2a_unknown"), ""])
def test_a_pass_that_was_forged_in_the_table_stands_for_nobody_but_the_owner_of_its_key(parent: str) -> None:
    keys = MemoryApiKeys()
    keys.add(ApiKey(digest_of(KEY), ALICE, "", 0))
    forged = "a2a_pass_forged"
    bob = Principal("acme", "bob")
    keys.add(ApiKey(digest_of(forged), bob, "", 0, operator=True, expires=LIFE_MS, parent=parent))
    with pytest.raises(Unauthenticated):
        SignIn(keys.find).admit({"x-api-key": forged})
    assert not SignIn(keys.find).operates({"x-api-key": forged})
