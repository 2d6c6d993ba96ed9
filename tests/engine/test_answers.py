"""What an agent's function may return, and how a mistake of its author is explained: agent, file, line, what helps."""

from __future__ import annotations

import logging
import traceback
from functools import wraps
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless import Agent, Message, Part, Schedule, Skill, agent
from a2a_serverless.domain.agent import AgentExtension, InvalidAnswer, skills_of
from a2a_serverless.domain.agent_errors import TaskFailed, TaskRejected
from a2a_serverless.protocol.v1 import Role
from a2a_serverless.testing import AgentTestHarness
from tests.echo import agent_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from a2a_serverless import TaskContext
    from a2a_serverless.domain.agent import Runs

CLIENT = Message(message_id="m", role=Role.USER, parts=(Part(text="x"),))
MESSAGE = "a message is a text, a dict, model or dataclass (data), a list of parts or a Message"


def made(work: Any, runs: Runs = "queued") -> Agent:
    """An agent, made as its author makes it."""
    return agent(id="maker", name="m", description="m", skills=[Skill("m", "m", "m", ("m",))], runs=runs)(work)


def line_of(work: Any) -> str:
    return f"{__file__}:{work.__code__.co_firstlineno}"


@pytest.mark.parametrize("runs", ["queued", "inline"])
def test_a_dict_as_the_answer_is_data(runs: Runs) -> None:
    async def work(_: TaskContext) -> dict[str, Any]:
        return {"a": [1, None]}

    answer = AgentTestHarness(made(work, runs)).send("go").answer
    message = answer if isinstance(answer, Message) else answer.status.message
    assert isinstance(answer, Message) == (runs == "inline")
    assert message
    assert message.data() == {"a": [1, None]}


async def asks(task: TaskContext) -> None:
    await task.ask({"amount": 20})


async def reports(task: TaskContext) -> None:
    await task.report_progress({"amount": 20})
    await task.ask("And now?")


async def fails(_: TaskContext) -> None:
    raise TaskFailed({"amount": 20})


async def refuses(_: TaskContext) -> None:
    raise TaskRejected({"amount": 20})


@pytest.mark.parametrize("work", [asks, fails, refuses])
def test_a_dict_is_data_in_every_message(work: Callable[[TaskContext], Awaitable[None]]) -> None:
    message = AgentTestHarness(agent_of(work)).send("go").task.status.message
    assert message
    assert message.data() == {"amount": 20}


def test_a_dict_as_progress_is_data() -> None:
    said = AgentTestHarness(agent_of(reports)).send("go").task.history
    assert {"amount": 20} in [message.data() for message in said]


def test_the_text_of_a_failure_with_data_is_its_json() -> None:
    assert str(TaskFailed({"amount": 20})) == '{"amount": 20}'


NO_ANSWERS = {
    "a number": (5, "not int"),
    "bytes": (b"x", "not bytes"),
    "a list": (["a", 1], "not a list with str"),
    "a set": ({1}, "not set"),
    "no parts": ([], "a message needs parts, and the role of an agent"),
    "a client's message": (CLIENT, "a message needs parts, and the role of an agent"),
}


@pytest.mark.parametrize("runs", ["queued", "inline"])
@pytest.mark.parametrize(("answer", "why"), NO_ANSWERS.values(), ids=NO_ANSWERS)
def test_returning_no_message_fails_the_task_with_the_line_of_the_agent_and_a_remedy(
    answer: Any, why: str, runs: Runs, caplog: pytest.LogCaptureFixture
) -> None:
    async def work(_: TaskContext) -> Any:
        return answer

    with caplog.at_level(logging.ERROR):
        reply = AgentTestHarness(made(work, runs)).send("go")
    assert reply.state == "failed"
    assert reply.said.startswith("The agent stopped with an error (reference ")
    assert isinstance(reply.error, InvalidAnswer)
    said = str(reply.error)
    assert said.startswith(f"The agent 'maker' ({line_of(work)}) returned no message: ")
    assert said.endswith(
        f"{why}. Return a text, a dict, model or dataclass (data), a list of parts, a Message or None."
    )
    (line,) = [record for record in caplog.records if record.msg == "agent failed"]
    assert vars(line)["remedy"] == said


def test_the_log_names_the_class_of_an_error_whose_text_only_the_client_reads(caplog: pytest.LogCaptureFixture) -> None:
    async def work(_: TaskContext) -> None:
        raise TaskFailed("no cloth")

    with caplog.at_level(logging.WARNING):
        assert AgentTestHarness(made(work)).send("go").state == "failed"
    lines = [vars(record) for record in caplog.records if record.msg == "task failed"]
    assert [(one["error"], one["agent"], one["levelname"]) for one in lines] == [("TaskFailed", "maker", "WARNING")]
    assert "no cloth" not in str(lines)


@pytest.mark.parametrize("error", [KeyError("cloth"), TaskFailed("no cloth")])
def test_the_log_names_the_innermost_step_that_ends_the_task(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    async def cut() -> None:
        raise error

    async def work(task: TaskContext) -> None:
        async def sew() -> None:
            await task.step("cut", cut)

        await task.step("free", str)
        await task.step("sew", sew)

    with caplog.at_level(logging.WARNING):
        harness = AgentTestHarness(made(work), replay=False)  # a replay would log the failure once more
        assert harness.send("go").state == "failed"
    (line,) = [record for record in caplog.records if record.msg in {"agent failed", "task failed"}]
    assert vars(line)["step"] == "sew > cut"


def test_a_question_that_is_no_message_is_refused_in_the_author_s_line() -> None:
    async def work(task: TaskContext) -> None:
        await task.ask(5)  # type: ignore[arg-type]

    error = AgentTestHarness(made(work)).send("go").error
    assert (type(error), str(error)) == (TypeError, f"{MESSAGE}, not int")
    assert "await task.ask(5)" in "".join(traceback.format_exception(error))


def plain(_: TaskContext) -> str:
    return "Hello"


async def yields(_: TaskContext) -> Any:
    yield "Hello"


class Plain:
    def __call__(self, _: TaskContext) -> str:
        return "Hello"


@pytest.mark.parametrize(
    ("work", "said"),
    [
        (plain, f"The agent 'maker' ({line_of(plain)}) is a plain function: write `async def plain(task)`"),
        (yields, f"The agent 'maker' ({line_of(yields)}) is a generator: send each piece by `await task.emit(...)`"),
        (Plain(), f"The agent 'maker' ({line_of(Plain.__call__)}) is a plain function"),
        (5, "The agent 'maker' is no function: `agent(...)` takes an async function"),
    ],
    ids=["plain", "yields", "callable", "no function"],
)
def test_a_function_that_is_not_async_is_refused_where_it_is_decorated(work: Any, said: str) -> None:
    with pytest.raises(TypeError) as refused:
        made(work)
    assert str(refused.value).startswith(said)


TEXTS: dict[str, Any] = {"input_modes": "text/plain", "output_modes": "text/plain"}


@pytest.mark.parametrize("field", TEXTS)
def test_a_text_in_the_place_of_several_is_refused_where_the_agent_or_its_skill_is_made(field: str) -> None:
    text = f"needs several texts, not one, as {field}. Write {field}=('text/plain',)."
    with pytest.raises(TypeError) as refused:
        agent(id="vetter", name="v", description="v", skills=[], **{field: TEXTS[field]})(vets)
    assert str(refused.value) == f"The agent 'vetter' ({line_of(vets)}) {text}"
    with pytest.raises(TypeError, match="The skill 'vet' needs several texts"):
        Skill("vet", "v", "v", ("vets",), **{field: TEXTS[field]})
    with pytest.raises(TypeError, match="as tags"):
        Skill("vet", "v", "v", "vets")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="as examples"):
        Skill("vet", "v", "v", ("vets",), "Vet this.")  # type: ignore[arg-type]


SINGLES: dict[str, Any] = {
    "skills": Skill("vet", "v", "v", ()),
    "extended_skills": Skill("vet", "v", "v", ()),
    "schedules": Schedule("daily", "0 6 * * ? *", "Vet."),
}


@pytest.mark.parametrize("field", SINGLES)
def test_one_skill_or_schedule_in_the_place_of_several_is_refused_where_the_agent_is_made(field: str) -> None:
    single = SINGLES[field]
    kind = type(single).__name__
    text = f"needs several values, not one {kind}, as {field}. Write {field}=[{kind}(...)]."
    with pytest.raises(TypeError) as refused:
        agent(**{"id": "vetter", "name": "v", "description": "v", "skills": [], field: single})(vets)
    assert str(refused.value) == f"The agent 'vetter' ({line_of(vets)}) {text}"
    with pytest.raises(TypeError) as refused:
        Agent(**{"id": "vetter", "name": "v", "description": "v", "skills": (), "work": vets, field: single})
    assert str(refused.value) == f"The agent 'vetter' ({line_of(vets)}) {text}"


def test_an_extension_in_the_place_of_several_is_refused() -> None:
    extension: Any = AgentExtension("urn:x")
    with pytest.raises(TypeError, match=r"not one AgentExtension, as extensions\."):
        Agent("vetter", "v", "v", (), vets, extensions=extension)


def test_an_agent_without_skills_has_one_of_its_name_and_one_in_the_place_of_several_is_refused() -> None:
    own = (Skill("vetter", "Vetter", "Vets.", ("vetter",)),)
    assert agent(id="vetter", name="Vetter", description="Vets.", skills=[])(vets).skills == own
    assert skills_of("vetter", "Vetter", "Vets.", []) == own
    with pytest.raises(TypeError, match=r"^The agent 'vetter' needs several values, not one Skill, as skills"):
        skills_of("vetter", "Vetter", "Vets.", SINGLES["skills"])


async def extends(task: TaskContext) -> None:
    await task.emit("a.txt", "a", extensions="urn:x")


def test_a_text_in_the_place_of_an_artifacts_extensions_ends_the_task() -> None:
    harness = AgentTestHarness(made(extends))
    assert harness.send("go").state == "failed"
    with pytest.raises(TypeError, match="as references"):
        harness.send("go", references="task")


async def vets(_: TaskContext) -> str:
    return "Hello"


@pytest.mark.parametrize(
    ("wrong", "proposed"),
    [("Vetter Agent", "vetter-agent"), ("a/b", "a-b"), ("智能体", "agent"), ("", "agent"), ("..", "agent")],
)
def test_an_id_that_is_no_path_segment_is_refused_where_it_is_decorated(wrong: str, proposed: str) -> None:
    with pytest.raises(ValueError, match="needs an id of ASCII letters") as refused:
        agent(id=wrong, name="m", description="m", skills=[Skill("m", "m", "m", ("m",))])(vets)
    assert str(refused.value).startswith(f"The agent {wrong!r} ({line_of(vets)}) needs an id")
    assert str(refused.value).endswith(f"Write, for example, id={proposed!r}.")


@pytest.mark.parametrize("fit", ["vetter-agent", "Vetter_2", "v1.0~b", "-x"])
def test_an_id_that_is_a_path_segment_is_taken(fit: str) -> None:
    made = agent(id=fit, name="m", description="m", skills=[Skill("m", "m", "m", ("m",))])(vets)
    assert made.id == fit


class Async:
    async def __call__(self, _: TaskContext) -> str:
        return "Hello"


def wrapper_of(work: Any) -> Any:
    @wraps(work)
    def wrapped(task: TaskContext) -> Any:
        return work(task)

    return wrapped


@pytest.mark.parametrize("work", [Async(), wrapper_of(Async().__call__)], ids=["an object", "a wrapper"])
def test_objects_and_wrappers_of_async_functions_are_agents(work: Any) -> None:
    assert AgentTestHarness(made(work, "inline")).send("go").said == "Hello"
