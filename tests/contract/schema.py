"""The table as the template declares it, so that what is tested is what is deployed."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import yaml

from a2a_serverless_tools.stack.paths import CHECKOUT

TAKEN: Final = ("AttributeDefinitions", "KeySchema", "GlobalSecondaryIndexes", "BillingMode")


class _Loader(yaml.SafeLoader):
    """YAML with CloudFormation's short tags, whose values do not matter here."""


_Loader.add_multi_constructor("!", lambda *_: None)


@cache
def table_schema(resource: str = "Table") -> dict[str, Any]:
    """What ``CreateTable`` needs besides a name, for a table of the template."""
    template = yaml.load((CHECKOUT / "template.yaml").read_text(), _Loader)  # noqa: S506 - a SafeLoader
    properties = template["Resources"][resource]["Properties"]
    return {name: properties[name] for name in TAKEN if name in properties}
