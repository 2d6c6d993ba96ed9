"""LangChain's requests for reviews of actions, and the decisions that their nodes wait for.

Three shapes are in use: that of ``HumanInTheLoopMiddleware`` for all actions of a model's turn and that for one action,
and that of the Agent Inbox, with older words.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from a2a_serverless_frameworks.answers import (
    UNREAD,
    Approval,
    UnreadableAnswer,
    how_to_answer,
    read_approval,
    takes_yes_and_no,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from a2a_serverless.domain.model import Json
    from a2a_serverless_frameworks.answers import Decision

_INBOX: Final[dict[str, Decision]] = {
    "allow_accept": "approve",
    "allow_edit": "edit",
    "allow_ignore": "reject",
    "allow_respond": "respond",
}


@dataclass(frozen=True, slots=True)
class _ReviewedAction:
    name: str
    arguments: Any
    allowed: Collection[Decision]


@dataclass(frozen=True, slots=True)
class Review:
    """Actions that wait for decisions. ``write`` makes what the node gets from the decision on each."""

    actions: Sequence[_ReviewedAction]
    write: Callable[[Sequence[tuple[_ReviewedAction, Approval]]], Any]

    @property
    def question(self) -> str:
        """The question for a person."""
        questions = [
            f"May I call {action.name}({json.dumps(action.arguments, ensure_ascii=False)})?" for action in self.actions
        ]
        return " ".join([*questions, how_to_answer(self.actions[0].allowed)])

    @property
    def is_approval(self) -> bool:
        """Whether a yes and a no are decisions on each of the actions."""
        return all(takes_yes_and_no(action.allowed) for action in self.actions)

    def read(self, answer: Json) -> Any:  # noqa: ANN401 - what the node takes
        """What the node gets for a client's answer: a decision on each action, or a yes or a no to all of them.

        Raises UnreadableAnswer.
        """
        value = answer["decisions"] if isinstance(answer, dict) and answer.keys() == {"decisions"} else answer
        replies = value if isinstance(value, list) else [value] * len(self.actions)
        if len(replies) != len(self.actions):
            raise UnreadableAnswer(f"It has {len(replies)} decisions for {len(self.actions)} actions.")
        decisions = [
            (action, read_approval(one, action.allowed)) for action, one in zip(self.actions, replies, strict=True)
        ]
        if value is not replies and len(decisions) > 1 and decisions[0][1].decision in {"edit", "respond"}:
            raise UnreadableAnswer('It belongs to one of several actions. Answer {"decisions": [...]}, in their order.')
        return self.write(decisions)

    def deny(self) -> Any:  # noqa: ANN401 - as above
        """What the node gets without an answer; None if it takes no denial."""
        if not all({"reject", "respond"} & {*action.allowed} for action in self.actions):
            return None
        decisions: list[Decision] = ["reject" if "reject" in action.allowed else "respond" for action in self.actions]
        denials = [Approval(decision, UNREAD) for decision in decisions]
        return self.write(list(zip(self.actions, denials, strict=True)))


def review_of(value: Any, schema: Any) -> Review | None:  # noqa: ANN401 - any value of an interrupt, and its schema
    """The review that an interrupt asks for; None if it asks for something else."""
    match value:
        case {"action_requests": [_, *_] as requests, "review_configs": list(configs)}:
            allowed = {config["action_name"]: config["allowed_decisions"] for config in configs}
            actions = [_ReviewedAction(one["name"], one["args"], allowed[one["name"]]) for one in requests]
            return Review(actions, lambda decisions: {"decisions": [_decision(*one) for one in decisions]})
        case {"type": "tool_approval", "name": str(name), "args": arguments}:
            return Review(
                [_ReviewedAction(name, arguments, _allowed_by(schema))], lambda decisions: _decision(*decisions[0])
            )
        case [{"action_request": _, "config": _}, *_] | {"action_request": _, "config": _}:
            requests = value if isinstance(value, list) else [value]
            return Review(
                [_inbox_action(one) for one in requests], lambda decisions: [_reply(*one) for one in decisions]
            )
    return None


def _allowed_by(schema: Any) -> Collection[Decision]:  # noqa: ANN401 - a JSON schema
    """The decisions of a schema: those of its union, or its only one."""
    union = schema.get("discriminator", {}).get("mapping")
    return list(union) if union else [schema["properties"]["type"]["const"]]


def _inbox_action(request: dict[str, Any]) -> _ReviewedAction:
    action, config = request["action_request"], request["config"]
    return _ReviewedAction(
        action["action"], action["args"], [decision for name, decision in _INBOX.items() if config.get(name)]
    )


def _decision(action: _ReviewedAction, approval: Approval) -> dict[str, Any]:
    """A decision of ``HumanInTheLoopMiddleware``."""
    decision: dict[str, Any] = {"type": approval.decision}
    if approval.arguments is not None:
        decision["edited_action"] = {"name": approval.action or action.name, "args": approval.arguments}
    if approval.message:
        decision["message"] = approval.message
    return decision


def _reply(action: _ReviewedAction, approval: Approval) -> dict[str, Any]:
    """A reply of the Agent Inbox. Its rejection has no reason: with one it is a response, if that is allowed."""
    match approval.decision:
        case "approve":
            return {"type": "accept", "args": None}
        case "edit":
            action_request = {"action": approval.action or action.name, "args": approval.arguments}
            return {"type": "edit", "args": action_request}
        case "reject" if not approval.message or "respond" not in action.allowed:
            return {"type": "ignore", "args": approval.message or None}
    return {"type": "response", "args": approval.message}
