"""The client, calls and mirrors against each peer of ``python -m tests.peers``, over real HTTP, in a form by turns.

`test_deaths.py` has every form.
"""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from a2a_serverless.client import discover, open_request
from a2a_serverless.domain.remotes import SecretHeaders
from tests.peers.behaviours import BEHAVIOURS, BY_NAME, ECHO, Behaviour
from tests.peers.callers import Caller, word
from tests.peers.forms import FORMS
from tests.peers.playing import address, both, by_turns, check_client, is_end, played

if TYPE_CHECKING:
    from tests.peers.forms import Form

pytestmark = pytest.mark.enable_socket


@by_turns
def test_the_clients_request_ends_as_the_table_says(server: str, behaviour: Behaviour, form: Form) -> None:
    check_client(address(server, behaviour, form), behaviour)


@by_turns
@both
def test_a_task_ends_as_the_table_says(server: str, behaviour: Behaviour, form: Form, kind: str) -> None:
    task = played(address(server, behaviour, form), behaviour, kind)
    assert is_end(task, behaviour, behaviour.ends), task


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_a_secret_that_a_peer_repeats_is_not_in_the_mirrors_task(server: str, form: Form) -> None:
    auth = SecretHeaders({ECHO: "peer"})
    url = address(server, BY_NAME["repeats-headers"], form)
    card = discover(url, open_request).document
    task = Caller(open_request, card, "mirror", url=url, auth=auth, read_secret=lambda _: "sk-very-secret").starts()
    assert "sk-very-secret" not in str(task)
    assert word(task) == "You sent ***"


def test_the_help_of_the_server_says_what_each_peer_does() -> None:
    command = [sys.executable, "-m", "tests.peers", "--help"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()  # noqa: S603 - ours
    assert {f"{one.name} {one.does}" for one in BEHAVIOURS} <= {" ".join(line.split()) for line in shown}
