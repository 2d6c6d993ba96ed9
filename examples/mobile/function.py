"""The backend of a mobile app, in one Lambda function: devices, push configurations, and webhooks that become pushes.

The gateway verifies the user's sign-in for the first two routes (a JWT authorizer); webhooks are verified here. A push
carries ids only (task, agent, state): the app reads the task with the user's own sign-in. See ``docs/mobile.md``.
"""

import base64
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import boto3

from a2a_webhook_receiver.aws_lambda import build_from_environment, make_handler
from a2a_webhook_receiver.expectations import digest
from a2a_webhook_receiver.receive import Claimed, Receiver, register_token

PUSHED = frozenset({"completed", "failed", "canceled", "rejected", "input-required", "auth-required"})
"""The states that a user hears of: the task has ended, or it needs its user."""
AGENT = re.compile(r"[A-Za-z0-9_-]{1,64}")
DEVICE_TOKEN = re.compile(r"[\x21-\x7e]{1,4096}")

Event = Mapping[str, Any]
Answer = dict[str, Any]


class InvalidRequest(ValueError):
    """The app sent something else than this function reads."""


def push_of(endpoint: str, task_id: str, agent: str, state: str) -> dict[str, Any]:
    """The arguments of SNS ``Publish`` for one device. The platform is in the endpoint's ARN."""
    platform = endpoint.split("/")[1]
    ids = {"taskId": task_id, "agent": agent, "state": state}
    fcm = {"fcmV1Message": {"message": {"data": ids, "android": {"priority": "high"}}}}
    apns = {"aps": {"alert": {"loc-key": f"TASK_{state}"}, "mutable-content": 1}, **ids}
    message = {"default": state, platform: json.dumps(fcm if platform == "GCM" else apns)}
    named = {"PUSH_TYPE": "alert", "PRIORITY": "10", "COLLAPSE_ID": task_id[:64]} if platform != "GCM" else {}
    attributes = {f"AWS.SNS.MOBILE.APNS.{name}": _text(value) for name, value in named.items()}
    more = {"MessageAttributes": attributes} if attributes else {}
    return {"TargetArn": endpoint, "MessageStructure": "json", "Message": json.dumps(message), **more}


def _text(value: str) -> dict[str, str]:
    return {"DataType": "String", "StringValue": value}


@dataclass(frozen=True)
class MobilePush:
    """``table`` is the receiver's own (keys ``pk`` and ``sk``); ``applications`` are ARNs by platform, fcm and apns."""

    receiver: Receiver
    dynamodb: Any
    sns: Any
    table: str
    applications: Mapping[str, str]

    def register_device(self, event: Event) -> dict[str, str]:
        """``POST /devices``, at each start of the app. A device has one user: the one who signed in last."""
        asked, user = body_of(event), user_of(event)
        platform, token = asked.get("platform"), asked.get("deviceToken")
        application = self.applications.get(str(platform))
        if application is None or not isinstance(token, str) or not DEVICE_TOKEN.fullmatch(token):
            raise InvalidRequest(f"platform is one of {', '.join(self.applications)}; deviceToken is what it gave")
        made = self.sns.create_platform_endpoint(PlatformApplicationArn=application, Token=token)
        endpoint: str = made["EndpointArn"]
        self.sns.set_endpoint_attributes(EndpointArn=endpoint, Attributes={"Enabled": "true", "Token": token})
        self._put(f"DEVICE#{endpoint}", "USER", user=user)  # first: from now on no other user's push goes there
        self._put(f"USER#{user}", f"DEVICE#{endpoint}")
        return {"device": digest(endpoint)}

    def make_push_config(self, event: Event) -> dict[str, str]:
        """``POST /push-configs``, before a message is sent: the configuration to send with it."""
        agent, user = body_of(event).get("agent"), user_of(event)
        if not isinstance(agent, str) or not AGENT.fullmatch(agent):
            raise InvalidRequest("agent is the id of the agent")
        config = register_token(self.receiver)
        until = self.receiver.clock() // 1000 + self.receiver.expectation_seconds
        self._put(f"CONFIG#{digest(config['token'])}", "USER", user=user, agent=agent, expires=until)
        return config

    def push(self, claimed: Claimed) -> None:
        """Pushes a verified notification to the user's devices. If it raises, the next attempt pushes again."""
        notification = claimed.notification
        state = notification.content.state
        if state not in PUSHED or claimed.admitted.late:
            return
        config = self._get(f"CONFIG#{notification.expectation.token_digest}", "USER")
        if config is None:
            return
        user, agent = config["user"]["S"], config["agent"]["S"]
        for endpoint in self._devices(user):
            self._publish(user, endpoint, push_of(endpoint, notification.subject.task_id, agent, state))

    def _publish(self, user: str, endpoint: str, push: Mapping[str, Any]) -> None:
        owner = self._get(f"DEVICE#{endpoint}", "USER")
        if owner is None or owner["user"]["S"] != user:
            return self._forget(user, endpoint)
        gone = (self.sns.exceptions.EndpointDisabledException, self.sns.exceptions.NotFoundException)
        try:
            self.sns.publish(**push)
        except gone:  # the app was removed; it registers again when it is back
            self._forget(user, endpoint)
        return None

    def _devices(self, user: str) -> Iterator[str]:
        pages = self.dynamodb.get_paginator("query").paginate(
            TableName=self.table,
            KeyConditionExpression="pk = :user AND begins_with(sk, :device)",
            ExpressionAttributeValues={":user": {"S": f"USER#{user}"}, ":device": {"S": "DEVICE#"}},
        )
        return (item["sk"]["S"].removeprefix("DEVICE#") for page in pages for item in page["Items"])

    def _put(self, pk: str, sk: str, expires: int | None = None, **texts: str) -> None:
        item: dict[str, Any] = {name: {"S": value} for name, value in {"pk": pk, "sk": sk, **texts}.items()}
        self.dynamodb.put_item(TableName=self.table, Item=item | ({"expires": {"N": str(expires)}} if expires else {}))

    def _get(self, pk: str, sk: str) -> dict[str, Any] | None:
        key = {"pk": {"S": pk}, "sk": {"S": sk}}
        found: dict[str, Any] | None = self.dynamodb.get_item(TableName=self.table, Key=key).get("Item")
        return found

    def _forget(self, user: str, endpoint: str) -> None:
        key = {"pk": {"S": f"USER#{user}"}, "sk": {"S": f"DEVICE#{endpoint}"}}
        self.dynamodb.delete_item(TableName=self.table, Key=key)


def user_of(event: Event) -> str:
    """The user that the gateway's JWT authorizer has verified."""
    user: str = event["requestContext"]["authorizer"]["jwt"]["claims"]["sub"]
    return user


def body_of(event: Event) -> dict[str, Any]:
    """The JSON object in the request. Raises InvalidRequest."""
    text = event.get("body") or ""
    try:
        asked = json.loads(base64.b64decode(text) if event.get("isBase64Encoded") else text)
    except ValueError:
        asked = None
    if not isinstance(asked, dict):
        raise InvalidRequest("the body is a JSON object")
    return asked


def make_routes(mobile: MobilePush, webhook: Callable[[Event, object], Answer]) -> Callable[[Event, object], Answer]:
    """The Lambda entry point for all three routes."""
    routes = {"POST /devices": mobile.register_device, "POST /push-configs": mobile.make_push_config}

    def route(event: Event, context: object) -> Answer:
        serve = routes.get(event["routeKey"])
        if serve is None:
            return webhook(event, context)
        try:
            return answer(200, serve(event))
        except InvalidRequest as error:
            return answer(400, {"error": str(error)})

    return route


def answer(status: int, content: Mapping[str, str]) -> Answer:
    """An answer in the form of HTTP APIs."""
    headers = {"Content-Type": "application/json", "Cache-Control": "no-store"}
    return {"statusCode": status, "headers": headers, "body": json.dumps(content)}


@cache
def _routes() -> Callable[[Event, object], Answer]:
    built = build_from_environment()
    platforms = {"fcm": os.environ.get("FCM_APPLICATION_ARN"), "apns": os.environ.get("APNS_APPLICATION_ARN")}
    applications = {name: arn for name, arn in platforms.items() if arn}
    clients = boto3.client("dynamodb"), boto3.client("sns")
    mobile = MobilePush(built[0], *clients, os.environ["REPLAY_TABLE"], applications)
    return make_routes(mobile, make_handler(mobile.push, lambda: built))


def handler(event: Event, context: object) -> Answer:
    """The Lambda entry point."""
    return _routes()(event, context)
