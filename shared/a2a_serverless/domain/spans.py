"""The spans of a task, with their names and attributes.

They have the names of OpenTelemetry's conventions for generative AI (``gen_ai.*``), and of their draft for A2A
(``a2a.*``); names of our own begin with ``a2a_serverless.``. Spans hold ids, numbers, and names that the author of an
agent chose (agents, steps, tools, models), and no words of clients or models. Times are in ms since the epoch; traces
are W3C's ``traceparent``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from a2a_serverless.domain.trace import child_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from a2a_serverless.domain.agent import Agent
    from a2a_serverless.domain.head import Head
    from a2a_serverless.domain.push_configs import Attempt

Attributes: TypeAlias = "Mapping[str, str | int | float]"
OPERATION: Final = "gen_ai.operation.name"
INVOKE_AGENT: Final = "invoke_agent"
EXECUTE_TOOL: Final = "execute_tool"
CHAT: Final = "chat"
LONGEST: Final = 128
# The amounts of ``record_usage`` that the conventions define, and the frameworks' names for them.
USAGE: Final = {
    "input_tokens": "gen_ai.usage.input_tokens",
    "output_tokens": "gen_ai.usage.output_tokens",
    "cache_read_tokens": "gen_ai.usage.cache_read.input_tokens",
    "cache_write_tokens": "gen_ai.usage.cache_creation.input_tokens",
    "cost_usd": "a2a_serverless.usage.cost_usd",
}


@dataclass(frozen=True, slots=True)
class TraceSpan:
    """An ended span. ``trace`` has its own id, ``parent`` its parent's; "" means none.

    ``error`` is the kind of error that ended it.
    """

    name: str
    trace: str
    parent: str
    began_at: int
    ended_at: int
    attributes: Attributes = field(default_factory=dict)
    kind: Literal["internal", "server", "client"] = "internal"
    error: str = ""


def request_span(  # noqa: PLR0913 - the facts of a request
    trace: str, parent: str, began_at: int, ended_at: int, *, operation: str, agent: str, version: str, task: str | None
) -> TraceSpan:
    """The span of a request to an agent."""
    attributes = {"a2a.method.name": operation, "a2a.protocol.version": version, "gen_ai.agent.id": agent}
    return TraceSpan(
        f"{operation} {agent}", trace, parent, began_at, ended_at, attributes | _named("a2a.task.id", task), "server"
    )


def run_span(head: Head, trace: str, began_at: int, ended_at: int, agent: Agent | None, outcome: str) -> TraceSpan:
    """The span of a run of a task's agent; ``head`` is the head at the end of the run."""
    name = agent.name if agent else head.agent
    attributes = task_attributes(head) | {
        OPERATION: INVOKE_AGENT,
        "gen_ai.agent.name": name,
        "a2a.task.state": head.state.value,
        "a2a_serverless.run.fence": head.fence,
        "a2a_serverless.run.outcome": outcome,
    }
    error = head.state.value if outcome == "ended" and head.state.name == "FAILED" else ""
    return TraceSpan(f"{INVOKE_AGENT} {name}", trace, head.trace, began_at, ended_at, attributes, error=error)


def wait_span(head: Head, kind: str, name: str, began_at: int, ended_at: int) -> TraceSpan:
    """The span of a wait that is over, or of the time in the ``queue``."""
    trace = child_of(head.trace, f"{kind} {head.key.task} {name} {began_at}")
    attributes = task_attributes(head) | _named("a2a_serverless.wait.name", name[:LONGEST])
    return TraceSpan(f"wait {kind}", trace, head.trace, began_at, ended_at, attributes)


def step_span(head: Head, name: str, tool: str, trace: str, parent: str, times: tuple[int, int]) -> TraceSpan:
    """The span of a step, or of a tool call if the step names its ``tool``."""
    attributes = task_attributes(head) | {"a2a_serverless.step.name": name[:LONGEST]}
    if tool:
        attributes |= {OPERATION: EXECUTE_TOOL, "gen_ai.tool.name": tool}
    title = f"{EXECUTE_TOOL} {tool}" if tool else f"step {name}"
    return TraceSpan(title[:LONGEST], trace, parent, *times, attributes)


def model_span(
    head: Head, model: str, amounts: Mapping[str, float], trace: str, parent: str, times: tuple[int, int]
) -> TraceSpan:
    """The span of a model call, from its recorded usage."""
    attributes = task_attributes(head) | {OPERATION: CHAT, "gen_ai.request.model": model[:LONGEST]}
    attributes |= {USAGE[name]: amount for name, amount in amounts.items() if name in USAGE}
    return TraceSpan(f"{CHAT} {model}"[:LONGEST], trace, parent, *times, attributes, "client")


def call_span(  # noqa: PLR0913 - the facts of a call
    head: Head, name: str, agent: str, trace: str, parent: str, times: tuple[int, int], error: str = ""
) -> TraceSpan:
    """The span of a call of another agent, from its beginning to its stored result. Several runs may lie between."""
    attributes = task_attributes(head) | {
        OPERATION: INVOKE_AGENT,
        "gen_ai.agent.name": agent,
        "a2a_serverless.call.name": name[:LONGEST],
    }
    return TraceSpan(f"{INVOKE_AGENT} {agent}", trace, parent, *times, attributes, "client", error)


def delivery_span(head: Head, attempt: Attempt, trace: str, host: str, *, accepted: bool) -> TraceSpan:
    """The span of a POST to a webhook. It lacks the URL, which may hold a secret."""
    error = "" if accepted else str(attempt.status or attempt.error or "refused")
    attributes = task_attributes(head) | {
        "http.request.method": "POST",
        "server.address": host,
        "a2a_serverless.webhook.id": attempt.config_id,
        "a2a_serverless.event.number": attempt.n,
        "http.request.resend_count": attempt.k - 1,
    }
    attributes |= {"http.response.status_code": attempt.status} if attempt.status else {}
    return TraceSpan(
        "POST webhook", trace, head.trace, attempt.at, attempt.at + attempt.ms, attributes, "client", error
    )


def task_attributes(head: Head) -> dict[str, str | int | float]:
    """The ids that every span of a task has."""
    return {
        "a2a.task.id": head.key.task,
        "a2a.context.id": head.context_id,
        "gen_ai.conversation.id": head.context_id,
        "gen_ai.agent.id": head.agent,
    }


def _named(name: str, value: str | None) -> dict[str, str]:
    return {name: value} if value else {}
