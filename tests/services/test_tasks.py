"""Send, get and cancel."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless.domain.errors import (
    InvalidParams,
    Overloaded,
    PushNotSupported,
    TaskNotCancelable,
    TaskNotFound,
    UnsupportedOperation,
)
from a2a_serverless.domain.model import Principal
from a2a_serverless.domain.queue_messages import WorkMessage
from a2a_serverless.protocol.operations import Operation
from a2a_serverless.protocol.v1 import (
    CreateTaskPushNotificationConfigRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetTaskPushNotificationConfigRequest,
    ListTaskPushNotificationConfigsRequest,
    Message,
    Part,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    Task,
    TaskPushNotificationConfig,
    TaskState,
    TaskStatus,
)
from a2a_serverless.services import webhooks
from a2a_serverless.services.operation_runner import ANSWERS, STREAMS, run_operation
from a2a_serverless.services.requests import RequestContext
from a2a_serverless.services.streams import start_stream
from a2a_serverless.services.tasks import cancel, get, send
from a2a_serverless.testing.memory import MemoryMetrics, MemoryStores
from a2a_serverless.testing.simulated_loop import START
from tests.echo import Asker, Writer, agent_of
from tests.faults.plans import At, NoFaults
from tests.simulated import Killed
from tests.world import HOOK, ME, World, configured, webhook

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_serverless.domain.decisions import Change
    from a2a_serverless.domain.task_context import TaskContext
    from a2a_serverless.protocol.protojson import ProtoModel
    from a2a_serverless.services.requests import TaskService


def world_of(*agents: Any) -> World:
    return World([one.agent for one in agents or (Writer(),)])


def said(text: str = "hello", message_id: str = "m-1", **fields: Any) -> SendMessageRequest:
    """A request that is answered at once; ``fields`` are the message's."""
    message = Message(message_id=message_id, role=Role.USER, parts=(Part(text=text),), **fields)
    return SendMessageRequest(message=message, configuration=SendMessageConfiguration(return_immediately=True))


def sent(world: World, request: SendMessageRequest, agent: str = "echo", principal: Principal = ME) -> Task:
    task = send(world.service, RequestContext(principal, agent, "1.0"), request)
    assert isinstance(task, Task)
    return task


def violations(error: InvalidParams) -> list[str]:
    return [violation.field for violation in error.violations]


# ---- Send


@pytest.mark.requirement(27, 49, 52)
def test_a_message_makes_a_task_and_enqueues_it() -> None:
    world = world_of()
    task = sent(world, said(metadata={"a": 1}, context_id="talk"))
    message = Message(
        message_id="m-1",
        role=Role.USER,
        parts=(Part(text="hello"),),
        context_id="talk",
        task_id=task.id,
        metadata={"a": 1},
    )
    status = TaskStatus(state=TaskState.SUBMITTED, timestamp=START)
    assert task == Task(id=task.id, context_id="talk", status=status, history=(message,)).as_of(1) == world.get(task.id)
    assert [message for _, message in world.queue.waiting] == [WorkMessage(ME.key(task.id))]
    assert world.now == START


@pytest.mark.requirement(48)
def test_a_message_without_a_context_gets_a_context_of_its_own() -> None:
    world = world_of()
    contexts = {sent(world, said(message_id=message_id)).context_id for message_id in ("m-1", "m-2")}
    assert len(contexts) == 2
    assert "" not in contexts


def test_a_repeated_message_gives_the_task_that_it_made_the_first_time() -> None:
    world = world_of()
    first = sent(world, said())
    assert sent(world, said()) == first
    world.settle()
    assert sent(world, said()) == world.get(first.id)
    assert world.get(first.id).status.state is TaskState.COMPLETED


def test_a_repeated_message_with_another_body_is_refused_by_name() -> None:
    world = world_of()
    first = sent(world, said("hello"))
    with pytest.raises(InvalidParams) as refusal:
        sent(world, said("good bye"))
    assert violations(refusal.value) == ["message.messageId"]
    assert world.get(first.id) == first


@pytest.mark.parametrize("principal", [Principal("tenant", "other"), Principal("other", "me")])
def test_rule_03_a_message_id_belongs_to_its_sender(principal: Principal) -> None:
    world = world_of()
    mine = sent(world, said("hello"))
    assert sent(world, said("good bye"), principal=principal).id != mine.id


def test_a_message_id_belongs_to_its_agent() -> None:
    writer, other = Writer(), Writer()
    other.agent = replace(other.agent, id="other")
    world = world_of(writer, other)
    assert sent(world, said("hello")).id != sent(world, said("good bye"), agent="other").id


def test_without_idempotency_every_message_makes_a_task() -> None:
    world = world_of()
    world.service = world.service._replace(idempotent=False)
    assert sent(world, said()).id != sent(world, said()).id


@pytest.mark.requirement(55)
def test_a_follow_up_is_taken_in_once_however_often_it_is_sent() -> None:
    world = world_of()
    task = sent(world, said())
    more = said("more", "m-2", task_id=task.id)
    once = sent(world, more)
    assert sent(world, more) == once == world.get(task.id)
    assert [message.message_id for message in once.history] == ["m-1", "m-2"]
    assert {message.context_id for message in once.history} == {task.context_id}


@pytest.mark.requirement(56)
def test_a_follow_up_must_be_of_the_task_s_context() -> None:
    world = world_of()
    task = sent(world, said(context_id="talk"))
    assert sent(world, said("more", "m-2", task_id=task.id, context_id="talk")).n == 2
    with pytest.raises(InvalidParams) as refusal:
        sent(world, said("more", "m-3", task_id=task.id, context_id="other"))
    assert violations(refusal.value) == ["message.contextId"]
    assert world.get(task.id).n == 2


def test_a_follow_up_to_a_task_that_has_ended_is_refused() -> None:
    world = world_of()
    task = sent(world, said())
    world.settle()
    with pytest.raises(UnsupportedOperation, match="Send a new message with the same contextId"):
        sent(world, said("more", "m-2", task_id=task.id))


def test_a_follow_up_of_a_task_that_waits_makes_it_run_again() -> None:
    world = world_of(Asker())
    task = sent(world, said())
    world.settle()
    assert world.get(task.id).status.state is TaskState.INPUT_REQUIRED
    sent(world, said("red", "m-2", task_id=task.id))
    world.settle()
    assert [part.value for part in world.get(task.id).artifacts[0].parts] == ["hello in red"]


# ---- Waiting for the end


def blocking(request: SendMessageRequest) -> SendMessageRequest:
    return configured(request, return_immediately=False)


@pytest.mark.requirement(26)
def test_a_blocking_send_answers_with_the_end() -> None:
    world = world_of(Writer(seconds=1.5))
    task = sent(world, blocking(said()))
    assert task.status.state is TaskState.COMPLETED
    assert 4_500 <= world.now - START <= 6_000


@pytest.mark.requirement(26)
def test_a_blocking_send_answers_when_the_task_waits_for_its_client() -> None:
    world = world_of(Asker())
    assert sent(world, blocking(said())).status.state is TaskState.INPUT_REQUIRED


def test_a_blocking_send_does_not_wait_longer_than_the_platform_lets_it() -> None:
    world = world_of()
    world.queue.clear()
    silent = world.service._replace(queues=Deaf())
    task = send(silent, RequestContext(ME, "echo", "1.0"), blocking(said()))
    assert isinstance(task, Task)
    assert task.status.state is TaskState.SUBMITTED
    assert world.now - START == world.service.blocking_ms


class Deaf:
    """A queue whose messages nobody receives."""

    def enqueue(self, *_: object) -> None:
        pass

    def enqueue_many(self, *_: object) -> None:
        pass


# ---- Webhooks that come with a message


def with_push(request: SendMessageRequest, url: str = HOOK, **fields: Any) -> SendMessageRequest:
    return configured(request, task_push_notification_config=webhook(url, **fields))


def test_a_webhook_in_a_new_message_is_there_from_the_first_event() -> None:
    world = world_of()
    task = sent(world, with_push(said(), id="hook"))
    (cursor,) = world.table.list_cursors(ME.key(task.id))
    assert (cursor.config_id, cursor.start, cursor.position) == ("hook", 1, 0)


@pytest.mark.requirement(35)
def test_a_message_with_a_bad_webhook_makes_no_task() -> None:
    world = world_of()
    with pytest.raises(InvalidParams) as refusal:
        sent(world, with_push(said(), url="http://10.0.0.1/", token="a\nb"))
    assert [name.rpartition(".")[2] for name in violations(refusal.value)] == ["token", "url"]
    assert world.table.feed == []
    assert sent(world, said("good bye")).n == 1, "the message id is still free"


def test_a_follow_up_with_a_bad_webhook_leaves_the_task_as_it_was() -> None:
    world = world_of()
    task = sent(world, said())
    with pytest.raises(InvalidParams):
        sent(world, with_push(said("more", "m-2", task_id=task.id), url="http://10.0.0.1/"))
    assert world.get(task.id) == task


def test_a_follow_up_to_an_ended_task_does_not_leave_its_webhook_behind() -> None:
    world = world_of()
    task = sent(world, said())
    world.settle()
    with pytest.raises(UnsupportedOperation):
        sent(world, with_push(said("more", "m-2", task_id=task.id)))
    assert world.table.list_configs(ME.key(task.id)) == []


@pytest.mark.parametrize("push", [False, True])
def test_a_repeat_that_meets_the_first_send_is_answered_like_it_though_the_task_has_ended(*, push: bool) -> None:
    faults = During("table.find_idempotency")
    world = World([Asker().agent], faults)
    task_id = world.send("hello").id
    world.settle()
    request = world.request("red", push=push, task_id=task_id)

    def send_and_cancel() -> None:
        world.sent(request)
        world.cancel(task_id)

    faults.do(send_and_cancel)
    assert world.sent(request).status.state is TaskState.CANCELED


class During(NoFaults):
    """Something is done once, right after a call of the table."""

    def __init__(self, call: str) -> None:
        self.call = call
        self.work: Callable[[], object] | None = None

    def do(self, work: Callable[[], object]) -> None:
        self.work = work

    def after(self, port: str, call: str) -> None:
        if f"{port}.{call}" == self.call and self.work:
            work, self.work = self.work, None
            work()


def test_a_webhook_in_a_repeated_follow_up_is_one_webhook() -> None:
    world = world_of()
    task = sent(world, said())
    request = with_push(said("more", "m-2", task_id=task.id))
    sent(world, request)
    before = world.table.list_configs(ME.key(task.id))
    sent(world, request)
    assert world.table.list_configs(ME.key(task.id)) == before
    assert len(before) == 1


def test_a_webhook_whose_message_was_lost_is_one_webhook_when_the_message_is_sent_again() -> None:
    faults = During("table.add_config")
    world = World([Writer().agent], faults)
    task = sent(world, said())
    request = with_push(said("more", "m-2", task_id=task.id))

    def die() -> None:
        raise Killed

    faults.do(die)
    with pytest.raises(Killed):
        sent(world, request)
    assert [message.message_id for message in world.get(task.id).history] == ["m-1"]
    assert [message.message_id for message in sent(world, request).history] == ["m-1", "m-2"]
    assert len(world.table.list_configs(ME.key(task.id))) == 1


# ---- Answers that name the context only


def answered(world: World, message_id: str, task: Task, text: str = "green") -> Task:
    """What a message without a taskId is answered with, by an agent that takes it as an answer."""
    context = RequestContext(ME, "echo", "1.0", answers_by_context=True)
    answer = send(world.service, context, said(text, message_id, context_id=task.context_id))
    assert isinstance(answer, Task)
    return answer


def asked(faults: NoFaults | None = None) -> tuple[World, Task]:
    """A task that asks its client."""
    world = World([Asker().agent], faults)
    task = sent(world, said("hello"))
    world.settle()
    return world, task


MOMENTS = ("table.find_idempotency", "table.list_page", "table.read_head")


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("how", ["answer", "cancel", "answer by context"])
def test_a_question_that_is_closed_while_its_answer_is_stored_is_not_answered_twice(how: str, moment: str) -> None:
    faults = During(moment)
    world, task = asked(faults)
    closes: dict[str, Callable[[], object]] = {
        "answer": lambda: sent(world, said("red", "m-2", task_id=task.id)),
        "cancel": lambda: world.cancel(task.id),
        "answer by context": lambda: answered(world, "m-2", task, "red"),
    }
    faults.do(closes[how])
    late = answered(world, "m-3", task)
    assert (late.id == task.id, late.context_id) == (False, task.context_id)
    world.settle()
    assert [message.message_id for message in world.get(task.id).history if message.role is Role.USER][1:] in (
        ["m-2"],
        [],
    )


@pytest.mark.parametrize("moment", MOMENTS)
def test_an_answer_that_is_sent_twice_at_once_is_stored_once(moment: str) -> None:
    faults = During(moment)
    world, task = asked(faults)
    faults.do(lambda: answered(world, "m-2", task))
    assert answered(world, "m-2", task).id == task.id
    world.settle()
    done = world.get(task.id)
    assert done.status.state is TaskState.COMPLETED
    assert [message.message_id for message in done.history if message.role is Role.USER] == ["m-1", "m-2"]


def test_a_repeat_with_another_content_is_refused_as_everywhere() -> None:
    world, task = asked()
    answered(world, "m-2", task)
    with pytest.raises(InvalidParams):
        answered(world, "m-2", task, "blue")


def test_of_several_questions_the_refusal_names_some_and_nothing_is_stored() -> None:
    world, task = asked()
    for number in range(12):
        sent(world, said("hello", f"n-{number}", context_id=task.context_id))
    world.settle()
    before = len(world.table.feed)
    with pytest.raises(InvalidParams, match="13 tasks of this context that ask") as refusal:
        answered(world, "m-2", task)
    assert violations(refusal.value) == ["message.taskId"]
    assert refusal.value.violations[0].description.count(",") == 9
    assert len(world.table.feed) == before


# ---- Get and cancel


@pytest.mark.requirement(66, 67)
def test_get_shows_the_task_to_which_its_log_adds_up() -> None:
    world = world_of()
    task = sent(world, said())
    world.settle()
    done = world.get(task.id)
    assert (done.status.state, done.n) == (TaskState.COMPLETED, 7)
    assert [part.value for part in done.artifacts[0].parts] == ["one: hello. two: hello. three: hello. "]
    assert [(message.role, message.parts[0].value) for message in done.history] == [
        (Role.USER, "hello"),
        (Role.AGENT, "three sections"),
    ]


def test_a_cancel_ends_a_task_that_nobody_runs_yet() -> None:
    world = world_of()
    task = sent(world, said())
    canceled = world.cancel(task.id)
    assert canceled == task.model_copy(update={"status": TaskStatus(state=TaskState.CANCELED, timestamp=START)}).as_of(
        2
    )
    world.settle()
    assert world.get(task.id) == canceled


def test_each_change_by_a_client_carries_its_own_trace_to_the_webhook() -> None:
    world = world_of(Asker())
    traces = {name: f"00-{digit * 32}-{digit * 16}-01" for name, digit in (("sent", "a"), ("again", "b"), ("end", "c"))}
    world.trace = traces["sent"]
    task = world.send("hello")
    world.settle()
    world.trace = traces["again"]
    world.sent(said("blue", "m-2", task_id=task.id))
    world.settle()
    world.trace = traces["end"]
    other = world.send("hello")
    world.cancel(other.id)
    world.settle()
    seen = [post.headers["traceparent"][3:35] for post in world.receiver.posts]
    assert list(dict.fromkeys(seen)) == ["a" * 32, "b" * 32, "c" * 32]
    world.trace = ""
    waits = world.send("hello")
    world.settle()
    assert "traceparent" not in world.receiver.posts[-1].headers
    world.trace = traces["end"]
    world.cancel(waits.id)
    world.settle()
    assert world.receiver.posts[-1].headers["traceparent"][3:35] == "c" * 32


def test_sends_and_cancels_of_clients_are_counted_by_state() -> None:
    world, metrics = world_of(), MemoryMetrics()
    world.service = world.service._replace(metrics=metrics)
    task = sent(world, said())
    assert sent(world, said()) == task, "a repeated message counts once"
    world.cancel(task.id)
    assert metrics.counted == [
        ("TaskStates", {"state": "submitted", "task": task.id}),
        ("TaskStates", {"state": "canceled", "task": task.id}),
    ]


@pytest.mark.parametrize(
    "request_",
    [
        CreateTaskPushNotificationConfigRequest(task_id="task", url=HOOK),
        GetTaskPushNotificationConfigRequest(task_id="task", id="hook"),
        ListTaskPushNotificationConfigsRequest(task_id="task"),
        DeleteTaskPushNotificationConfigRequest(task_id="task", id="hook"),
    ],
    ids=lambda request: type(request).__name__,
)
def test_an_agent_without_webhooks_says_so_before_it_looks_for_the_task(request_: ProtoModel) -> None:
    world = world_of()
    agent = replace(world.engine.agents["echo"], push=False)
    operation = next(one for one in Operation if one.request is type(request_))
    with pytest.raises(PushNotSupported):
        run_operation(operation, world.service, RequestContext(ME, "echo", "1.0"), agent, request_)


def test_every_operation_has_a_function() -> None:
    assert ANSWERS.keys() == {operation for operation in Operation if not operation.streams}
    assert STREAMS.keys() == {operation for operation in Operation if operation.streams}


def test_a_task_that_has_ended_cannot_be_canceled() -> None:
    world = world_of()
    task = sent(world, said())
    world.cancel(task.id)
    with pytest.raises(TaskNotCancelable):
        world.cancel(task.id)
    assert world.get(task.id).n == 2


def test_a_task_that_waits_can_be_canceled() -> None:
    world = world_of(Asker())
    task = sent(world, blocking(said()))
    assert world.cancel(task.id).status.state is TaskState.CANCELED


# ---- What is not yours does not exist


def test_a_task_that_ends_while_its_stream_begins_is_refused_as_one_that_has_ended() -> None:
    def end() -> None:
        world.cancel(task.id)

    faults = At(late=True, what=end, only="table.read_head")
    world = World([Asker().agent], faults=faults)
    task = world.send(push=False)
    world.settle()
    faults.after_now(1)
    with pytest.raises(UnsupportedOperation):
        start_stream(world.service.log, ME.key(task.id), "echo", None)
    assert faults.met == ["table.read_head"]


OPERATIONS: dict[str, Callable[[TaskService, Principal, str, str], object]] = {
    "get": lambda service, principal, agent, task: get(service, RequestContext(principal, agent, "1.0"), task),
    "cancel": lambda service, principal, agent, task: cancel(service, RequestContext(principal, agent, "1.0"), task),
    "follow-up": lambda service, principal, agent, task: send(
        service, RequestContext(principal, agent, "1.0"), said("x", "m-9", task_id=task)
    ),
    "follow-up with a webhook": lambda service, principal, agent, task: send(
        service, RequestContext(principal, agent, "1.0"), with_push(said("x", "m-9", task_id=task))
    ),
    "subscribe": lambda service, principal, agent, task: start_stream(
        service.log, principal.key(task), agent, None, ends_fine=False
    ),
    "add a webhook": lambda service, principal, agent, task: webhooks.add(
        service.webhooks(), principal.key(task), agent, TaskPushNotificationConfig(url=HOOK), "1.0"
    ),
    "get a webhook": lambda service, principal, agent, task: webhooks.get(
        service.webhooks(), principal.key(task), agent, "hook"
    ),
    "list webhooks": lambda service, principal, agent, task: webhooks.list_configs(
        service.webhooks(), principal.key(task), agent
    ),
    "delete a webhook": lambda service, principal, agent, task: webhooks.delete(
        service.webhooks(), principal.key(task), agent, "hook"
    ),
}
STRANGERS = {
    "another owner": (Principal("tenant", "other"), "echo", None),
    "another tenant": (Principal("other", "me"), "echo", None),
    "tenant and owner swapped": (Principal("me", "tenant"), "echo", None),
    "another agent": (ME, "other", None),
    "another task": (ME, "echo", "unknown"),
}


@pytest.mark.requirement(37, 54)
@pytest.mark.parametrize("stranger", STRANGERS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_rule_03_a_task_of_another_owner_or_agent_does_not_exist_for_any_operation(
    operation: str, stranger: str
) -> None:
    writer, other = Writer(), Writer()
    other.agent = replace(other.agent, id="other")
    world = world_of(writer, other)
    task = sent(world, with_push(said(), id="hook"))
    principal, agent, task_id = STRANGERS[stranger]
    configs, feed = world.table.list_configs(ME.key(task.id)), [*world.table.feed]
    with pytest.raises(TaskNotFound):
        OPERATIONS[operation](world.service, principal, agent, task_id or task.id)
    assert world.get(task.id) == task
    assert (world.table.list_configs(ME.key(task.id)), world.table.feed) == (configs, feed)


# ---- Too many writers


class Refusing(MemoryStores):
    """A store in which others are always faster."""

    def append(self, change: Change, record: object = None, *steps: object) -> bool:
        del change, record, steps
        return False


@pytest.mark.requirement(39)
@pytest.mark.parametrize("operation", ["cancel", "follow-up"])
def test_a_client_that_loses_every_race_is_told_to_come_back(operation: str) -> None:
    world = World([Writer().agent], table=Refusing)
    task = sent(world, said())
    with pytest.raises(Overloaded):
        OPERATIONS[operation](world.service, ME, "echo", task.id)
    assert world.get(task.id) == task


def test_a_task_whose_agent_does_nothing_ends_at_once() -> None:
    async def nothing(_: TaskContext) -> None:
        pass

    world = World([agent_of(nothing)])
    task = sent(world, blocking(said()))
    assert (task.status.state, task.artifacts, task.n) == (TaskState.COMPLETED, (), 3)
