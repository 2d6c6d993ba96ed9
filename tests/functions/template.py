"""template.yaml as data: intrinsic functions in their long form, anchors resolved."""

from functools import cache
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]


class _Loader(yaml.SafeLoader):
    """YAML with CloudFormation's tags."""


def _intrinsic(loader: _Loader, suffix: str, node: yaml.Node) -> dict[str, Any]:
    name = suffix if suffix in {"Ref", "Condition"} else f"Fn::{suffix}"
    if isinstance(node, yaml.ScalarNode):
        value = loader.construct_scalar(node)
        return {name: value.split(".") if suffix == "GetAtt" else value}
    if isinstance(node, yaml.SequenceNode):
        return {name: loader.construct_sequence(node, deep=True)}
    assert isinstance(node, yaml.MappingNode)
    return {name: loader.construct_mapping(node, deep=True)}


_Loader.add_multi_constructor("!", _intrinsic)


def settings() -> dict[str, Any]:
    """The constants of the template, which stand in one place of it."""
    found = template()["Metadata"]["Settings"]
    assert isinstance(found, dict)
    return found


@cache
def template() -> dict[str, Any]:
    """The whole document."""
    return _loaded("template.yaml")


@cache
def observability() -> dict[str, Any]:
    """The document that template.yaml names as a stack of its own."""
    return _loaded("observability.yaml")


def _loaded(name: str) -> dict[str, Any]:
    return parsed((ROOT / name).read_text())


def parsed(text: str) -> dict[str, Any]:
    """A template from its text."""
    document = yaml.load(text, Loader=_Loader)  # noqa: S506 (derived from SafeLoader)
    assert isinstance(document, dict)
    return document


def resources(kind: str) -> dict[str, dict[str, Any]]:
    """Properties of every resource of a type, by logical id."""
    found = template()["Resources"].items()
    return {name: resource.get("Properties", {}) for name, resource in found if resource["Type"] == kind}


def functions() -> dict[str, dict[str, Any]]:
    """Properties of every function, by its short name."""
    found = resources("AWS::Serverless::Function").items()
    return {name.removesuffix("Function").lower(): properties for name, properties in found}
