"""What CloudFormation makes of the transformed template with certain parameters: conditions are decided, parameters and
what is built from them are put in. What only an account can say (names, ARNs) stays as it is written.
"""

import re
from typing import Any

from tests.functions.transformed import transformed

PSEUDO = {"AWS::StackName": "stack", "AWS::Region": "us-east-1", "AWS::URLSuffix": "amazonaws.com"}
NOTHING = {"Ref": "AWS::NoValue"}


def evaluated(**parameters: str) -> dict[str, Any]:
    """The resources that there are, by logical id."""
    document = transformed(**parameters)
    values = {name: one["Default"] for name, one in document["Parameters"].items()} | PSEUDO | parameters
    reader = _Reader(document["Conditions"], document["Mappings"], values)
    found = document["Resources"].items()
    return {name: reader.read(one) for name, one in found if "Condition" not in one or reader.decided(one["Condition"])}


class _Reader:
    """Reads a template with the values of its parameters."""

    def __init__(self, conditions: dict[str, Any], mappings: dict[str, Any], values: dict[str, str]) -> None:
        self._conditions = conditions
        self._mappings = mappings
        self._values = values
        self._intrinsics = {
            "Ref": lambda value: values.get(value["Ref"], value),
            "Fn::If": self._if,
            "Fn::Sub": self._sub,
            "Fn::FindInMap": self._in_map,
        }

    def decided(self, name: str) -> bool:
        """Whether a condition holds."""
        return self._holds(self._conditions[name])

    def _holds(self, condition: Any) -> bool:
        ((kind, parts),) = condition.items()
        if kind == "Condition":
            return self.decided(parts)
        if kind == "Fn::Equals":
            first, second = map(self.read, parts)
            return str(first) == str(second)
        if kind == "Fn::Not":
            return not self._holds(parts[0])
        assert kind in {"Fn::And", "Fn::Or"}, kind
        return (all if kind == "Fn::And" else any)(map(self._holds, parts))

    def read(self, value: Any) -> Any:
        """A value, as far as parameters say it."""
        if isinstance(value, list):
            return [one for one in map(self.read, value) if one != NOTHING]
        if not isinstance(value, dict):
            return value
        intrinsic = self._intrinsics.get(next(iter(value), "")) if len(value) == 1 else None
        if intrinsic:
            return intrinsic(value)
        read = {name: self.read(one) for name, one in value.items()}
        return {name: one for name, one in read.items() if one != NOTHING}

    def _if(self, value: dict[str, Any]) -> Any:
        name, yes, no = value["Fn::If"]
        return self.read(yes if self.decided(name) else no)

    def _sub(self, value: dict[str, Any]) -> Any:
        text = value["Fn::Sub"]
        if not isinstance(text, str):
            return {"Fn::Sub": [text[0], self.read(text[1])]}
        return {"Fn::Sub": re.sub(r"\$\{([\w:]+)\}", lambda one: self._values.get(one[1], one[0]), text)}

    def _in_map(self, value: dict[str, Any]) -> Any:
        first, second, third = map(self.read, value["Fn::FindInMap"])
        return self._mappings[first][second][third]
