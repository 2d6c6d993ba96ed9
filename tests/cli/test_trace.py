"""``trace``: what a task spent its time on."""

from __future__ import annotations

import asyncio
import io
import json
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from a2a_serverless import Retry, Step
from a2a_serverless.http_client.transport import ClientRequest, ClientResponse
from tests.cli.shell import Shell
from tests.client.deployment import Deployment
from tests.echo import agent_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from a2a_serverless import TaskContext


async def work(task: TaskContext) -> None:
    colour = await task.ask("Which colour?")
    await task.step("绘制", str, 1)
    await task.emit("boat.txt", colour.text(), last=True)


def shell_with(members: Mapping[str, object]) -> Shell:
    """A deployment whose timelines have these members."""
    deployment = Deployment(agent_of(work))

    @contextmanager
    def transport(call: ClientRequest) -> Iterator[ClientResponse]:
        with deployment.transport(call) as answer:
            body = answer.body.read(1_000_000)
            if call.url.endswith("/timeline"):
                body = json.dumps({**json.loads(body), **members}).encode()
            yield ClientResponse(answer.status, answer.headers, io.BytesIO(body))

    return Shell(deployment, transport=transport)


def traced(*options: str) -> tuple[str, str]:
    at = Shell(Deployment(agent_of(work)))
    webhook = ("--webhook", "https://hooks.example.com/a2a")
    task = json.loads(at.run("send", "echo", "a boat", "--json", *webhook).out)["task"]["id"]
    at.deployment.world.wait(60_000)
    at.run("send", "echo", "red", "--task", task)
    at.deployment.world.settle()
    done = at.run("trace", "echo", task, *options)
    assert done.code == 0
    return done.out, done.err


def test_trace_draws_runs_steps_and_webhooks_as_bars_on_one_scale() -> None:
    out, err = traced()
    lines = out.splitlines()
    names = [line.partition("  ")[0] for line in lines]
    assert names[:2] == ["run 1, waits", "question"]
    assert "run 2" in names
    assert "step 绘制" in names
    assert "+ boat.txt" in names
    assert names[-2].startswith("webhook ")
    assert names[-2].endswith(" attempts")
    assert all("━" in line for line in lines[:-1])
    longest = max(lines, key=lambda line: line.count("━"))
    assert longest.startswith(("question", "webhook"))
    assert lines[-1] == "clients saw: input-required from 0.0 s, completed from 63.0 s"
    assert re.fullmatch(r"The task is completed\. The bars: [0-9.]+ s from 20\d\d-.* UTC\.\n", err)


def test_a_failed_step_is_marked_and_has_the_kind_of_its_error() -> None:
    async def sew() -> None:
        raise ValueError("the needle is blunt")

    async def breaks(task: TaskContext) -> None:
        await task.step("measure", str, 1)
        await task.step("sew", sew)

    at = Shell(Deployment(agent_of(breaks)))
    task = json.loads(at.run("send", "echo", "a coat", "--json").out)["task"]["id"]
    done = at.run("trace", "echo", task)
    names = [line.partition("  ")[0] for line in done.out.splitlines() if "━" in line]
    assert names == ["run 1", "step measure", "✗ step sew: ValueError"]
    assert "needle" not in done.out
    spans = json.loads(at.run("trace", "echo", task, "--json").out)["spans"]
    assert {"kind": "failed", "name": "sew", "error": "ValueError"}.items() <= spans[-1].items()


def test_the_tries_of_a_step_have_their_times_and_errors_and_the_pause_its_end() -> None:
    errors = [OSError("the host is down"), TimeoutError("the host is slow")]

    async def fetch() -> str:
        if errors:
            raise errors.pop(0)
        return "fetched"

    async def fetches(task: TaskContext) -> None:
        await task.step(Step("fetch", retry=Retry(first_s=60)), fetch)

    at = Shell(Deployment(agent_of(fetches)))
    task = json.loads(at.run("send", "echo", "a coat", "--json", "--no-wait").out)["task"]["id"]
    at.deployment.world.wait(30_000)
    assert "waits: retry fetch/2, since" in at.run("trace", "echo", task).out
    at.deployment.world.settle()
    done = at.run("trace", "echo", task).out
    names = [line.partition("  ")[0] for line in done.splitlines() if "━" in line]
    assert [name for name in names if "run" not in name] == [
        "✗ try fetch: OSError",
        "retry fetch/2",
        "✗ try fetch: TimeoutError",
        "retry fetch/3",
        "step fetch",
    ]
    assert "host" not in done


def test_a_single_attempt_is_told_in_the_singular() -> None:
    tried = {"at": "2026-09-21T14:13:20Z", "milliseconds": 5}
    at = shell_with({"deliveries": [{"id": "hook", "state": "active", "attempts": [tried]}]})
    task = json.loads(at.run("send", "echo", "a boat", "--json").out)["task"]["id"]
    (webhook,) = [line for line in at.run("trace", "echo", task).out.splitlines() if line.startswith("webhook")]
    assert webhook.startswith("webhook hook, active, 1 attempt  ")


def test_the_timeline_as_json_is_as_it_was_served() -> None:
    out, err = traced("--json")
    assert {"spans", "events", "deliveries", "lastEvent"} <= json.loads(out).keys()
    assert err == ""


def test_a_span_that_goes_on_ends_now() -> None:
    at = Shell(Deployment(agent_of(work)))
    task = json.loads(at.run("send", "echo", "a boat", "--json").out)["task"]["id"]
    at.deployment.world.wait(60_000)
    done = at.run("trace", "echo", task)
    assert re.search(r"^question … .* 63\.0 s", done.out, re.MULTILINE)
    assert done.err.startswith("The task is input-required.")


def test_a_suspended_task_says_why_it_waits() -> None:
    async def naps(task: TaskContext) -> None:
        await task.sleep("nap", 7200)

    at = Shell(Deployment(agent_of(naps)))
    task = json.loads(at.run("send", "echo", "a boat", "--json", "--no-wait").out)["task"]["id"]
    at.deployment.world.wait(60_000)
    time = r"20\d\d-\d\d-\d\d [0-9:]+ UTC"
    out = at.run("trace", "echo", task).out
    assert re.search(rf"^waits: sleep nap, since {time} until {time}$", out, re.MULTILINE)
    names = [line.partition("  ")[0] for line in out.splitlines() if "━" in line]
    assert names == ["run 1, waits", "sleep nap …"], "nothing runs"
    at.deployment.world.settle()
    assert "waits:" not in at.run("trace", "echo", task).out


def test_a_run_does_not_end_before_it_began_if_a_wait_is_older() -> None:
    async def naps(task: TaskContext) -> None:
        await asyncio.gather(task.sleep("nap", 7200), task.ask("On the left side?"))

    at = Shell(Deployment(agent_of(naps)))
    task = json.loads(at.run("send", "echo", "a boat", "--json").out)["task"]["id"]
    at.deployment.world.wait(60_000)
    at.run("send", "echo", "yes", "--task", task, "--no-wait")
    at.deployment.world.wait(60_000)
    out = at.run("trace", "echo", task).out
    assert "waits: sleep nap" in out
    assert not re.search(r" -\d", out), out


def test_waits_that_are_not_listed_are_counted() -> None:
    at = shell_with({"moreWaits": 3})
    task = json.loads(at.run("send", "echo", "a boat", "--json").out)["task"]["id"]
    out = at.run("trace", "echo", task).out
    assert re.search(r"^waits: question “Which colour\?”, since .* UTC$", out, re.MULTILINE)
    assert "waits: 3 more\n" in out


@pytest.mark.parametrize(("amount", "shown"), [(1_234_567, "1,234,567"), (0.0125, "0.0125"), ("many", "many")])
def test_amounts_that_models_used_have_all_their_digits(amount: object, shown: str) -> None:
    at = shell_with({"usage": {"model-1": {"input_tokens": amount}}})
    task = json.loads(at.run("send", "echo", "a boat", "--json").out)["task"]["id"]
    assert f"model-1: input_tokens {shown}" in at.run("trace", "echo", task).out


def test_trace_draws_periods_of_other_servers_without_change() -> None:
    def at(second: int) -> str:
        return f"2026-09-21T14:13:{20 + second}Z"

    died = {"kind": "run", "name": "1", "beganAt": at(0), "endedAt": at(20), "lastWriteAt": at(10), "reason": "died"}
    spans = [
        {"kind": "earlier-runs", "name": "1-9", "beganAt": at(0), "endedAt": at(1)},
        died,
        {"kind": "queued", "beganAt": at(20), "endedAt": at(21)},
        {"kind": "run", "name": "2", "beganAt": at(21), "endedAt": at(25), "reason": "handed-over"},
        {"kind": "suspended", "beganAt": at(25), "endedAt": at(30)},
        {"kind": "new kind", "name": "x", "beganAt": at(30), "endedAt": at(39), "reason": "new"},
    ]
    shell = shell_with({"spans": spans, "asOf": at(39), "events": []})
    task = json.loads(shell.run("send", "echo", "a boat", "--json").out)["task"]["id"]
    lines = shell.run("trace", "echo", task).out.splitlines()
    names = [line.partition("  ")[0] for line in lines if "━" in line]
    assert names == ["runs 1-9", "✗ run 1, died", "queued", "run 2, handed over", "suspended", "new kind x, new"]
    assert re.search("━{10}╌{10,11} ", lines[1]), "it ended between its last write and its lease"


@pytest.mark.parametrize(("state", "is_shown"), [("working", True), ("completed", False)])
def test_progress_is_shown_until_the_end(state: str, *, is_shown: bool) -> None:
    event = {"eventNumber": 3, "at": "2026-09-21T14:13:20Z", "state": "working", "percent": 40, "bytes": 1}
    at = shell_with({"state": state, "events": [event]})
    task = json.loads(at.run("send", "echo", "a boat", "--json").out)["task"]["id"]
    assert ("progress: 40 %" in at.run("trace", "echo", task).out) is is_shown


def test_a_budget_is_shown_with_what_is_spent_of_it() -> None:
    at = shell_with({"budget": {"spent": {"usd": 0.25, "tokens": 1200, "steps": 2}, "bounds": {"usd": 1, "steps": 9}}})
    task = json.loads(at.run("send", "echo", "a boat", "--json").out)["task"]["id"]
    assert "budget: usd 0.25 of 1, steps 2 of 9; without a bound: tokens 1,200\n" in at.run("trace", "echo", task).out


@pytest.mark.parametrize("command", ["trace", "deliveries"])
def test_an_unknown_task_is_one_sentence_with_what_helps(command: str) -> None:
    done = Shell(Deployment(agent_of(work))).run(command, "echo", "none")
    text, remedy = done.err.splitlines()
    assert (done.code, text.startswith("The task was not found")) == (1, True)
    assert "tasks list" in remedy
