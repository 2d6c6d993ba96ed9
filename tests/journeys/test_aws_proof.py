"""``make prove KIND=aws`` against the emulator: the same program, the same commands of SAM, the same steps."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from a2a_serverless_tools.stack.paths import CHECKOUT
from tests.docs.evidence import claims
from tests.stack.local import paths_for

pytestmark = [pytest.mark.enable_socket, pytest.mark.integration, pytest.mark.xdist_group("test_aws_proof")]

# Nothing streams in the emulator, and nobody waits here for the three minutes after which a new key may sign.
NOT_THERE = {"check: rotation"}


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the program writes."""
    paths_for(tmp_path_factory)
    out = tmp_path_factory.mktemp("proof") / "evidence.json"
    done = prove("--emulator", "--out", str(out))
    assert done.returncode == 0, done.stderr[-6000:]
    return dict(json.loads(out.read_text()))


def prove(*words: str) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, str(CHECKOUT / "bench/aws_proof.py"), *words]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    environment |= {"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": os.devnull}
    environment |= {"AWS_SHARED_CREDENTIALS_FILE": os.devnull}
    return subprocess.run(program, capture_output=True, text=True, check=False, env=environment)  # noqa: S603


def test_every_step_passes_except_those_that_an_emulator_cannot_show(evidence: dict[str, Any]) -> None:
    verdicts = {name: step["verdict"] for name, step in evidence["steps"].items()}
    assert {name for name, verdict in verdicts.items() if verdict != "PASS"} == NOT_THERE
    assert set(verdicts) == {step for claim in claims() for step in claim.aws}


def test_the_upgrade_met_both_releases_and_killed_and_lost_tasks_went_on(evidence: dict[str, Any]) -> None:
    steps = evidence["steps"]
    assert steps["upgrade"]["steps_on_the_old_release"] >= 10
    assert steps["upgrade"]["steps_on_the_new_release"] >= 5
    assert steps["killed worker"]["recovered_after_s"] > 0
    assert (steps["restore"]["tasks"], steps["restore"]["callers"]) == (2, 1)
    assert steps["delete"]["kept_and_then_removed"] == 10


def test_the_evidence_has_numbers_and_no_name_or_id_of_an_account(evidence: dict[str, Any]) -> None:
    assert set(evidence) == {"date", "where", "commit", "steps"}
    for step in evidence["steps"].values():
        assert step.pop("verdict") in {"PASS", "FAIL", "SKIP"}
        assert all(isinstance(value, int | float) for value in step.values())


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "REGION=... names the region"),
        (("--emulator",), "no evidence about AWS"),
        (("--region", "eu-west-1"), "no AWS credentials"),
    ],
)
def test_without_a_region_or_an_account_it_says_what_it_needs(words: tuple[str, ...], says: str) -> None:
    done = prove(*words)
    assert done.returncode != 0
    assert says in done.stderr
