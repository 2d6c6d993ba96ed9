"""Times that depend on each other hold what ``docs/internals.md`` says of them."""

import pytest

from a2a_serverless.domain.decisions import RUN_LEASE_MS, RUN_RENEWAL_MS
from a2a_serverless.domain.model import DAY_MS
from a2a_webhook_receiver.replay import REMEMBER
from tests.docs.documents import ROOT
from tests.docs.times import TIMES, Time


@pytest.mark.parametrize("time", TIMES, ids=lambda time: time.place)
def test_a_time_holds_its_relations_to_others(time: Time) -> None:
    assert time.relations
    assert [said for said, holds in time.relations.items() if not holds] == []


def test_the_receiver_in_javascript_remembers_notifications_for_as_long_as_the_one_in_python() -> None:
    memory = (ROOT / "webhook_receiver/javascript/memory.js").read_text()
    assert f"const REMEMBER = {REMEMBER // DAY_MS} * 86_400_000;" in memory


def test_the_lease_of_a_run_is_the_one_that_the_documents_name() -> None:
    lease, renewal = (f"{time // 1000} s" for time in (RUN_LEASE_MS, RUN_RENEWAL_MS))
    assert f"by a lease ({lease}, renewed every {renewal})" in (ROOT / "ARCHITECTURE.md").read_text()
    assert f"a lease of {lease}; a slow run" in (ROOT / "docs/guarantees.md").read_text()
