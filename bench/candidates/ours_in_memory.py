"""The api function as it is built, over clients of AWS that answer at once: what is left is what our own code costs."""

import os
from collections import defaultdict
from types import SimpleNamespace
from typing import Any

from a2a_serverless.aws.api_dependencies import make_dependencies
from a2a_serverless.http.app import make_asgi_app
from a2a_serverless.http.lambda_proxy import make_gateway_handler

Item = dict[str, Any]


class Database:
    """As much of DynamoDB's client as a send and a get need."""

    def __init__(self) -> None:
        self._items: dict[str, dict[str, Item]] = defaultdict(dict)

    def get_item(self, *, Key: Item, **_: object) -> Item:  # noqa: N803 - botocore's names
        """One item."""
        item = self._items[Key["pk"]["S"]].get(Key["sk"]["S"])
        return {"Item": item} if item else {}

    def put_item(self, *, Item: Item, **_: object) -> Item:  # noqa: N803
        """Puts it."""
        self._items[Item["pk"]["S"]][Item["sk"]["S"]] = Item
        return {}

    def update_item(self, **_: object) -> Item:
        """Changes nothing: only an owner's share is updated by a send, and none is used up here."""
        return {}

    def delete_item(self, **_: object) -> Item:
        """Deletes nothing: a send and a get delete nothing."""
        return {}

    def transact_write_items(self, *, TransactItems: list[Item]) -> Item:  # noqa: N803
        """Puts what is put."""
        for action in TransactItems:
            item = action["Put"]["Item"]
            self._items[item["pk"]["S"]][item["sk"]["S"]] = item
        return {}

    def query(self, *, ExpressionAttributeValues: Item, ScanIndexForward: bool = True, **_: object) -> Item:  # noqa: N803
        """The items of a partition between two sort keys."""
        asked = {name: value["S"] for name, value in ExpressionAttributeValues.items()}
        found = sorted(self._items[asked[":pk"]].items(), reverse=not ScanIndexForward)
        return {"Items": [item for name, item in found if asked[":first"] <= name <= asked[":last"]]}


clouds: Any = SimpleNamespace(dynamodb=Database(), sqs=SimpleNamespace(send_message=lambda **_: None))
handler = make_gateway_handler(make_asgi_app(make_dependencies(os.environ, clouds)))
