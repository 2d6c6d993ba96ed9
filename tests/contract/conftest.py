"""Every test of the contract runs over every store. What cannot run on this machine is skipped, with its reason."""

from __future__ import annotations

import os
import time
from itertools import count
from typing import TYPE_CHECKING, cast

import pytest
from moto import mock_aws

from a2a_serverless_tools.stack.emulator import start_emulator
from a2a_serverless_tools.stack.errors import StackError
from a2a_serverless_tools.stack.paths import CHECKOUT, Paths
from a2a_serverless_tools.stack.processes import stop
from tests.contract.backends import EverythingTwice, OneAtATime, Store, client_at, dynamo, memory
from tests.contract.dynoxide import NotInstalled, dynoxide

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mypy_boto3_dynamodb import DynamoDBClient

_tables = (f"table-{number}" for number in count())
# Each is a program, so its tests are one group, which starts it once. A variable may name one more.
REAL = ("emulator_client", "dynoxide_client", *(["fakecloud_client"] if "FAKECLOUD" in os.environ else []))


@pytest.fixture(scope="session")
def dynoxide_client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DynamoDBClient]:
    """A client of dynoxide."""
    try:
        with dynoxide(tmp_path_factory.mktemp("dynoxide")) as url, client_at(url) as client:
            yield client
    except NotInstalled as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="session")
def emulator_client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DynamoDBClient]:
    """A client of the emulator that the laptop's stack runs in."""
    paths = Paths(CHECKOUT, tmp_path_factory.mktemp("emulator"))
    if not paths.emulator.exists():
        pytest.skip(f"{paths.relative(paths.emulator)} is not installed (make setup)")
    try:
        process = start_emulator(paths, port=0)
    except StackError as error:
        pytest.skip(f"the emulator does not start: {error}")
    try:
        with client_at(process.url) as client:
            yield client
    finally:
        stop(paths, process)


@pytest.fixture(scope="session")
def fakecloud_client() -> Iterator[DynamoDBClient]:
    """A client of fakecloud."""
    from tests.roles.fakecloud import running

    with running() as url, client_at(url) as client:
        yield client


@pytest.fixture(scope="module")
def moto_client() -> Iterator[DynamoDBClient]:
    """A client of moto, which keeps everything in this process."""
    with mock_aws(), client_at(None) as client:
        yield cast("DynamoDBClient", OneAtATime(client))


@pytest.fixture
def hasty_client(moto_client: DynamoDBClient) -> DynamoDBClient:
    """A client of moto that sends everything twice, as one does whose connections break."""
    return cast("DynamoDBClient", EverythingTwice(moto_client))


@pytest.fixture(
    params=[
        "memory",
        "hasty_client",
        *(
            pytest.param(
                name, marks=[pytest.mark.enable_socket, pytest.mark.integration, pytest.mark.xdist_group(name)]
            )
            for name in REAL
        ),
    ]
)
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    """An empty store."""
    if request.param == "memory":
        yield memory()
        return
    sleep = time.sleep if request.node.get_closest_marker("enable_socket") else lambda _: None
    with dynamo(request.getfixturevalue(request.param), next(_tables), sleep) as made:
        yield made
