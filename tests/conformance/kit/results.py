"""What the kits reported, as the tables of docs/conformance.md: every test that did not pass, where, and why."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

Outcome = Literal["passed", "failed", "skipped", "expected failure"]
ORDER: dict[Outcome, int] = {"failed": 0, "expected failure": 1, "skipped": 2, "passed": 3}

# What explains a failure: a part of the test's name or of what the kit says, and the reason.
DEFECTS = (
    ("CORE-SEND-003", "kit defect: asserts success where the requirement of that name asks for the error"),
    ("returns_415", "the kit is of 1.0.0; 1.0.1 (section 5.4) says 400"),
    (
        "32003_enhanced",
        "kit defect, not run by its own runner: it looks for the card's capabilities beside the answer's `result`",
    ),
    (
        "test_invalid_method_error_validation",
        "kit defect, not run by its own runner: it sends a whole request as `method`",
    ),
    ("test_public_agent_card_access_control", "kit defect, not run by its own runner: GET on the JSON-RPC address"),
    (
        "test_sensitive_information_protection",
        "not run by the kit's own runner: the local card has 127.0.0.1 and the word test, which it forbids",
    ),
    ("test_agent_card_access_equivalence", "not run by the kit's own runner: it asks for the extended card"),
    ("has no attribute 'send_ra", "a test of JSON-RPC; the kit's own runner leaves it out for REST"),
    (
        "test_tasks_list_with_existing_tasks",
        "kit defect, not run by its own runner: it gives a text to a function that needs a message",
    ),
    (
        "STREAM-SUB-003",
        (
            "the kit counts an event with an error as success; Go and Java clients would take the answer that it "
            "expects for an empty stream"
        ),
    ),
    ("ResponseNotRead", "kit defect: its client reads a closed response when a stream is refused"),
)
# What explains a skip, in the same way.
SKIPS = (
    ("grpc", "we have no gRPC binding: API Gateway's REST APIs do not support it"),
    ("No requirements at this level", "the entry of pytest for a test whose list of parameters is empty"),
    ("push_notification_not_supported_error_32003", "the agent has webhooks; the refusal is shown in B, for 1.0"),
    ("REST client implementation required", "not written yet, according to the kit"),
    ("Could not trigger", "the kit has no request that brings the error about"),
    ("InvalidAgentResponseError", "as the kit says, no client can bring it about"),
    ("_32006_", "as the kit says, no client can bring it about"),
    ("32004_enhanced", "the kit has no request that brings the error about"),
    ("supportsAuthenticatedExtendedCard", "no extended card is declared"),
    ("in_task_auth", "the kit for 0.3 does not say which message should ask for a sign-in"),
    ("test_auth_state_transitions", "the kit for 0.3 does not say which message should ask for a sign-in"),
    ("relaxed for testing environments", "the stack under test speaks http on this machine; TLS is the platform's"),
    (
        "test_consistent_behavior_tasks_cancel",
        "kit defect: it cancels one task once for each binding and wants two successes",
    ),
    ("test_equivalent_authentication_agent_card", "no extended card is declared"),
    ("test_same_error_handling_method_not_found", "switched off by the kit itself"),
    (
        "test_streaming_response_equivalence",
        "kit defect: it takes the stream object for the answer and reads nothing from it",
    ),
    ("['agent-card']", "no extended card is declared"),
    ("authenticated extended card", "no extended card is declared"),
    ("required-extension", "only run C requires an extension, because all other tests send no extension header"),
    ("HTTPS", "the stack under test speaks http on this machine; TLS is the platform's"),
    (
        "test_https_url_in_agent_card",
        "the stack under test speaks http on this machine, and the kit itself marks this as expected",
    ),
    ("security schemes declared", "the test deployment lets everybody in, because the kit sends no credentials"),
    ("authentication schemes declared", "the test deployment lets everybody in, because the kit sends no credentials"),
    ("authentication section", "a member of cards before 0.3"),
    ("flaky", "switched off by the kit itself"),
    ("Failed to create reference task", "kit defect: its message has no messageId"),
    ("test_subscribe_rejects_terminal_task", "the agent of this run does not stream"),
    ("tasks/list not supported on JSON-RPC", "A2A 0.3 has no `tasks/list` over JSON-RPC"),
    ("REST transport", "runs in the REST run"),
    ("JSON-RPC transport", "runs in the JSON-RPC run"),
)


@dataclass(frozen=True)
class Case:
    """One test in one run."""

    run: str
    test: str
    outcome: Outcome
    text: str = ""

    @property
    def place(self) -> str:
        """The test without its parameters' object addresses: the same in every run."""
        return re.sub(r" object at 0x[0-9a-f]+", "", self.test)


def read(run: str, report: Path) -> list[Case]:
    """The cases of a JUnit report, as pytest writes it."""
    cases = ET.parse(report).getroot().iter("testcase")  # noqa: S314 - written by the run before
    return [_case(run, case) for case in cases]


def day(report: Path) -> str:
    """The day of a JUnit report."""
    suite = ET.parse(report).getroot().find("testsuite")  # noqa: S314 - as above
    return "" if suite is None else suite.get("timestamp", "")[:10]


def _case(run: str, case: ET.Element) -> Case:
    test = f"{case.get('classname', '').removeprefix('tests.')}.{case.get('name')}"
    for tag in ("failure", "error", "skipped"):
        if (element := case.find(tag)) is not None:
            text = " ".join((element.get("message") or "").split())
            return Case(run, test, _outcome(tag, element), text)
    return Case(run, test, "passed")


def _outcome(tag: str, element: ET.Element) -> Outcome:
    if tag != "skipped":
        return "failed"
    return "expected failure" if element.get("type") == "pytest.xfail" else "skipped"


def counts(cases: Iterable[Case]) -> dict[Outcome, int]:
    """How many cases came to each end."""
    totals: dict[Outcome, int] = dict.fromkeys(ORDER, 0)
    for case in cases:
        totals[case.outcome] += 1
    return totals


def reason(case: Case, passes: Mapping[str, set[str]]) -> str:
    """Why a case did not pass. Empty when nobody has written it down."""
    for part, why in DEFECTS if case.outcome == "failed" else SKIPS:
        if part.lower() in f"{case.test} {case.text}".lower():
            return why
    elsewhere = sorted(passes[case.place] - {case.run}) if case.outcome == "skipped" else []
    return f"passes in {', '.join(elsewhere)}" if elsewhere else ""


def passing(cases: Iterable[Case]) -> dict[str, set[str]]:
    """By test, the runs in which it passes."""
    runs: dict[str, set[str]] = defaultdict(set)
    for case in cases:
        if case.outcome == "passed":
            runs[case.place].add(case.run)
    return runs


def unexplained(cases: list[Case]) -> list[Case]:
    """What did not pass for a reason that is not written down."""
    passes = passing(cases)
    return [case for case in cases if case.outcome != "passed" and not reason(case, passes)]


def table(cases: list[Case]) -> Iterator[str]:
    """Lines of Markdown: a row for each reason why tests did not pass. A failed test is named, others are counted."""
    passes = passing(cases)
    explained = [(case, reason(case, passes) or f"**{_cut(case.text)}**") for case in cases]
    yield from rows((case, why) for case, why in explained if case.outcome != "passed")


def rows(explained: Iterable[tuple[Case, str]]) -> Iterator[str]:
    """Lines of Markdown: outcome, tests, the runs, and the reason."""
    groups: dict[tuple[int, Outcome, str], list[Case]] = defaultdict(list)
    for case, why in explained:
        groups[ORDER[case.outcome], case.outcome, why].append(case)
    yield "| outcome | names or number of the tests | run | why |"
    yield "|---|---|---|---|"
    for (_, outcome, why), those in sorted(groups.items()):
        tests = sorted({case.place for case in those})
        names = ", ".join(f"`{test.split('.')[-1]}`" for test in tests) if outcome == "failed" else str(len(tests))
        yield f"| {outcome} | {names} | {', '.join(sorted({case.run for case in those}))} | {why} |"


def figures(cases: list[Case]) -> Iterator[str]:
    """Lines of Markdown: a row for each run."""
    yield f"| run | {' | '.join(ORDER)} |"
    yield "|---|" + "---:|" * len(ORDER)
    for run in dict.fromkeys(case.run for case in cases):
        totals = counts(case for case in cases if case.run == run)
        yield f"| {run} | {' | '.join(str(totals[outcome]) for outcome in ORDER)} |"


def _cut(text: str) -> str:
    return text.replace("|", "/")[:160]
