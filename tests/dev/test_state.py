"""The file in which ``dev`` keeps what it has: all that is written is there again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from a2a_serverless.domain.queue_messages import WorkMessage
from a2a_serverless_tools.local.state import (
    ITEMS,
    State,
    StateInUse,
    StateKeyRing,
    StateQueues,
    StateStores,
)
from tests.contract.backends import NOW, Now
from tests.releases.story import RING
from tests.world import ME

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Opened = "Callable[[], State]"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "state.db"


def test_a_killed_process_leaves_every_write_of_which_a_call_has_returned(file: Path) -> None:
    now, state = Now(), State(file)
    stores = StateStores(state, now, lambda: None)
