"""Builds what operators' commands need of a deployed stack, with the caller's AWS credentials."""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_serverless.adapters.aws import Aws, emulated
from a2a_serverless.adapters.clock import UuidIds
from a2a_serverless.adapters.s3 import S3BlobStore
from a2a_serverless.adapters.sqs import SqsQueues
from a2a_serverless.aws.resources import table_named, task_log, task_table
from a2a_serverless.settings import Settings
from a2a_serverless.store.api_keys import ApiKeyStore
from a2a_serverless.store.payloads import PayloadStore
from a2a_serverless.store.push_store import PushStore
from a2a_serverless.store.stores import BreakerStore, PauseStore
from a2a_serverless.store.task_log import TaskLog
from a2a_serverless.testing.rehearsal import read_unfinished
from a2a_serverless_tools.operators.deliveries import DeliveryAdmin, Operations, redrive_host
from a2a_serverless_tools.operators.deployed_stack import DeployedStack
from a2a_serverless_tools.operators.erasure import ErasureService
from a2a_serverless_tools.operators.erasure_store import ErasureStore
from a2a_serverless_tools.operators.queues import read_depths
from a2a_serverless_tools.operators.restoration import Restoration, check_copy, copy_missing
from a2a_serverless_tools.operators.schedules import ScheduleAdmin
from a2a_serverless_tools.operators.task_logs import read_errors, read_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from a2a_serverless.testing.rehearsal import StoredTask
    from a2a_serverless_tools.operators.deployed import StackName


LOG_DAYS = 30
"""So old are the oldest lines that are looked for; ``LogRetentionDays`` may keep fewer."""


def aws_of(stack: StackName) -> Aws:
    """The AWS clients for a deployed stack, which may be in the emulator."""
    return emulated(stack.emulator) if stack.emulator else Aws()


def make_api_keys(stack: StackName) -> ApiKeyStore:
    """The API keys of a deployed stack."""
    aws = aws_of(stack)
    return ApiKeyStore(table_named(DeployedStack(aws, stack.name).output("AccessTableName"), aws))


def alarm_states(stack: StackName) -> Mapping[str, str]:
    """The state of each alarm of a deployed stack, by alarm name: OK, ALARM or INSUFFICIENT_DATA."""
    return DeployedStack(aws_of(stack), stack.name).alarms()


def worker_environment(stack: StackName) -> Mapping[str, str]:
    """The variables of the worker function of a deployed stack."""
    return DeployedStack(aws_of(stack), stack.name).variables("WorkerFunctionName")


def worker_service(stack: StackName) -> str:
    """The AWS service that runs the tasks of a deployed stack."""
    return DeployedStack(aws_of(stack), stack.name).output("WorkerService")


def unfinished_tasks(stack: StackName) -> Iterator[StoredTask]:
    """Copies of the tasks of a deployed stack that wait or run. It only reads."""
    aws = aws_of(stack)
    deployed = DeployedStack(aws, stack.name)
    table = table_named(deployed.output("TableName"), aws)
    blobs = S3BlobStore(lambda: aws.s3, deployed.output("BlobsBucket"))
    return read_unfinished(TaskLog(table, PayloadStore(blobs)), table, blobs.get)


def task_log_lines(stack: StackName) -> Callable[[str], list[str]]:
    """Returns what reads the log lines of a task of a deployed stack, of the days for which a task is kept at most."""
    aws = aws_of(stack)
    groups = DeployedStack(aws, stack.name).output("LogGroups").split()
    return lambda task: read_lines(aws.client("logs"), groups, task, LOG_DAYS)


def error_lines(stack: StackName) -> Callable[[int], list[tuple[str, str]]]:
    """Returns what reads the log lines of the last seconds that may be errors, each with its function's name."""
    aws = aws_of(stack)
    groups = DeployedStack(aws, stack.name).output("LogGroups").split()
    return lambda seconds: read_errors(aws.client("logs"), groups, seconds)


def make_schedules(stack: StackName) -> ScheduleAdmin:
    """The schedules of a deployed stack."""
    aws = aws_of(stack)
    deployed = DeployedStack(aws, stack.name)
    return ScheduleAdmin(aws.client, stack.name, deployed.clock(), deployed.output("WorkQueueUrl"))


def redrive_receiver(stack: StackName, host: str) -> int:
    """Redrives what waits for a host that is known to answer; returns how many webhooks that are."""
    admin, aws = make_operations(stack).admin, aws_of(stack)
    table = table_named(DeployedStack(aws, stack.name).output("TableName"), aws)
    return redrive_host(admin, BreakerStore(table), host)


def make_operations(stack: StackName) -> Operations:
    """An operator's operations on a deployed stack."""
    aws = aws_of(stack)
    deployed = DeployedStack(aws, stack.name)
    outputs = {"TABLE_NAME": "TableName", "BLOBS_BUCKET": "BlobsBucket"}
    settings = Settings(values={name: deployed.output(output) for name, output in outputs.items()})
    table, clock = task_table(settings, aws), deployed.clock()
    log, store = task_log(table, settings, aws), PushStore(table)
    access_table = deployed.output("AccessTableName")

    def restoration(name: str) -> Restoration:
        check_copy(aws.dynamodb, name, settings.need("TABLE_NAME"))
        source = table_named(name, aws)
        return Restoration(source, task_log(source, settings, aws), table, clock)

    def restore_access(name: str) -> int:
        check_copy(aws.dynamodb, name, access_table)
        return copy_missing(table_named(name, aws).scan(), table_named(access_table, aws))

    erasure = ErasureService(
        log=log,
        store=store,
        erasure_store=ErasureStore(table),
        blobs=S3BlobStore(lambda: aws.s3, settings.need("BLOBS_BUCKET")),
        api_keys=ApiKeyStore(table_named(access_table, aws)),
        clock=clock,
        ids=UuidIds(),
    )
    return Operations(
        DeliveryAdmin(log, store, SqsQueues(aws.sqs, "", deployed.output("DeliveryQueueUrl")), clock),
        lambda command: deployed.invoke(deployed.output("RotatorFunctionName"), command),
        erasure,
        PauseStore(table),
        lambda: read_depths(aws.sqs, deployed.output),
        restoration,
        restore_access,
    )
