"""The command ``trace``: what a task spent its time on, as bars on one scale."""

from collections.abc import Iterator, Sequence
from typing import Any

from a2a_serverless.protocol.protojson import read_timestamp
from a2a_serverless.protocol.v1 import Message
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
    "earlier-runs": "runs",
    "raised": "✗ try",
    "failed": "✗ step",
    "pause": "paused:",
    "budget": "waits for budget:",
}
QUESTION = "question"
NAMELESS = {QUESTION}  # the name is the id of its message
PERIODS = {"earlier-runs", "queued", "run", "suspended"}
WORK = {"step", "interrupted", "raised", "failed"}
ENDED = {"completed", "failed", "canceled", "rejected"}
DIGITS = 15  # that a float holds exactly


def trace(cli: CliContext, agent: Agent, task: TaskId = "", *, last: Last = False, url: Url = "") -> None:
    """Show what a task spent its time on, and what models used. Only deployments of this project support it.

    A bar for each time in the queue, run, step, call and wait, then for each artifact and each webhook. A run that is
    over says why. The bar of a run that died fades from its last write on. A step whose error ended the task, and a try
    of a step that raised, are marked, with the kind of error. Below is what clients saw.
    """
    remote = find(cli, url, agent)
    task_id = find_task(cli, remote, agent, task, last=last)
    timeline = fetch_of_task(remote.client, task_id, "timeline")
    phases = [*_spans(timeline), *_artifacts(timeline["events"]), *_webhooks(timeline["deliveries"])]
    lines = draw(phases)
    lines += [
        f"webhook {one_line(one['id'], SHORT)}: {webhook_state(one)}"
        for one in timeline["deliveries"]
        if "hostPaused" in one
    ]
    if timeline["state"] not in ENDED:
        lines += [f"progress: {_amount(one['percent'])} %" for one in timeline["events"] if "percent" in one][-1:]
    lines += _states(timeline)
    asks = any(wait["kind"] == QUESTION for wait in timeline.get("waits") or [])
    lines += _waits(timeline, remote.client.get(task_id, history_length=0).status.message if asks else None)
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
    """Yields the task's own times. One that goes on ends now."""
    phases = [(span, _phase(span, _seconds(timeline["asOf"]))) for span in timeline["spans"]]
    told = [phase for span, phase in phases if span["kind"] not in PERIODS | WORK]
    for span, phase in phases:
        # A suspension is told by the waits and calls for which the task was suspended, if they are known.
        if span["kind"] != "suspended" or not any(_overlap(phase, wait) for wait in told):
            yield phase


def _phase(span: Any, last: float) -> Phase:  # noqa: ANN401 - any JSON
    kind, reason = span["kind"], span.get("reason", "ended")
    name = one_line(
        " ".join([KINDS.get(kind, kind), "" if kind in NAMELESS else span.get("name", "")]).strip(), LONGEST
    )
    name += f": {one_line(span['error'], LONGEST)}" if span.get("error") else ""
    name += f", {one_line(reason, SHORT + 2).replace('-', ' ')}" if reason != "ended" else ""
    name = f"✗ {name}" if reason == "died" else name if "endedAt" in span else f"{name} …"
    end = _seconds(span["endedAt"]) if "endedAt" in span else last
    return Phase(name, _seconds(span["beganAt"]), end, _seconds(span["lastWriteAt"]) if "lastWriteAt" in span else None)


def _overlap(one: Phase, other: Phase) -> bool:
    return (one.begin < other.end and other.begin < one.end) or (one.begin, one.end) == (other.begin, other.end)


def _states(timeline: Any) -> Iterator[str]:  # noqa: ANN401 - any JSON
    """Yields what clients saw: the states, and when each began."""
    states = [one for one in timeline.get("states") or [] if one["beganAt"] != one.get("endedAt")]
    if states:
        began = _seconds(timeline["createdAt"])
        seen = [(one_line(one["state"], LONGEST), _seconds(one["beganAt"])) for one in states]
        seen += [(one_line(timeline["state"], LONGEST), _seconds(timeline["statusAt"]))] * (timeline["state"] in ENDED)
        yield f"clients saw: {', '.join(f'{state} from {at - began:.1f} s' for state, at in seen)}"


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


def _waits(timeline: Any, question: Message | None) -> Iterator[str]:  # noqa: ANN401 - any JSON
    """Yields why a suspended task waits. The waits of a question have its text in place of the id of its message."""
    texts = {question.message_id: f"“{question.text()}”"} if question else {}
    for wait in timeline.get("waits") or []:
        named = texts.get(wait.get("name"), wait.get("name"))
        name = one_line(" ".join(filter(None, [wait["kind"], named])), WAIT)
        until = f" until {moment(read_timestamp(wait['until']))}" if wait.get("until") else ""
        yield f"waits: {name}, since {moment(read_timestamp(wait['since']))}{until}"
    if more := timeline.get("moreWaits"):
        yield f"waits: {one_line(str(more), SHORT)} more"


def _usage(usage: Any) -> Iterator[str]:  # noqa: ANN401 - any JSON
    for model, counts in usage.items():
        amounts = (f"{one_line(name, LONGEST)} {_amount(amount)}" for name, amount in counts.items())
        yield f"{one_line(model, LONGEST)}: {', '.join(amounts)}"


def _budget(budget: Any) -> Iterator[str]:  # noqa: ANN401 - any JSON
    """Yields what the task has spent of each bound, then what it has spent without one."""
    bounds = budget.get("bounds") or {}
    spent = {one_line(kind, SHORT): amount for kind, amount in (budget.get("spent") or {}).items()}
    bounded = [
        f"{kind} {_amount(amount)} of {_amount(bounds[kind])}" for kind, amount in spent.items() if kind in bounds
    ]
    free = [f"{kind} {_amount(amount)}" for kind, amount in spent.items() if kind not in bounds and amount]
    if bounded:
        yield f"budget: {', '.join(bounded)}{'; without a bound: ' if free else ''}{', '.join(free)}"


def _amount(amount: Any) -> str:  # noqa: ANN401 - any JSON
    """All digits of a number. What a deployment of others gives instead is shown as it is."""
    return f"{amount:,.{DIGITS}g}" if isinstance(amount, int | float) else one_line(str(amount), LONGEST)


def _seconds(timestamp: str) -> float:
    return read_timestamp(timestamp) / 1000
