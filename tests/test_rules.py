"""The rules of ``ARCHITECTURE.md`` that never bend, and the tests that enforce them.

A test that enforces a rule has its number in its name: ``test_rule_06_...``. These tests fail for a rule without a
test, and for a test of a rule that does not exist. They also check the rules that are visible in the source.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Final

import grimp
import pytest

TESTS: Final = Path(__file__).parent
PACKAGE: Final = TESTS.parent / "shared" / "a2a_serverless"


def rules_of_the_architecture() -> dict[int, str]:
    """Returns the names of the rules in ``ARCHITECTURE.md`` by number."""
    chapters = (TESTS.parent / "ARCHITECTURE.md").read_text().split("\n## ")
    (chapter,) = [text for text in chapters if text.startswith("Rules\n")]
    return {int(number): name for number, name in re.findall(r"^(\d+)\. \*\*(.+?)\.?\*\*", chapter, re.MULTILINE)}


RULES: Final = rules_of_the_architecture()


def named_after_rules() -> dict[int, list[str]]:
    """Returns the tests that are named after a rule, by its number."""
    found = defaultdict(list)
    for path in sorted(TESTS.rglob("test_*.py")):
        for name, number in re.findall(r"^(?:def |)(test_rule_(\d\d)_\w+)", path.read_text(), re.MULTILINE):
            found[int(number)].append(f"{path.relative_to(TESTS)}::{name}")
    return dict(found)


def test_the_architecture_has_twelve_rules_and_the_first_is_about_writing() -> None:
    assert (sorted(RULES), RULES[1]) == (list(range(1, 13)), "Tasks change by appending")


@pytest.mark.parametrize("number", RULES)
def test_every_rule_has_tests_that_are_named_after_it(number: int) -> None:
    assert named_after_rules().get(number), f"rule {number} ({RULES[number]}) has no test_rule_{number:02}_..."


def test_no_test_is_named_after_a_rule_that_does_not_exist() -> None:
    assert {number: names for number, names in named_after_rules().items() if number not in RULES} == {}


# ---- Rules that are visible in the source


@cache
def modules(folder: str = "") -> list[tuple[str, ast.Module]]:
    """Returns the modules below a folder of the runtime, with their paths in it; by default also all other packages."""
    roots = [PACKAGE] if folder else [PACKAGE, *PACKAGE.parent.glob(f"{PACKAGE.name}_*")]
    paths = [path for root in roots for path in sorted((root / folder).rglob("*.py"))]
    return [(_place(path), ast.parse(path.read_text())) for path in paths]


def _place(path: Path) -> str:
    root = PACKAGE if path.is_relative_to(PACKAGE) else PACKAGE.parent
    return path.relative_to(root).as_posix()


def imports(tree: ast.Module) -> set[str]:
    """Returns all modules that a module imports, at any place."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


def importers(names: set[str]) -> set[str]:
    return {path for path, tree in modules() if imports(tree) & names}


PURE: Final = {
    "__future__",
    "base64",
    "collections",
    "collections.abc",
    "copy",
    "dataclasses",
    "enum",
    "functools",
    "hashlib",
    "hmac",
    "http",  # the names of status codes
    "ipaddress",
    "itertools",
    "json",
    "math",
    "re",
    "typing",
    "unicodedata",
    "urllib.parse",
}
NEEDED: Final = {
    ("domain/access.py", "pydantic"),  # reads the claims of a service token
    ("domain/digests.py", "pydantic"),  # tells models from other values
    ("domain/json_forms.py", "pydantic"),  # the same, and it writes values as JSON
    ("domain/json_forms.py", "pydantic_core"),
    ("domain/model.py", "a2a_serverless.protocol"),
    ("domain/events.py", "a2a_serverless.protocol.protojson"),  # the types of what a message brings along
    ("domain/task_context.py", "pydantic"),  # the type of models
    ("domain/task_context.py", "datetime"),  # the type of moments
    ("domain/values.py", "a2a_serverless.protocol.strict_json"),  # what is stored can be read
    ("domain/task_context.py", "a2a_serverless.protocol.strict_json"),  # reads the body of an event
    ("domain/push_configs.py", "a2a_serverless.protocol.versions"),  # the version of a registration is stored with it
    ("domain/remotes.py", "a2a_serverless.protocol.versions"),  # the version that a remote agent speaks
    ("domain/outside_events.py", "datetime"),  # converts stored times
    ("domain/schedules.py", "datetime"),  # converts the times of ticks
    ("domain/current_task.py", "contextvars"),  # ``current_task``
    ("domain/task_context.py", "contextlib"),  # the type of ``TaskContext.scope``
    ("domain/agent.py", "inspect"),  # whether an agent's function is async
}


def test_rule_11_the_core_imports_nothing_that_knows_time_chance_or_the_world() -> None:
    foreign = {
        (path, name)
        for path, tree in modules("domain")
        for name in imports(tree)
        if name not in PURE and not name.startswith(("a2a_serverless.domain", "a2a_serverless.protocol.v1"))
    }
    assert foreign <= NEEDED


@pytest.mark.parametrize("folder", ["domain", "protocol", "services", "engine"])
def test_rule_11_only_adapters_and_roots_ask_for_the_time_for_chance_or_for_the_environment(folder: str) -> None:
    banned = {"time", "datetime", "random", "secrets", "uuid", "os", "socket", "ssl"}
    found = {(path, name) for path, tree in modules(folder) for name in imports(tree) & banned}
    converting = {"domain/task_context.py", "domain/outside_events.py", "domain/schedules.py"}
    converting |= {"engine/steps.py", "engine/task_context.py", "engine/waits.py", "protocol/protojson.py"}
    assert found <= {(path, "datetime") for path in converting}, "which only convert"
    asked = {node.attr for _, tree in modules("protocol") for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert asked.isdisjoint({"now", "utcnow", "today"})


PACKAGES: Final = ("a2a_serverless", "a2a_serverless_frameworks", "a2a_serverless_tools", "a2a_webhook_receiver")


def test_no_imports_go_in_a_circle_and_those_of_types_count() -> None:
    graph = grimp.build_graph(*PACKAGES, cache_dir=None)
    TopologicalSorter({module: graph.find_modules_directly_imported_by(module) for module in graph.modules}).prepare()


OUTBOUND: Final = {
    "adapters/egress.py": "webhooks: resolves the name once and checks every address",
    "adapters/webhook_sender.py": "webhooks: the only way to a URL that a client gave",
    "http_client/connections.py": "HTTP over a connection that somebody else has opened",
    "http_client/exchange.py": "requests of ours, to addresses of the operator's",
    "http_client/sockets.py": "lookups and connections for the HTTP client and for webhooks",
    "testing/waiting.py": "none: it asks whom an open connection is to, and no function contains it",
    "http/runtime.py": "Lambda's own Runtime API",
    "a2a_serverless_tools/dev/receivers.py": "whether a receiver on this machine listens again, at 127.0.0.1 only",
    "a2a_serverless_tools/stack/invoke.py": "a function in Docker: Docker's bridge to the emulator",
    "a2a_serverless_tools/stack/processes.py": "the local stack, on a user's machine",
    "a2a_serverless_tools/local/server.py": "none: it listens, and asks how far the head of a request is",
}


def test_rule_09_each_module_that_can_open_a_connection_is_listed_with_its_reason() -> None:
    network = {"h11", "http.client", "httpx", "requests", "socket", "ssl", "urllib.error", "urllib.request", "urllib3"}
    assert importers(network | {"urllib3.exceptions"}) == set(OUTBOUND)


STEADY: Final = {
    "http_client/sockets.py": "the deadline of one exchange, within an invocation",
    "adapters/webhook_sender.py": "the same",
    "engine/execution.py": "timers of a run, which ends with its invocation",
    "engine/waits.py": "the same",
    "aws/queue_worker.py": "a process outside of Lambda, which nobody freezes",
    "testing/simulated_loop.py": "how long a test's own code runs; no function contains it",
    "a2a_webhook_receiver/jwks.py": "beside the wall clock: the longer time counts",
    "a2a_webhook_receiver/outbound.py": "the deadline of one exchange, within an invocation",
}


def test_no_time_beyond_an_invocation_is_measured_by_a_clock_that_freezes() -> None:
    tops = (PACKAGE, TESTS.parent / "webhook_receiver", TESTS.parent / "functions")
    sources = {path: path.relative_to(top).as_posix() for top in tops for path in top.rglob("*.py")}
    steady = re.compile(r"\btime\.(monotonic|perf_counter|process_time)|\bCLOCK_MONOTONIC|loop\.time\(\)")
    assert {name for path, name in sources.items() if steady.search(path.read_text())} == set(STEADY)


VERSIONED: Final = {
    "a2a_serverless_tools": "a user at the edge",
    "client": "a client at its own edge",
    "http": "the edge",
    "protocol": "the models and codecs of each version",
    "services/publish.py": "the versions that a card offers",
    "testing": "a client for the test harness",
}


def test_rule_12_only_the_edge_and_a_list_with_reasons_know_a_version() -> None:
    knowing = {
        path
        for path, tree in modules()
        if any(isinstance(node, ast.Constant) and node.value in {"1.0", "0.3"} for node in ast.walk(tree))
    }
    assert {path if path in VERSIONED else path.split("/")[0] for path in knowing} == set(VERSIONED)


def test_no_test_makes_an_edge_whose_answers_are_not_held_against_the_schemas() -> None:
    sources = {path.relative_to(TESTS).as_posix(): path.read_text() for path in TESTS.rglob("*.py")}
    bare = re.compile(r"http\.app import [^\n]*\bmake_asgi_app\b|http import [^\n]*\bapp\b")
    # The function of the official kit is asked by the kit only, which holds the answers against the schemas itself.
    assert {name for name, source in sources.items() if bare.search(source)} == {
        "edge.py",
        "conformance/kit/function.py",
    }


UNOBSERVED: Final = {
    "adapters/test_deadlines.py": "peers that never end their answers",
    "engine/test_unavailable_agents.py": "agents elsewhere that fail",
    "http_client/test_credentials.py": "hosts that note the credentials that they get",
    "http_client/test_transport.py": "the client's transport itself",
    "handlers/test_queue_worker.py": "the health of a worker",
    "conformance/test_older_requests.py": "requests as printed, to ``tests.conformance.live``, whose edge checks",
    "conformance/remotes.py": "the official servers",
    "conformance/test_mirrors_of_official_servers.py": "the cards of the official servers",
    "conformance/test_official_servers.py": "the official servers",
    "conformance/test_shipped_agents.py": "the receiver's API",
    "dev/test_application.py": "the routes of another application",
    "docs/pictures.py": "the receiver's API",
    "functions/emulated_runtime.py": "the Runtime Interface Emulator; what functions answer is checked by its callers",
    "journeys/test_by_hand.py": "the receiver's API",
    "journeys/test_own_application.py": "the routes of another application",
    "observed.py": "the check",
    "roles/test_enforced.py": "links to objects, and callers who sign",
    "peers/playing.py": "the cards of peers",
    "peers/test_deaths.py": "the cards of peers, and what they were asked for",
    "peers/test_peers.py": "the peers",
    "stack/test_deployment.py": "the receiver's page",
}


def test_no_test_asks_a_deployment_over_http_without_holding_the_answer_against_the_schemas() -> None:
    sources = {path.relative_to(TESTS).as_posix(): path.read_text() for path in TESTS.rglob("*.py")}
    bare = re.compile(r"\burlopen\(|import [^\n]*\bopen_request\b")
    asking = {name for name, source in sources.items() if bare.search(source)}
    assert {name for name in asking if not name.startswith("webhook_receiver/")} == {*UNOBSERVED}
