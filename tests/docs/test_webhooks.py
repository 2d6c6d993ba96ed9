"""docs/webhooks.md names what the code has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from a2a_serverless.domain.cursors import (
    DELAYS_S,
    GIVE_UP_MS,
    PERMANENT_FAILURE_TRIES,
    CursorState,
    Verdict,
    Verification,
    classify_outcome,
)
from a2a_serverless.domain.model import TaskKey
from a2a_serverless.domain.notifications import TOKEN_LIFE_S, notification_claims
from a2a_serverless.domain.outcomes import Outcome
from a2a_serverless.domain.push_configs import PushConfig
from a2a_serverless.services.delivery_attempts import CHALLENGE_TYP, JWT_HEADER, NOTIFICATION_TYP, TOKEN_HEADER
from a2a_serverless_tools.cli.app import COMMANDS
from a2a_webhook_receiver.answers import STATUS
from tests.faults.kinds import KINDS

DOCS = Path(__file__).parents[2] / "docs"


def text(page: str) -> str:
    """The text of a page, without its line breaks."""
    return " ".join((DOCS / page).read_text().split())


TEXT = text("webhooks.md")
CHINESE = text("zh/webhooks.md")
CONFIG = PushConfig("c", "https://hooks.example.com", "1.0", "i", 1)
CLAIMS = notification_claims(
    TaskKey("t", "o", "k"), CONFIG, 1, b"{}", issuer="https://api.example.com", now=1000, jti="j"
)

SAID = {
    Verdict.DELIVERED: "continues",
    Verdict.RETRY: "tries again, twelve times in all",
    Verdict.PERMANENT: "gives up after the fifth failure in a row",
}


@pytest.mark.parametrize("name", [*CLAIMS, *CursorState, *Verification])
def test_every_claim_and_state_is_explained(name: str) -> None:
    assert f"`{name}`" in TEXT
    assert f"`{name}`" in CHINESE


@pytest.mark.parametrize("name", [JWT_HEADER, TOKEN_HEADER, NOTIFICATION_TYP, CHALLENGE_TYP])
def test_every_header_and_type_is_named(name: str) -> None:
    assert name in TEXT
    assert name in CHINESE


@pytest.mark.parametrize("name", [name for name in COMMANDS["In your account"] if name.startswith(("push", "keys"))])
def test_every_command_for_operators_is_on_both_pages_of_webhooks(name: str) -> None:
    assert f"a2a-serverless {name}" in TEXT
    assert f"a2a-serverless {name}" in CHINESE


def test_the_numbers_are_those_of_the_code() -> None:
    hours = [delay // 3600 for delay in DELAYS_S if delay >= 3600]
    assert "5 s, 30 s, 2 min, 10 min, 30 min, " + ", ".join(map(str, hours[:-1])) + f" and {hours[-1]} hours" in TEXT
    assert DELAYS_S[1:6] == (5, 30, 120, 600, 1800)
    assert f"after {GIVE_UP_MS // 3_600_000} hours without a success" in TEXT
    attempts = f"{sum(DELAYS_S) / 3600:.1f} hours or more"
    assert f"{len(DELAYS_S)} attempts in {attempts}" in TEXT
    assert f"twelve attempts in {attempts}" in text("guarantees.md")
    assert text("operate.md").count("after twelve" if len(DELAYS_S) == 12 else "another number") == 1
    for page in ("mobile.md", "serverless-client.md"):
        assert f"({len(DELAYS_S)} attempts, two days)" in text(page)
    assert TOKEN_LIFE_S == 300
    assert f"under {len(KINDS)} kinds of fault" in TEXT
    assert f"{'、'.join(map(str, hours[:-1]))} 和 {hours[-1]} 小时" in CHINESE
    assert f"{len(DELAYS_S)} 次尝试" in CHINESE
    assert f"{sum(DELAYS_S) / 3600:.1f} 小时" in CHINESE
    assert f"{GIVE_UP_MS // 3_600_000} 小时没有一次成功" in CHINESE


def test_the_receiver_s_readme_says_of_each_status_what_the_sender_does() -> None:
    table = (DOCS.parent / "webhook_receiver/README.md").read_text().partition("## Answers")[2].partition("\n\n```")[0]
    rows = re.findall(r"^\| ([0-9, ]+) \|.*\| ([^|]+) \|$", table, re.MULTILINE)
    told = {int(status): what for statuses, what in rows for status in statuses.split(", ")}
    verdicts = {status: classify_outcome(Outcome(status=status)) for status in told}
    assert set(told) == {200, 500, *STATUS.values()}
    assert told == {status: SAID[verdict] for status, verdict in verdicts.items()}
    assert PERMANENT_FAILURE_TRIES == 5
    assert len(DELAYS_S) == 12
    assert sum(DELAYS_S[:PERMANENT_FAILURE_TRIES]) // 60 == 12
