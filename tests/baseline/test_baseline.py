"""A deployment answers as the one whose answers were recorded. ``make baseline`` records anew: read the difference.

The corpus says what clients and webhooks of every kind have seen. Whoever changes it on purpose lists the difference.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.baseline.scenarios import NAMES, play
from tests.baseline.talk import Hook, listening

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.stack.local import LocalStack

pytestmark = [pytest.mark.enable_socket, pytest.mark.integration]

CORPUS = Path(__file__).parent / "corpus"


@pytest.fixture(scope="module")
def hook() -> Iterator[Hook]:
    with listening() as hook:
        yield hook


@pytest.mark.parametrize("name", NAMES)
def test_what_a_client_sees_is_what_was_recorded(stack: LocalStack, hook: Hook, name: str) -> None:
    records = play(name, stack.running.api.url, hook)
    recorded = json.loads((CORPUS / f"{name.replace(' ', '.')}.json").read_text())
    for now, then in zip(records, recorded, strict=True):
        assert now == then


def test_every_recording_has_its_scenario() -> None:
    assert sorted(path.stem for path in CORPUS.iterdir()) == sorted(name.replace(" ", ".") for name in NAMES)
