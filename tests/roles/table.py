"""What each function asks of AWS and what its role allows, and the table of it that the documents show."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from typing import TYPE_CHECKING, Final

from tests.functions.template import functions as template_functions
from tests.roles.journeys import heard
from tests.roles.policies import Stack, covers, grants

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.roles.recorder import Need

NAMED: Final = {
    "agent_credentials": "AgentCredentialsSecretArn",
    "agent_credentials_key": "AgentCredentialsKeyArn",
}
POLLING: Final = "sqs:ReceiveMessage sqs:DeleteMessage sqs:GetQueueAttributes"
READING: Final = "dynamodb:DescribeStream dynamodb:GetRecords dynamodb:GetShardIterator dynamodb:ListStreams"
PROFILE: Final = "*:application-inference-profile/*"
# Allowed and never heard from a function's own code, by function, actions and resource, and why.
REASONS: Final[dict[tuple[str, str, str], str]] = {
    ("*", "logs:CreateLogStream logs:PutLogEvents", "*Logs"): "Lambda writes the log",
    ("worker", POLLING, "WorkQueue"): "Lambda polls the queue",
    ("notifier", POLLING, "DeliveryQueue"): "Lambda polls the queue",
    ("relay", READING, "*"): "Lambda reads the stream",
    ("relay", "sqs:SendMessage", "RelayFailures"): "Lambda sends what the relay gave up on",
    ("worker", "kms:Decrypt", "agent_credentials_key"): "Secrets Manager asks in the worker's name",
    ("*", "bedrock:InvokeModelWithResponseStream", PROFILE): "a writing model may be named by a profile of yours",
    ("*", "bedrock:InvokeModel", "*-profile/*"): "a picture model may be named by a profile",
    ("*", "dynamodb:ConditionCheckItem", "Table"): "agents of yours may store values; no sample does",
    ("api", "bedrock:InvokeModel", "*::foundation-model/*"): "agents of yours that run inline may draw",
}


@dataclass(frozen=True)
class Heard:
    """The resolved stack, and what each function was heard to need, by the template's names for resources."""

    stack: Stack
    needs: dict[str, set[Need]]

    def granted(self, function: str) -> set[Need]:
        """What the function's role allows, by the same names."""
        return {self.stack.told(grant) for grant in grants(self.stack.roles()[function])}

    def too_little(self, function: str) -> list[Need]:
        """What was asked for and is not allowed."""
        granted = self.granted(function)
        return sorted(need for need in self.needs[function] if not any(covers(grant, need) for grant in granted))

    def too_much(self, function: str) -> list[Need]:
        """What is allowed, was never asked for, and has no reason."""
        return sorted(grant for grant in self.unheard(function) if not any(reasons(function, grant)))

    def unheard(self, function: str) -> set[Need]:
        """What is allowed and was never asked for."""
        needs = self.needs[function]
        return {grant for grant in self.granted(function) if not any(covers(grant, need) for need in needs)}


def reasons(function: str, grant: Need) -> Iterator[tuple[str, str, str]]:
    """The entries of ``REASONS`` that are about it."""
    for whose, actions, resource in REASONS:
        if fnmatchcase(function, whose) and grant.action in actions.split() and fnmatchcase(grant.resource, resource):
            yield whose, actions, resource


@cache
def of_functions() -> Heard:
    """All of them, made by one run of the journeys in a process."""
    account, needs = heard()
    return Heard(account.stack, needs)


def table() -> str:
    """Roles and calls: an action is in italics where Lambda makes the call, or an agent of somebody's may."""
    found = of_functions()
    functions = [*template_functions()]
    rows: dict[str, dict[str, set[str]]] = {}
    for function in functions:
        for grant in found.granted(function):
            service, action = grant.action.split(":")
            word = f"*{action}*" if grant in found.unheard(function) else action
            named = NAMED.get(grant.resource, grant.resource.replace("/2026", ""))
            place = f"`{named}`" + (f", purpose `{grant.purpose}`" if grant.purpose else "")
            cell = rows.setdefault(f"{service} | {place}", {}).setdefault(function, set())
            cell.add(word)
    lines = [f"| service | on | {' | '.join(functions)} |", "|---|---|" + "---|" * len(functions)]
    for row in sorted(rows):
        cells = ("<br>".join(sorted(rows[row].get(one, {"·"}), key=lambda word: word.strip("*"))) for one in functions)
        lines.append(f"| {row} | {' | '.join(cells)} |")
    return "\n".join(lines)
