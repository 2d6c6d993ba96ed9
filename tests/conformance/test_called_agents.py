"""Agents that call agents, over real HTTP: signed in, signed webhooks, two deployments.

Nobody sweeps here, so a webhook that is not let in leaves its parent waiting.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless.client import Client, HttpError, discover, text_message
from a2a_serverless.domain.contents import references_in
from a2a_serverless.domain.current_task import current_task
from a2a_serverless.domain.errors import TaskNotFound
from a2a_serverless.domain.model import Principal
from a2a_serverless.domain.states import TERMINAL
from a2a_serverless.protocol.v1 import Message, SendMessageConfiguration, SendMessageRequest, Task, TaskState
from sample_agents.document import document
from sample_agents.orchestrator import orchestrator
from sample_agents.outline import outline
from sample_agents.summary import summary
from tests.conformance.live import serving
from tests.echo import Writer, agent_of
from tests.observed import observed
from tests.sample_agents.test_writing_agents import ENGLISH

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_serverless.domain.task_context import TaskContext

pytestmark = pytest.mark.enable_socket

ALICE = {"X-API-Key": "a2a_alice"}
BOB = {"X-API-Key": "a2a_bob"}
CALLERS = {"a2a_alice": Principal("acme", "alice"), "a2a_bob": Principal("acme", "bob")}
WRITERS = (orchestrator, outline, document, summary)
TIMEOUT_S = 60
EACH = 8


def ended(read: Callable[[], Task]) -> Task:
    give_up = time.monotonic() + TIMEOUT_S
    while (task := read()).status.state not in TERMINAL:
        assert time.monotonic() < give_up, f"{task.status}"
        time.sleep(0.1)
    return task


def sent(client: Client, text: str) -> Task:
    task = client.send(
        SendMessageRequest(message=text_message(text), configuration=SendMessageConfiguration(return_immediately=True))
    )
    assert not isinstance(task, Message)
    return ended(lambda: client.get(task.id))


def test_the_chain_works_where_callers_sign_in_and_all_its_tasks_belong_to_the_caller() -> None:
    with serving(WRITERS, callers=CALLERS) as url:
        task = sent(Client(f"{url}/orchestrator", observed(url), ALICE), ENGLISH)
        assert [artifact.name for artifact in task.artifacts] == [
            "outline.json",
            "summary.md",
            "report.json",
            "document.md",
        ]
        (origin,) = references_in(task.artifacts[-1].parts)
        assert Client(f"{url}/document", observed(url), ALICE).get(origin.task_id).context_id == task.context_id
        with pytest.raises(TaskNotFound):
            Client(f"{url}/document", observed(url), BOB).get(origin.task_id)
        with pytest.raises(HttpError, match="401"):
            Client(f"{url}/document", observed(url)).get(origin.task_id)


@pytest.mark.requirement(11)
def test_rule_03_tasks_of_two_owners_at_once_in_the_threads_of_one_process_stay_apart() -> None:
    together = Barrier(2 * EACH)

    def meet() -> str:
        together.wait(TIMEOUT_S)
        return current_task().caller.owner

    async def ask(task: TaskContext) -> str:
        in_thread = await task.step("meet", meet)
        await task.conversation.put(f"{in_thread} {task.text()}", task.text())
        child: Any = await task.call("call", "child", "Who?")
        values = await task.conversation.list("")
        stored = {value.key.split()[0] for value in values}
        return " ".join({in_thread, child.status.message.text(), current_task().caller.owner, *stored})

    async def who(task: TaskContext) -> str:
        return task.caller.owner

    def send(of: tuple[dict[str, str], int]) -> str:
        headers, number = of
        client = Client(f"{url}/parent", observed(url), headers)
        message = text_message(str(number), context_id="shared")
        request = SendMessageRequest(message=message, configuration=SendMessageConfiguration(return_immediately=True))
        task = client.send(request)
        assert isinstance(task, Task)
        found = ended(lambda: client.get(task.id)).status
        assert found.message
        return found.message.text()

    agents = [agent_of(ask, "parent"), agent_of(who, "child")]
    with serving(agents, callers=CALLERS) as url, ThreadPoolExecutor(2 * EACH) as pool:
        found = [*pool.map(send, ((headers, number) for headers in (ALICE, BOB) for number in range(EACH)))]
    assert found == ["alice"] * EACH + ["bob"] * EACH


@pytest.mark.parametrize("old", [False, True], ids=["1.0", "0.3"])
def test_an_agent_of_another_deployment_is_called_and_its_signed_webhook_believed(*, old: bool) -> None:
    async def ask(task: TaskContext) -> None:
        child: Any = await task.call("write", "far", task.text())
        await task.emit("result.md", f"{child.status.state}: {child.artifacts[0].text()}", last=True)

    shape: dict[str, Any] = {"shape": "v0_3"} if old else {}
    with (
        serving([Writer(seconds=0.1).agent], **shape) as there,
        serving([agent_of(ask, "parent")], others={"far": f"{there}/echo"}) as here,
    ):
        found = discover(f"{there}/echo", observed(there))
        assert found.client.version == ("0.3" if old else "1.0")
        task = sent(Client(f"{here}/parent", observed(here)), "hello")
    assert task.status.state is TaskState.COMPLETED
    assert task.artifacts[0].text().startswith("completed: one: hello.")


def test_an_agent_without_webhooks_is_called_without_one_here_and_in_another_deployment() -> None:
    async def greet(task: TaskContext) -> str:
        return f"Hello, {task.text()}"

    async def ask(task: TaskContext) -> str:
        answers = [await task.call(name, name, name) for name in ("plain", "far")]
        return " ".join(answer.text() for answer in answers if isinstance(answer, Message))

    plain = replace(agent_of(greet, "plain"), runs="inline", push=False)
    with (
        serving([plain]) as there,
        serving([agent_of(ask, "parent"), plain], others={"far": f"{there}/plain"}) as here,
    ):
        task = sent(Client(f"{here}/parent", observed(here)), "hello")
    assert task.status.message
    assert task.status.message.text() == "Hello, plain Hello, far"
