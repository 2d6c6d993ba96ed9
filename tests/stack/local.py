"""The real template, built by SAM and deployed into the emulator once per test session, for every test that asks."""

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from a2a_serverless.stack import places, processes, sam, servers, session
from a2a_serverless.stack.emulator import start_emulator
from a2a_serverless.stack.errors import StackError
from a2a_serverless.stack.places import Places

PATIENCE_SECONDS = 30


@dataclass(frozen=True)
class LocalStack:
    """A deployed stack, with the options that it was deployed with. Webhooks may be anywhere on 127.0.0.1."""

    places: Places
    options: session.Options
    built: sam.Build
    deployment: sam.Deployment

    def client(self, service: str) -> Any:
        return sam.client(service, self.deployment.endpoint)

    def output(self, name: str) -> str:
        return self.deployment.outputs[name]


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    """A stack on free ports. Nothing serves the api's own address unless `api` is asked for too."""
    here = _places(tmp_path_factory)
    options = session.Options(
        emulator_port=0,
        api_port=processes.claim_port("api", 0),
        receiver_port=processes.claim_port("receiver", 0),
        parameters={"WebhookLocalAllow": f"{processes.LOOPBACK}:*"},
    )
    built = sam.build(here, sam.this_machine())
    emulator = start_emulator(here, port=0)
    try:
        deployment = sam.deploy(here, built, emulator.url, session.local_parameters(options))
        yield LocalStack(here, options, built, deployment)
    finally:
        for process in processes.started(here):
            processes.stop(here, process)


@pytest.fixture(scope="session")
def api(stack: LocalStack) -> str:
    """The URL at which uvicorn serves the api against the deployed resources: the deployment's own address."""
    return servers.start_api(stack.places, stack.deployment, port=stack.options.api_port).url


def _places(tmp_path_factory: pytest.TempPathFactory) -> Places:
    try:
        return places.find(state=tmp_path_factory.mktemp("stack"))
    except StackError as error:
        if "CI" in os.environ:
            raise
        pytest.skip(str(error))


def eventually(look: Callable[[], Any]) -> Any:
    """What `look` finds, as soon as it finds something: for what other processes do, which can only be asked for."""
    give_up = time.monotonic() + PATIENCE_SECONDS
    while not (found := look()):
        assert time.monotonic() < give_up, "did not happen in time"
        time.sleep(0.1)
    return found
