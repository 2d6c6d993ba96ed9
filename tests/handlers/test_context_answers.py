"""A message that names a context and no task, to an agent that takes such a message as the answer to its question."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless.domain.access import Caller
from a2a_serverless.http.api import AllowAnonymous
from a2a_serverless.protocol.operations import Operation
from a2a_serverless.testing import AgentTestHarness
from a2a_serverless_tools.local.deployment import AS_AGENT
from tests.echo import Asker, agent_of
from tests.handlers.requests import Names
from tests.handlers.test_operations import CURRENT, MESSAGE, MINUTE_MS, Mine, Place, reason, state
from tests.world import ME

if TYPE_CHECKING:
    from collections.abc import Mapping

    from a2a_serverless import TaskContext
    from a2a_serverless.domain.agent import Agent

CONTEXT = "conversation"
SENDS = (Operation.SEND, Operation.STREAM)


def answering(agent: Agent | None = None) -> Agent:
    return replace(agent or Asker().agent, answers_by_context=True)


class Conversation(Place):
    """A deployment of one agent, and one conversation with it."""

    def say(self, message: str, context: str = CONTEXT, **fields: str) -> str:
        """The id of the task that a message has made or answered, once all is done that can be."""
        task = self.send(message, contextId=context, **fields)
        self.world.settle(MINUTE_MS)
        return task

    def states(self) -> dict[str, str]:
        """The state of each task, by its id."""
        return {task["id"]: str(state({"task": task})) for task in self.call("ListTasks")["tasks"]}


@pytest.mark.parametrize("operation", SENDS)
@pytest.mark.parametrize("binding", CURRENT)
def test_a_message_with_only_the_context_answers_the_one_open_question_there(
    binding: str, operation: Operation
) -> None:
    place = Conversation(answering())
    asked = place.say("m-1")
    assert place.states() == {asked: "input-required"}
    answer = place.ask(binding, operation, Names(context=CONTEXT, message="m-2", text="green"))
    if operation is Operation.STREAM:
        place.work_in(1000)
        (told,) = place.read(answer)
        assert state(told[-1]) == "completed"
    place.world.settle(MINUTE_MS)
    assert place.states() == {asked: "completed"}
    (artifact,) = place.call("GetTask", id=asked)["artifacts"]
    assert artifact["parts"] == [{"text": "hello in green"}]


@pytest.mark.parametrize("binding", CURRENT)
def test_a_message_in_a_context_starts_a_task_without_the_option(binding: str) -> None:
    place = Conversation(Asker().agent)
    asked = place.say("m-1")
    place.ask(binding, Operation.SEND, Names(context=CONTEXT, message="m-2"))
    place.world.settle(MINUTE_MS)
    assert (len(place.states()), place.states()[asked]) == (2, "input-required")


@pytest.mark.parametrize("binding", CURRENT)
def test_of_several_open_questions_the_message_must_name_one(binding: str) -> None:
    place = Conversation(answering())
    first = place.send("m-1", contextId=CONTEXT)
    second = place.send("m-2", contextId=CONTEXT)
    place.world.settle(MINUTE_MS)
    answer = place.ask(binding, Operation.SEND, Names(context=CONTEXT, message="m-3"))
    refused = reason(answer) or ""
    assert "message.taskId" in answer.body.decode()
    assert first in answer.body.decode()
    assert second in answer.body.decode()
    assert refused
    assert set(place.states().values()) == {"input-required"}
    place.say("m-4", taskId=first)
    assert place.say("m-5") == second, "now there is one"


@pytest.mark.parametrize("binding", CURRENT)
def test_a_question_for_a_sign_in_is_answered_so_too(binding: str) -> None:
    async def work(task: TaskContext) -> str:
        return (await task.ask("Sign in.", sign_in=True)).text()

    place = Conversation(answering(agent_of(work)))
    asked = place.say("m-1")
    place.ask(binding, Operation.SEND, Names(context=CONTEXT, message="m-2"))
    place.world.settle(MINUTE_MS)
    assert place.states() == {asked: "completed"}


def test_questions_of_other_contexts_agents_and_owners_are_not_answered() -> None:
    place = Conversation(answering())
    asked = place.say("m-1", context="another")
    begun = place.say("m-2")
    assert begun != asked
    assert place.send("m-3") not in {asked, begun}, "without a context"
    deployment = Conversation(answering())
    deployment.edge = replace(deployment.edge, authenticator=Mine())
    mine = deployment.say("m-1")
    deployment.edge = replace(deployment.edge, authenticator=Other())
    assert deployment.say("m-2") != mine


class Other(Mine):
    """The caller is another owner of the tenant."""

    def authenticate(self, headers: Mapping[str, str]) -> Caller:
        del headers
        return Caller(replace(ME, owner="other"))


class Sibling(Mine):
    """The caller is an agent of the deployment, in the name of the world's client."""

    def authenticate(self, headers: Mapping[str, str]) -> Caller:
        del headers
        return Caller(ME, is_agent=True)


def test_an_agent_of_the_deployment_always_starts_a_task_of_its_own() -> None:
    place = Conversation(answering())
    asked = place.say("m-1")
    place.edge = replace(place.edge, authenticator=Sibling())
    assert place.say("m-2") != asked


def test_an_anonymous_deployment_knows_its_own_agents_by_their_header() -> None:
    headers = {name.lower(): value for name, value in AS_AGENT.items()}
    assert [AllowAnonymous().authenticate(one).is_agent for one in (headers, {})] == [True, False]


def test_two_calls_of_an_agent_in_one_conversation_do_not_answer_each_others_questions() -> None:
    async def ask(task: TaskContext) -> str:
        return (await task.ask(f"{task.text()}?")).text()

    async def call_twice(task: TaskContext) -> str:
        first = task.call("one", "asker", "one")
        second = task.call("two", "asker", "two")
        return " ".join(one.status.message.text() for one in await asyncio.gather(first, second))  # type: ignore[union-attr]

    harness = AgentTestHarness(agent_of(call_twice, "caller"), answering(agent_of(ask, "asker")))
    asked = harness.send("go")
    harness.send("a", task_id=asked.task.id)
    assert harness.send("b", task_id=asked.task.id).state == "completed"
    assert len([one for one in harness.tasks(asked.task.context_id) if one.agent == "asker"]) == 2


def test_the_test_harness_takes_answers_by_context_as_a_deployment_does() -> None:
    harness = AgentTestHarness(answering())
    asked = harness.send("hello", context_id=CONTEXT)
    answered = harness.send("green", context_id=CONTEXT)
    assert (answered.task.id, answered.state) == (asked.task.id, "completed")


def test_a_message_that_is_sent_again_answers_no_other_question() -> None:
    place = Conversation(answering())
    asked = place.say("m-1")
    assert place.say("m-1") == asked, "the message that made the task is no answer to it"
    assert place.states() == {asked: "input-required"}
    assert place.say("m-2") == asked
    other = place.say("m-3")
    assert (place.say("m-2"), place.states()[other]) == (asked, "input-required")


def test_the_webhook_of_an_answer_is_registered_for_the_task_that_asked() -> None:
    place = Conversation(answering())
    asked = place.say("m-1")
    hook = {"id": "hook", "url": "https://hooks.example.com/a2a"}
    message: dict[str, Any] = MESSAGE | {"messageId": "m-2", "contextId": CONTEXT}
    configuration = {"returnImmediately": True, "taskPushNotificationConfig": hook}
    answered = place.call("SendMessage", message=message, configuration=configuration)
    assert answered["task"]["id"] == asked
    (config,) = place.call("ListTaskPushNotificationConfigs", taskId=asked)["configs"]
    assert config["id"] == "hook"


def test_a_task_that_works_is_no_open_question() -> None:
    place = Conversation(answering())
    asked = place.say("m-1")
    answered = place.send("m-2", contextId=CONTEXT)
    begun = place.send("m-3", contextId=CONTEXT)
    assert (answered == asked, begun == asked) == (True, False)
