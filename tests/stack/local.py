"""The real template, built by SAM and deployed into the emulator once per test session, with the servers beside it."""

import io
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from rich.console import Console

from a2a_serverless_tools.stack import local_stack, paths, processes, sam
from a2a_serverless_tools.stack.errors import StackError
from a2a_serverless_tools.stack.paths import Paths
from tests.manifests import manifest_of_samples

TIMEOUT_SECONDS = 120


@dataclass(frozen=True)
class LocalStack:
    """A running stack, the options that it was started with, and what `up` said meanwhile."""

    paths: Paths
    options: local_stack.Options
    running: local_stack.RunningStack
    said: str

    @property
    def deployment(self) -> sam.Deployment:
        return self.running.deployment

    def client(self, service: str) -> Any:
        return sam.client(service, self.deployment.endpoint)

    def output(self, name: str) -> str:
        return self.deployment.outputs[name]


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    """The one stack of a test session."""
    with running_stack(paths_for(tmp_path_factory)) as made:
        yield made


@contextmanager
def running_stack(here: Paths, **switches: str) -> Iterator[LocalStack]:
    """What `make up` starts, on free ports, with the agents for tests. Webhooks may be anywhere on 127.0.0.1."""
    said = io.StringIO()
    options = local_stack.Options(
        emulator_port=processes.claim_port("emulator", 0),
        api_port=processes.claim_port("api", 0),
        receiver_port=processes.claim_port("receiver", 0),
        switches={"AGENTS_FILE": str(manifest_of_samples()), "CONSOLE": "off", **switches},
    )
    console = Console(file=said, width=200)
    try:
        running = local_stack.up(here, options, console)
        yield LocalStack(here, options, running, said.getvalue())
    finally:
        local_stack.down(here, console)


def paths_for(tmp_path_factory: pytest.TempPathFactory) -> Paths:
    try:
        return paths.find(state=tmp_path_factory.mktemp("stack"))
    except StackError as error:
        if "CI" in os.environ:
            raise
        pytest.skip(str(error))


def eventually(look: Callable[[], Any]) -> Any:
    """What `look` finds, as soon as it finds something: for what other processes do, which can only be asked for."""
    give_up = time.monotonic() + TIMEOUT_SECONDS
    while not (found := look()):
        assert time.monotonic() < give_up, "did not happen in time"
        time.sleep(0.1)
    return found
