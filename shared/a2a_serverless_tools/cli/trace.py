"""The command ``trace``: what a task spent its time on, as bars on one scale."""

from collections.abc import Iterator, Sequence
from typing import Any

from a2a_serverless.protocol.protojson import read_timestamp
from a2a_serverless_tools.cli.formatting import moment
from a2a_serverless_tools.cli.operator_commands import webhook_state
from a2a_serverless_tools.cli.options import Agent, CliContext, Last, TaskId, Url, fetch_of_task, find, find_task
from a2a_serverless_tools.cli.terminal import one_line
from a2a_serverless_tools.cli.timeline import Phase, draw

LONGEST = 40
WAIT = 120
SHORT = 9
# As in the console.
KINDS = {
    "working": "run",
    "input-required": "waits for input",
    "auth-required": "waits for sign-in",
    "raised": "✗ try",
    "failed": "✗ step",
}
DIGITS = 15  # that a float holds exactly


def trace(cli: CliContext, agent: Agent, task: TaskId = "", *, last: Last = False, url: Url = "") -> None:
    """Show what a task spent its time on, and what models used. Only deployments of this project support it.

    A bar for each time in the queue, run, step, call and wait, then for each artifact and each webhook. A step whose
    error ended the task, and a try of a step that raised, are marked, with the kind of error.
    """
    remote = find(cli, url, agent)
    timeline = fetch_of_task(remote.client, find_task(cli, remote, agent, task, last=last), "timeline")
    phases = [*_spans(timeline), *_artifacts(timeline["events"]), *_webhooks(timeline["deliveries"])]
    lines = draw(phases)
    lines += [
        f"webhook {one_line(one['id'], SHORT)}: {webhook_state(one)}"
        for one in timeline["deliveries"]
        if "hostPaused" in one
    ]
    lines += [f"progress: {_amount(one['percent'])} %" for one in timeline["events"] if "percent" in one][-1:]
    lines += _waits(timeline)
    lines += _usage(timeline.get("usage") or {})
    lines += _budget(timeline.get("budget") or {})
    cli.terminal.result(timeline, "".join(f"{line}\n" for line in lines))
    number = timeline["events"][-1]["eventNumber"] if timeline["events"] else 0
    rest = f"; events after {number} of {timeline['lastEvent']} are not shown" if number < timeline["lastEvent"] else ""
    cli.terminal.note(f"The task is {timeline['state']}{rest}.{_scale(phases)}")


def _scale(phases: Sequence[Phase]) -> str:
    if not phases:
        return ""
    begin, end = min(phase.begin for phase in phases), max(phase.end for phase in phases)
    return f" The bars: {end - begin:.1f} s from {moment(begin * 1000)}."


def _spans(timeline: Any) -> Iterator[Phase]:  # noqa: ANN401 - any JSON
    """Yields the task's own times. One that goes on ends at the last known time, the run of a suspended task before."""
    times = [timeline["statusAt"], *(event["at"] for event in timeline["events"])]
    times += [span[at] for span in timeline["spans"] for at in ("beganAt", "endedAt") if at in span]
    times += (waits := [wait["since"] for wait in timeline.get("waits") or []])
    last = max(map(_seconds, times))
    for span in timeline["spans"]:
        name = one_line(" ".join(filter(None, [KINDS.get(span["kind"], span["kind"]), span.get("name")])), LONGEST)
        name += f": {one_line(span['error'], LONGEST)}" if span.get("error") else ""
        began = _seconds(span["beganAt"])
        if "endedAt" in span:
            yield Phase(name, began, _seconds(span["endedAt"]))
        elif span["kind"] == "working" and waits:
            suspended = max(began, *map(_seconds, waits))  # a wait may be older than the run
            yield Phase(name, began, suspended)
            yield Phase("suspended …", suspended, last)
        else:
            yield Phase(f"{name} …", began, last)


def _artifacts(events: Any) -> Iterator[Phase]:  # noqa: ANN401 - any JSON
    """Yields the time from the first to the last chunk of each artifact."""
    times: dict[str, list[float]] = {}
    names = {}
    for event in events:
        if "artifactId" in event:
            names[event["artifactId"]] = event.get("artifactName") or event["artifactId"]
            times.setdefault(event["artifactId"], []).append(_seconds(event["at"]))
    for key, at in times.items():
        yield Phase(f"+ {one_line(names[key], LONGEST)}", min(at), max(at))


def _webhooks(webhooks: Any) -> Iterator[Phase]:  # noqa: ANN401 - any JSON
    """Yields the time from the first attempt of each webhook to the end of its last one."""
    for webhook in webhooks:
        attempts = [(_seconds(one["at"]), one["milliseconds"] / 1000) for one in webhook["attempts"]]
        if attempts:
            tried = "1 attempt" if len(attempts) == 1 else f"{len(attempts)} attempts"
            name = f"webhook {one_line(webhook['id'], SHORT)}, {webhook['state']}, {tried}"
            yield Phase(name, attempts[0][0], max(at + took for at, took in attempts))


def _waits(timeline: Any) -> Iterator[str]:  # noqa: ANN401 - any JSON
    """Yields why a suspended task waits."""
    for wait in timeline.get("waits") or []:
        name = one_line(" ".join(filter(None, [wait["kind"], wait.get("name")])), WAIT)
        until = f" until {moment(read_timestamp(wait['until']))}" if wait.get("until") else ""
        yield f"waits: {name}, since {moment(read_timestamp(wait['since']))}{until}"
    if more := timeline.get("moreWaits"):
        yield f"waits: {one_line(str(more), SHORT)} more"


def _usage(usage: Any) -> Iterator[str]:  # noqa: ANN401 - any JSON
    for model, counts in usage.items():
        amounts = (f"{one_line(name, LONGEST)} {_amount(amount)}" for name, amount in counts.items())
        yield f"{one_line(model, LONGEST)}: {', '.join(amounts)}"


def _budget(budget: Any) -> Iterator[str]:  # noqa: ANN401 - any JSON
    """Yields what the task has spent, and of how much."""
    bounds = budget.get("bounds") or {}
    spent = (
        f"{one_line(kind, SHORT)} {_amount(amount)}" + (f" of {_amount(bounds[kind])}" if kind in bounds else "")
        for kind, amount in (budget.get("spent") or {}).items()
    )
    if budget:
        yield f"budget: {', '.join(spent)}"


def _amount(amount: Any) -> str:  # noqa: ANN401 - any JSON
    """All digits of a number. What a deployment of others gives instead is shown as it is."""
    return f"{amount:,.{DIGITS}g}" if isinstance(amount, int | float) else one_line(str(amount), LONGEST)


def _seconds(timestamp: str) -> float:
    return read_timestamp(timestamp) / 1000
