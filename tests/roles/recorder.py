"""Every call that a function makes to AWS, as the actions and resources that IAM would ask its role for.

The recorder hooks into botocore itself, as moto does: a client of any session is heard, whoever made it and however.
Presigned links are heard too: they are worth what their signer may do.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from botocore import handlers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

REGION: Final = "us-east-1"
ACCOUNT: Final = "123456789012"  # moto's
SIGNED_BY: Final = re.compile(r"Credential=(\w+)/")
PURPOSE: Final = "kms:EncryptionContext:purpose"
LEADING_KEYS: Final = "dynamodb:LeadingKeys"
TRANSACTED: Final = {
    "Put": "PutItem",
    "Update": "UpdateItem",
    "Delete": "DeleteItem",
    "ConditionCheck": "ConditionCheckItem",
    "Get": "GetItem",
}


@dataclass(frozen=True, slots=True, order=True)
class Need:
    """What a role has to allow so that a call gets through; ``context`` are values of condition keys.

    A partition of a table whose name has ids is named by what is before them.
    """

    action: str
    resource: str
    context: tuple[tuple[str, str], ...] = ()

    @property
    def purpose(self) -> str:
        """The purpose in the encryption context."""
        return dict(self.context).get(PURPOSE, "")


Kind = tuple[str, str, frozenset[Need]]


class Recorder:
    """What each function needed so far, by its short name, and each group of commands, by its word.

    ``kinds`` has the parameters of a call of each kind, by service, operation and needs. ``keys`` are the access keys
    that requests over a network were signed with. ``before`` is told of each call that begins.
    """

    def __init__(self) -> None:
        self.needs: dict[str, set[Need]] = {}
        self.kinds: dict[Kind, Mapping[str, Any]] = {}
        self.keys: dict[str, list[str]] = {}
        self.unknown: set[str] = set()
        self.before: Callable[[str, str, Mapping[str, Any]], object] = lambda *_: None

    @contextmanager
    def of(self, function: str) -> Iterator[None]:
        """Sessions that are made in this block are that function's, and stay so."""
        found = self.needs.setdefault(function, set())

        def hear(params: Mapping[str, Any], model: Any, **_: object) -> None:
            service, operation = str(model.service_model.service_name), str(model.name)
            if service not in KNOWN:
                self.unknown.add(f"{service}:{operation}")
                return
            needs = frozenset(KNOWN[service](operation, params))
            found.update(needs)
            self.kinds.setdefault((service, operation, needs), params)
            self.before(function, operation, params)

        def send(request: Any, **_: object) -> None:
            signed = SIGNED_BY.search(request.headers.get("Authorization", b"").decode())
            self.keys.setdefault(function, []).append(signed[1] if signed else "")

        hooks = [("provide-client-params", hear), ("before-send", send)]
        handlers.BUILTIN_HANDLERS.extend(hooks)
        try:
            yield
        finally:
            for hook in hooks:
                handlers.BUILTIN_HANDLERS.remove(hook)


def _keys(call: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """The partition that a call of DynamoDB names; none for a scan and an index."""
    place = call.get("Key") or call.get("Item") or {"pk": call.get("ExpressionAttributeValues", {}).get(":pk")}
    if "IndexName" in call or not isinstance(place.get("pk"), dict):
        return ()
    name, mark, _ = place["pk"]["S"].partition("#")
    return ((LEADING_KEYS, name + mark),)


def _cloudformation(operation: str, params: Mapping[str, Any]) -> Iterator[Need]:
    stack = f"arn:aws:cloudformation:{REGION}:{ACCOUNT}:stack/{params['StackName']}/id"
    yield Need(f"cloudformation:{operation}", stack)


def _dynamodb(operation: str, params: Mapping[str, Any]) -> Iterator[Need]:
    if operation in {"TransactWriteItems", "TransactGetItems"}:
        for item in params["TransactItems"]:
            for kind, action in item.items():
                yield Need(f"dynamodb:{TRANSACTED[kind]}", _table(action["TableName"]), _keys(action))
        return
    if operation in {"BatchGetItem", "BatchWriteItem"}:
        for table in params["RequestItems"]:
            yield Need(f"dynamodb:{operation}", _table(table))
        return
    index = params.get("IndexName")
    resource = _table(params["TableName"])
    yield Need(f"dynamodb:{operation}", f"{resource}/index/{index}" if index else resource, _keys(params))


def _table(name: str) -> str:
    return name if name.startswith("arn:") else f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/{name}"


def _s3(operation: str, params: Mapping[str, Any]) -> Iterator[Need]:
    bucket = f"arn:aws:s3:::{params['Bucket']}"
    renamed = {"HeadObject": "GetObject", "ListObjectsV2": "ListBucket", "ListObjects": "ListBucket"}
    action = renamed.get(operation, operation)
    if operation in {"CreateMultipartUpload", "UploadPart", "CompleteMultipartUpload"}:
        action = "PutObject"
    yield Need(f"s3:{action}", f"{bucket}/{params['Key']}" if "Key" in params else bucket)


def _sqs(operation: str, params: Mapping[str, Any]) -> Iterator[Need]:
    account, name = params["QueueUrl"].split("/")[-2:]
    yield Need(f"sqs:{operation.removesuffix('Batch')}", f"arn:aws:sqs:{REGION}:{account}:{name}")


def _kms(operation: str, params: Mapping[str, Any]) -> Iterator[Need]:
    key, purpose = params["KeyId"], params.get("EncryptionContext", {}).get("purpose", "")
    arn = key if key.startswith("arn:") else f"arn:aws:kms:{REGION}:{ACCOUNT}:key/{key}"
    yield Need(f"kms:{operation}", arn, ((PURPOSE, purpose),) if purpose else ())


def _secrets(operation: str, params: Mapping[str, Any]) -> Iterator[Need]:
    yield Need(f"secretsmanager:{operation}", params["SecretId"])


def _lambda(operation: str, params: Mapping[str, Any]) -> Iterator[Need]:
    action = "InvokeFunction" if operation == "Invoke" else operation
    yield Need(f"lambda:{action}", f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{params['FunctionName']}")


def _scheduler(operation: str, params: Mapping[str, Any]) -> Iterator[Need]:
    place = f"{params['GroupName']}/{params['Name']}" if "Name" in params else ""
    yield Need(f"scheduler:{operation}", f"arn:aws:scheduler:{REGION}:{ACCOUNT}:schedule/{place}" if place else "*")
    if operation == "UpdateSchedule":
        yield Need("iam:PassRole", params["Target"]["RoleArn"])


def _bedrock(operation: str, params: Mapping[str, Any]) -> Iterator[Need]:
    streams = operation in {"ConverseStream", "InvokeModelWithResponseStream"}
    action = "InvokeModelWithResponseStream" if streams else "InvokeModel"
    model = params["modelId"]
    if model.split(".")[0] in {"eu", "us", "global"}:  # a profile; behind it the model itself is asked for too
        yield Need(f"bedrock:{action}", f"arn:aws:bedrock:{REGION}:{ACCOUNT}:inference-profile/{model}")
        model = model.partition(".")[2]
    yield Need(f"bedrock:{action}", f"arn:aws:bedrock:{REGION}::foundation-model/{model}")


def _logs(operation: str, params: Mapping[str, Any]) -> Iterator[Need]:
    for group in params.get("logGroupNames", ()):
        yield Need(f"logs:{operation}", f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:{group}:*")
    if operation == "GetQueryResults":  # IAM knows no resource for it
        yield Need("logs:GetQueryResults", "*")


KNOWN: Final[dict[str, Callable[[str, Mapping[str, Any]], Iterator[Need]]]] = {
    "cloudformation": _cloudformation,
    "dynamodb": _dynamodb,
    "s3": _s3,
    "sqs": _sqs,
    "kms": _kms,
    "secretsmanager": _secrets,
    "lambda": _lambda,
    "scheduler": _scheduler,
    "bedrock-runtime": _bedrock,
    "logs": _logs,
}
