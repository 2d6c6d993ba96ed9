"""A deployed stack from its operator's side: its outputs, its alarms and calls of its functions."""

from __future__ import annotations

import json
import re
from email.utils import parsedate_to_datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    NoCredentialsError,
    NoRegionError,
    ReadTimeoutError,
)

from a2a_serverless.adapters.clock import CorrectedClock, SystemClock
from a2a_serverless.domain.errors import Overloaded
from a2a_serverless_tools.operators.deployed import (
    AccessDenied,
    CommandFailed,
    CredentialsExpired,
    FunctionFailed,
    NoCredentials,
    NoRegion,
    StackNotFound,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from a2a_serverless.adapters.aws import Aws
    from a2a_serverless.domain.model import Json, JsonObject

PAGE: Final = 100
DENIED: Final = frozenset({"403", "AccessDenied", "AccessDeniedException"})
EXPIRED: Final = frozenset({"ExpiredToken", "ExpiredTokenException"})
FUNCTION_TIMEOUT_S: Final = 910  # no function runs for longer than 900
THROTTLED: Final = frozenset({"TooManyRequestsException", "EC2ThrottledException"})
_ACTION: Final = re.compile(r"not authorized to perform: (\S+)")


class DeployedStack:
    """A CloudFormation stack, by name."""

    def __init__(self, aws: Aws, name: str) -> None:
        self._aws = aws
        self._name = name

    def output(self, name: str) -> str:
        """One of the template's outputs. Raises StackNotFound."""
        try:
            return self._outputs[name]
        except KeyError:
            raise StackNotFound(f"the stack {self._name} has no output {name}: deploy the current template") from None

    def clock(self) -> CorrectedClock:
        """The clock of AWS, at most some seconds late: that of an operator's machine may be wrong by minutes.

        Raises StackNotFound.
        """
        return self._answer[1]

    def invoke(self, function: str, event: Mapping[str, Json]) -> JsonObject:
        """Calls a function and returns its answer; raises CommandFailed, and Overloaded when too many functions run."""
        try:
            return invoke_function(self._aws, function, event)
        except (BotoCoreError, ClientError, TimeoutError) as error:
            failure = failure_of(error)
            if isinstance(failure, (AccessDenied, CredentialsExpired)):
                raise failure from error
            raise CommandFailed(f"{function} has not answered: {error}") from error

    def variables(self, function: str) -> dict[str, str]:
        """The environment of the function that this output names. Raises StackNotFound, CommandFailed."""
        client: Any = self._aws.client("lambda")
        try:
            configuration = client.get_function_configuration(FunctionName=self.output(function))
        except (BotoCoreError, ClientError) as error:
            failure = failure_of(error)
            if isinstance(failure, (AccessDenied, CredentialsExpired)):
                raise failure from error
            raise CommandFailed(f"the environment of {function} cannot be read: {error}") from error
        return dict(configuration.get("Environment", {}).get("Variables", {}))

    def alarms(self) -> dict[str, str]:
        """The state of each alarm of the stack and its nested stacks, by alarm name. Raises StackNotFound."""
        try:
            names = list(self._alarm_names(self._name))
            client: Any = self._aws.client("cloudwatch")
            pages = [client.describe_alarms(AlarmNames=names[at : at + PAGE]) for at in range(0, len(names), PAGE)]
        except (BotoCoreError, ClientError) as error:
            raise _not_found(f"the alarms of the stack {self._name} cannot be read", error) from error
        return {one["AlarmName"]: one["StateValue"] for page in pages for one in page["MetricAlarms"]}

    def _alarm_names(self, stack: str) -> Iterator[str]:
        client: Any = self._aws.client("cloudformation")
        for page in client.get_paginator("list_stack_resources").paginate(StackName=stack):
            for one in page["StackResourceSummaries"]:
                if one["ResourceType"] == "AWS::CloudWatch::Alarm":
                    yield one["PhysicalResourceId"]
                elif one["ResourceType"] == "AWS::CloudFormation::Stack":
                    yield from self._alarm_names(one["PhysicalResourceId"])

    @property
    def _outputs(self) -> dict[str, str]:
        return self._answer[0]

    @cached_property
    def _answer(self) -> tuple[dict[str, str], CorrectedClock]:
        """The outputs, and the clock of who answered."""
        try:
            client: Any = self._aws.client("cloudformation")
            answer = client.describe_stacks(StackName=self._name)
        except (BotoCoreError, ClientError) as error:
            raise _not_found(f"the stack {self._name} cannot be read", error) from error
        outputs = {output["OutputKey"]: output["OutputValue"] for output in answer["Stacks"][0].get("Outputs", [])}
        return outputs, _clock_of(answer["ResponseMetadata"]["HTTPHeaders"].get("date", ""))


def _clock_of(date: str) -> CorrectedClock:
    """The clock that shows the time of a Date header, which an answer just had; this machine's without one."""
    now = SystemClock().now()
    then = int(parsedate_to_datetime(date).timestamp() * 1000) if date else now
    return CorrectedClock(then - now)


def failure_of(error: Exception) -> CommandFailed | None:
    """What an error of the AWS SDK means for an operator; None for other errors."""
    if not isinstance(error, (BotoCoreError, ClientError)):
        return None
    answer: Any = error.response["Error"] if isinstance(error, ClientError) else {}
    code, text = answer.get("Code", ""), str(answer.get("Message") or error)
    if code in DENIED and isinstance(error, ClientError):
        action = _ACTION.search(text)
        return AccessDenied(f"AWS denies {action[1] if action else error.operation_name}: {text}")
    if code in EXPIRED:
        return CredentialsExpired(f"the AWS credentials have expired: {text}")
    return CommandFailed(f"AWS has not done it: {error}")


def _not_found(text: str, error: Exception) -> Exception:
    failure = failure_of(error)
    if isinstance(failure, (AccessDenied, CredentialsExpired)):
        return failure
    if isinstance(error, NoRegionError):
        return NoRegion("no AWS region is set")
    if isinstance(error, NoCredentialsError):
        return NoCredentials("there are no AWS credentials")
    return StackNotFound(f"{text}: {error}")


def invoke_function(
    aws: Aws, function: str, event: Mapping[str, Json], waits_s: float = FUNCTION_TIMEOUT_S
) -> JsonObject:
    """Calls a Lambda function by name and returns its answer.

    Calls it once, without retries: after a timeout it still runs, and a second call would overlap it. Raises
    FunctionFailed when the function failed, TimeoutError when it still runs after ``waits_s`` seconds, and Overloaded
    when Lambda did not start it because too many functions run.
    """
    client = aws.client("lambda", read_s=waits_s, tries=1)
    try:
        answer = client.invoke(FunctionName=function, Payload=json.dumps(event).encode())
        body: JsonObject = json.loads(answer["Payload"].read())
    except ReadTimeoutError:
        raise TimeoutError(f"{function} has not ended in {waits_s} s and is still running") from None
    except ClientError as error:
        if error.response["Error"]["Code"] not in THROTTLED:
            raise
        raise Overloaded("Too many functions run at once. Try again.") from None
    if answer.get("FunctionError"):
        raise FunctionFailed(f"{function} failed: {body.get('errorMessage', 'see its log')}")
    return body
