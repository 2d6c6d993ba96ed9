"""Which tables `restore` takes: copies, made by DynamoDB, of the stack's own table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from botocore.stub import Stubber

from a2a_serverless_tools.operators.deployed import NoCopy
from a2a_serverless_tools.operators.restoration import check_copy
from a2a_serverless_tools.stack.guarded_emulator import with_sources
from tests.adapters.clouds import cloud
from tests.contract.schema import table_schema

if TYPE_CHECKING:
    from collections.abc import Iterator

ARN = "arn:aws:dynamodb:us-east-1:123456789012:table/"


@pytest.fixture
def database() -> Iterator[Any]:
    with cloud("dynamodb") as client:
        for name in ("Tasks", "Others"):
            client.create_table(TableName=name, **table_schema("Table"))
        yield client


def restore(database: Any, source: str, target: str) -> None:
    database.restore_table_to_point_in_time(
        SourceTableName=source, TargetTableName=target, UseLatestRestorableTime=True
    )


def test_a_copy_of_the_stack_s_own_table_is_taken(database: Any) -> None:
    restore(database, "Tasks", "Tasks-restored")
    check_copy(database, "Tasks-restored", "Tasks")


def test_a_copy_of_an_older_backup_is_taken(database: Any) -> None:
    backup = database.create_backup(TableName="Tasks", BackupName="old")["BackupDetails"]["BackupArn"]
    database.restore_table_from_backup(TargetTableName="Tasks-restored", BackupArn=backup)
    check_copy(database, "Tasks-restored", "Tasks")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("Tasks", "Tasks is the stack's own table"),
        ("Others", "DynamoDB did not restore Others from a backup of Tasks"),
        ("Others-restored", "Others-restored is a copy of Others, and not of Tasks"),
        ("Missing", "there is no table Missing"),
    ],
)
def test_restoring_from_a_table_that_is_no_copy_is_refused(database: Any, name: str, says: str) -> None:
    restore(database, "Others", "Others-restored")
    with pytest.raises(NoCopy, match=f"^{says}$"):
        check_copy(database, name, "Tasks")


@pytest.mark.parametrize("source", [ARN.replace("us-east-1", "eu-west-1"), ARN.replace("1234", "4321")])
def test_a_copy_from_another_region_or_account_is_refused(database: Any, source: str) -> None:
    with pytest.raises(NoCopy, match=f"is a copy of {source}Tasks, and not of Tasks"):
        check_copy(described(database, source, "ACTIVE"), "Tasks-restored", "Tasks")


def test_a_copy_that_is_not_complete_is_refused(database: Any) -> None:
    with pytest.raises(NoCopy, match="DynamoDB is still restoring Tasks-restored"):
        check_copy(described(database, ARN, "CREATING"), "Tasks-restored", "Tasks")


def described(database: Any, source: str, status: str) -> Any:
    """A client that describes a table that is restored from the table ``Tasks`` at ``source``."""
    stub = Stubber(database)
    summary = {"SourceTableArn": f"{source}Tasks", "RestoreDateTime": 0, "RestoreInProgress": status != "ACTIVE"}
    table = {"TableArn": f"{ARN}Tasks-restored", "TableStatus": status, "RestoreSummary": summary}
    stub.add_response("describe_table", {"Table": table})
    stub.activate()
    return database


def test_the_emulator_names_the_source_of_a_copy_as_dynamodb_does() -> None:
    tables = {"Tasks": {"TableArn": f"{ARN}Tasks"}}
    restore, describe = with_sources(
        lambda request: (200 if "SourceTableName" in request else 400, {}, b""), lambda _: {}, tables
    )
    restore({"TargetTableName": "Refused"})
    restore({"SourceTableName": "Tasks", "TargetTableName": "Copy"})
    assert describe("Refused") == describe("Tasks") == {}
    assert describe("Copy")["RestoreSummary"]["SourceTableArn"] == f"{ARN}Tasks"
