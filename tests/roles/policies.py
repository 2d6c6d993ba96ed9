"""The roles of the transformed template with every reference resolved, and an evaluator of what they allow."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache
from itertools import product
from typing import TYPE_CHECKING, Any, Final

from tests.functions.template import ROOT, parsed
from tests.functions.transformed import transform
from tests.roles.recorder import ACCOUNT, REGION, Need

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

PSEUDO: Final = {
    "AWS::Partition": "aws",
    "AWS::Region": REGION,
    "AWS::AccountId": ACCOUNT,
    "AWS::StackName": "a2a-serverless",
    "AWS::URLSuffix": "amazonaws.com",
}
NOTHING: Final = object()
CONSTANTS: Final = ("agent_credentials", "agent_credentials_key")


@cache
def document() -> dict[str, Any]:
    """The transformed template, with a secret and its key named among its constants, as somebody may have edited it."""
    text = (ROOT / "template.yaml").read_text()
    for name in CONSTANTS:
        assert f'&{name} ""' in text
        text = text.replace(f'&{name} ""', f'&{name} "{name}"')
    found: dict[str, Any] = json.loads(transform(parsed(text), {}))
    return found


def _of_type(kind: str) -> dict[str, dict[str, Any]]:
    return {name: one for name, one in document()["Resources"].items() if one["Type"] == kind}


@dataclass(frozen=True)
class Stack:
    """A stack that stands: its parameters, and what ``Ref`` and ``GetAtt`` say of its resources."""

    parameters: Mapping[str, str]
    resources: Mapping[str, str]

    def value(self, given: Any) -> Any:
        """What CloudFormation makes of a piece of the template; ``NOTHING`` is what is left out."""
        if isinstance(given, list):
            return [one for one in map(self.value, given) if one is not NOTHING]
        if not isinstance(given, dict):
            return self.resources[given] if given in CONSTANTS else given
        if len(given) == 1 and (name := next(iter(given))) in self._functions:
            return self._functions[name](given[name])
        found = {name: self.value(inner) for name, inner in given.items()}
        return {name: inner for name, inner in found.items() if inner is not NOTHING}

    @property
    def _functions(self) -> dict[str, Callable[[Any], Any]]:
        return {
            "Ref": self._named,
            "Fn::GetAtt": lambda given: self._named(given if isinstance(given, str) else ".".join(given)),
            "Fn::Sub": self._substituted,
            "Fn::Join": lambda given: given[0].join(map(str, self.value(given[1]))),
            "Fn::If": lambda given: self.value(given[1] if self.value({"Condition": given[0]}) else given[2]),
            "Condition": lambda name: self.value(document()["Conditions"][name]),
            "Fn::Not": lambda given: not self.value(given[0]),
            "Fn::And": lambda given: all(map(self.value, given)),
            "Fn::Or": lambda given: any(map(self.value, given)),
            "Fn::Equals": lambda given: str(self.value(given[0])) == str(self.value(given[1])),
        }

    def environment(self, function: str) -> dict[str, str]:
        """The variables of a function, by its short name."""
        properties = _of_type("AWS::Lambda::Function")[f"{function.title()}Function"]["Properties"]
        return {name: str(one) for name, one in self.value(properties["Environment"]["Variables"]).items()}

    def roles(self) -> dict[str, list[dict[str, Any]]]:
        """The statements of each function's role, by the function's short name."""
        functions = _of_type("AWS::Lambda::Function")
        names = {name.removesuffix("Function").lower(): one["Properties"]["Role"] for name, one in functions.items()}
        roles = _of_type("AWS::IAM::Role")
        return {name: self._statements(roles[role["Fn::GetAtt"][0]]) for name, role in names.items()}

    def told(self, need: Need) -> Need:
        """The same with the template's name for the resource, where it has one; objects of a bucket have one name."""
        arns = sorted(((arn, name) for name, arn in self.resources.items() if name.endswith(".Arn")), reverse=True)
        for arn, name in [*arns, *((one, name) for name, one in self.resources.items() if one.startswith("arn:"))]:
            rest = need.resource.removeprefix(arn)
            if rest != need.resource and rest[:1] in {"", "/", ":"}:
                of_objects = need.resource.startswith("arn:aws:s3:::") and rest
                return replace(need, resource=name.removesuffix(".Arn") + ("/*" if of_objects else rest))
        return need

    def meant(self, need: Need) -> Need:
        """The opposite of ``told``."""
        name, mark, rest = need.resource.partition("/")
        known = self.resources.get(f"{name}.Arn") or self.resources.get(name) or name
        return replace(need, resource=known + mark + rest)

    def _statements(self, role: Mapping[str, Any]) -> list[dict[str, Any]]:
        policies = role["Properties"]["Policies"]
        return [one for policy in policies for one in self.value(policy["PolicyDocument"]["Statement"])]

    def _named(self, name: str) -> Any:
        if name == "AWS::NoValue":
            return NOTHING
        for known in (PSEUDO, self.parameters, self.resources):
            if name in known:
                return known[name]
        parameter = document()["Parameters"].get(name)
        return f"unknown-{name}" if parameter is None else str(parameter.get("Default", ""))

    def _substituted(self, given: Any) -> str:
        text, more = given if isinstance(given, list) else (given, {})
        return re.sub(r"\$\{([^!}]+)\}", lambda found: str(self._part(found[1], more)), text)

    def _part(self, name: str, more: Mapping[str, Any]) -> Any:
        return self.value(more[name]) if name in more else self._named(name)


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def grants(statements: list[dict[str, Any]]) -> Iterator[Need]:
    """Each action with each resource, and each combination of values of condition keys, that is allowed together."""
    for statement in statements:
        assert statement["Effect"] == "Allow"
        condition = statement.get("Condition", {})
        assert condition.keys() <= {"StringEquals", "ForAllValues:StringEquals"}, statement
        values = {key: listed(value) for keys in condition.values() for key, value in keys.items()}
        contexts = [tuple(sorted(zip(values, chosen, strict=True))) for chosen in product(*values.values())]
        for action, resource, context in product(listed(statement["Action"]), listed(statement["Resource"]), contexts):
            yield Need(action, resource, context)


def covers(grant: Need, need: Need) -> bool:
    """Whether a grant allows what a call needs. Only ``*`` and ``?`` are special, as in IAM."""
    names = fnmatchcase(need.action.lower(), grant.action.lower()) and {*grant.context} <= {*need.context}
    return names and fnmatchcase(need.resource, grant.resource.replace("[", "[[]"))
