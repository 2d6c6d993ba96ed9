"""A deployment answers as the one whose answers were recorded. ``make transcripts`` records anew: read the difference.

The folder ``deployed`` says what clients and webhooks of every kind have seen.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.transcripts.record import DEPLOYED, path_of_scenario
from tests.transcripts.scenarios import NAMES, play
from tests.transcripts.talk import Hook, listening

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.stack.local import LocalStack

pytestmark = [pytest.mark.enable_socket, pytest.mark.integration]


@pytest.fixture(scope="module")
def hook() -> Iterator[Hook]:
    with listening() as hook:
        yield hook


@pytest.mark.parametrize("name", NAMES)
def test_the_deployed_stack_gives_clients_the_recorded_answers(stack: LocalStack, hook: Hook, name: str) -> None:
    records = play(name, stack.running.api.url, hook)
    recorded = json.loads(path_of_scenario(name).read_text())
    for now, then in zip(records, recorded, strict=True):
        assert now == then


def test_every_recording_has_its_scenario() -> None:
    assert {*DEPLOYED.iterdir()} == {path_of_scenario(name) for name in NAMES}
