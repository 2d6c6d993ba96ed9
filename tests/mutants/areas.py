"""Which modules are changed, and which tests are let loose on each: those that say what it does, and no others.

So a mutant takes seconds. The areas of a framework need its environment (``make frameworks``).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final, NamedTuple

CHECKOUT: Final = Path(__file__).parents[2]
SHARED: Final = CHECKOUT / "shared"
LIBRARY: Final = SHARED / "a2a_serverless"
TESTS: Final = CHECKOUT / "tests"


class Area(NamedTuple):
    """Modules, as patterns in the runtime or in ``shared``, and their tests, as patterns in ``tests``."""

    modules: tuple[str, ...]
    tests: tuple[str, ...]
    framework: str = ""

    @property
    def paths(self) -> list[Path]:
        """The sources that are changed."""
        return _files(LIBRARY, self.modules) + _files(SHARED, self.modules)

    @property
    def suites(self) -> list[Path]:
        """The files of tests."""
        return _files(TESTS, self.tests)

    @property
    def python(self) -> Path:
        """The interpreter that has what the area imports. It is missing if the framework is not installed."""
        if not self.framework:
            return Path(sys.executable)
        return CHECKOUT / ".a2a" / "venvs" / f"framework-{self.framework}" / "bin" / "python"


def name_of(path: Path) -> str:
    """The name of a module; without the package's for one of the runtime."""
    inside = path.relative_to(LIBRARY if path.is_relative_to(LIBRARY) else SHARED)
    return ".".join(inside.with_suffix("").parts)


def path_of(name: str) -> Path:
    """The source of a module."""
    return (SHARED if name.startswith("a2a_serverless_") else LIBRARY).joinpath(*name.split(".")).with_suffix(".py")


def _files(folder: Path, patterns: tuple[str, ...]) -> list[Path]:
    return sorted(path for pattern in patterns for path in folder.glob(pattern) if path.name != "__init__.py")


AREAS: Final = {
    "scopes": Area(
        (
            *("engine/artifact_writer.py", "engine/artifacts.py", "engine/chunks.py", "engine/copied_context.py"),
            *("engine/act_coroutines.py", "engine/endings.py"),
            *("engine/framework_task.py", "engine/loop.py", "engine/scopes.py"),
            *("engine/signals.py", "domain/record_names.py", "domain/call_records.py", "domain/new_task.py"),
            "domain/step_results.py",
            "domain/progress.py",
        ),
        (
            *("engine/test_acts.py", "engine/test_answers.py", "engine/test_chunks.py", "engine/test_progress.py"),
            *("engine/test_emits_in_steps.py", "engine/test_open_waits.py"),
            *(
                "engine/test_errors.py",
                "engine/test_same_in_each_run.py",
                "engine/test_endings.py",
                "engine/test_loop.py",
                "engine/test_orders.py",
                "engine/test_scopes.py",
            ),
            *("engine/test_signals.py", "engine/test_step_options.py", "engine/test_steps.py", "replay/test_*.py"),
            *("engine/test_first_run.py", "engine/test_forgotten_acts.py", "engine/test_retry.py"),
        ),
    ),
    "runs": Area(
        (
            *("engine/acts.py", "engine/callbacks.py", "engine/client_messages.py", "engine/engine.py"),
            *("engine/execution.py", "engine/inline.py", "engine/journal.py", "engine/lease.py", "engine/messages.py"),
            *(
                "engine/owner_budget.py",
                "engine/result_codecs.py",
                "engine/tool_states.py",
                "engine/value_comparison.py",
                "engine/run.py",
                "engine/run_session.py",
            ),
            *("engine/step_errors.py", "engine/steps.py", "engine/store_guard.py", "engine/task_context.py"),
            *("engine/observer.py", "engine/task_end.py", "engine/task_reader.py", "engine/waits.py"),
            *("domain/decisions.py", "domain/head.py", "domain/periods.py"),
            *("engine/task_copy.py", "domain/task_copies.py"),
            "engine/budgets.py",
            "domain/budgets.py",
            "services/pauses.py",
        ),
        (
            *(
                "domain/test_head.py",
                "domain/test_periods.py",
                "engine/test_*.py",
                "faults/test_recovery.py",
                "model/test_*.py",
            ),
            *("releases/test_*.py", "replay/test_*.py", "services/test_measured.py", "test_replay.py"),
        ),
    ),
    "calls": Area(
        (
            *("domain/called_task.py", "engine/calls.py", "engine/mirror.py", "engine/task_files.py"),
            "engine/task_values.py",
        ),
        (
            *("domain/test_called_task.py", "engine/test_sloppy_peers.py"),
            *("engine/test_acts.py", "engine/test_called_files.py", "engine/test_calls.py", "engine/test_fetching.py"),
            *("engine/test_messages.py", "engine/test_outages.py", "engine/test_scopes_of_reads.py"),
            *("engine/test_spans.py", "engine/test_unavailable_agents.py", "engine/test_values.py"),
            "engine/test_canceled_calls.py",
            "engine/test_requests_of_runs.py",
            *("faults/test_time_limits.py", "handlers/test_chains.py", "services/test_callbacks.py"),
        ),
    ),
    "deliveries": Area(
        (
            *(
                "domain/cursors.py",
                "domain/notifications.py",
                "domain/push_configs.py",
                "services/circuit_breakers.py",
                "services/cursor_lease.py",
                "services/deliver*.py",
                "services/notifications.py",
            ),
            *("services/memory_budget.py", "services/relay.py", "services/webhooks.py", "services/webhook_statuses.py"),
        ),
        (
            *("contract/test_push_store.py", "domain/test_delivery.py"),
            *("faults/test_recovery.py", "faults/test_undisturbed.py"),
            *("handlers/test_deliveries.py", "model/test_*.py", "releases/test_*.py", "services/test_*.py"),
        ),
    ),
    "keys": Area(
        (
            *("adapters/es256.py", "adapters/key_ring_secret.py", "domain/key_ring.py"),
            *("services/key_rotation.py", "services/publish.py"),
        ),
        (
            *("adapters/test_keys.py", "adapters/test_secrets.py", "domain/test_key_ring.py"),
            *("handlers/test_documents.py", "handlers/test_extended_card.py", "handlers/test_scopes.py"),
            *("handlers/test_signed_cards.py", "model/test_*.py", "releases/test_*.py"),
            *("services/test_key_rotation.py", "services/test_rotating_under_load.py"),
        ),
    ),
    "tasks": Area(
        (
            *("services/briefs.py", "services/callbacks.py", "services/content_links.py", "services/listing.py"),
            "services/timelines.py",
            "services/open_questions.py",
            *("services/operation_runner.py", "services/rate_limiter.py", "services/streams.py", "services/sweep.py"),
            *("services/requests.py", "services/task_changes.py", "services/tasks.py"),
            "services/retries.py",
            "services/ticks.py",
        ),
        (
            *("contract/test_sweeping.py", "engine/test_inline.py", "handlers/test_callback.py"),
            *("domain/test_webhook_signatures.py", "engine/test_signed_events.py", "handlers/test_outside_events.py"),
            *("handlers/test_chains.py", "handlers/test_co*.py"),
            *("handlers/test_following.py", "handlers/test_history.py", "handlers/test_limits.py"),
            *("handlers/test_operations.py", "handlers/test_pages.py"),
            *("handlers/test_stream_slots.py", "handlers/test_timeline.py", "handlers/test_uploads.py"),
            *("engine/test_retries.py", "handlers/test_retries.py"),
            *("handlers/test_waiting.py", "releases/test_*.py", "services/test_*.py"),
        ),
    ),
    "erasure": Area(
        ("a2a_serverless_tools/operators/erasure*.py",),
        ("cli/test_operator_commands.py", "contract/test_erasing.py"),
    ),
    "tables": Area(
        (
            *(
                "domain/digests.py",
                "domain/json_forms.py",
                "domain/model.py",
                "store/api_keys.py",
                "store/items.py",
                "store/keys.py",
            ),
            *(
                "store/payloads.py",
                "store/snapshots.py",
                "store/stored_forms.py",
                "store/push_store.py",
                "store/stores.py",
            ),
            *("store/dynamodb.py", "store/fence.py", "store/task_log.py", "store/table.py", "store/value_store.py"),
        ),
        ("adapters/test_*.py", "contract/test_*.py", "costs/test_*.py", "releases/test_*.py"),
    ),
    "handlers": Area(
        ("adapters/sqs.py", "adapters/invocations.py", "aws/batches.py", "aws/custom_resource.py"),
        (
            *("adapters/test_sqs.py", "handlers/test_concurrent_messages.py"),
            *("handlers/test_invocations.py", "handlers/test_queues.py", "handlers/test_schedules.py"),
            *("handlers/test_table_stream.py", "releases/test_*.py"),
        ),
    ),
    "a2a-sdk": Area(
        tuple(f"a2a_serverless_frameworks/{name}.py" for name in ("a2a_sdk", "a2a_sdk_1")),
        ("frameworks/test_a2a_sdk*.py",),
        "a2a-sdk",
    ),
    "a2a-sdk-0.3": Area(("a2a_serverless_frameworks/a2a_sdk_0_3.py",), ("frameworks/test_a2a_sdk*.py",), "a2a-sdk-0.3"),
    "langgraph": Area(
        (
            *("a2a_serverless_frameworks/langgraph.py", "a2a_serverless_frameworks/langgraph_saver.py"),
            *("a2a_serverless_frameworks/langgraph_deltas.py", "a2a_serverless_frameworks/langchain_reviews.py"),
        ),
        ("frameworks/test_langgraph*.py",),
        "langgraph",
    ),
    "openai-agents": Area(
        ("a2a_serverless_frameworks/openai_agents.py",), ("frameworks/test_openai_agents*.py",), "openai-agents"
    ),
    "pydantic-ai": Area(
        tuple(f"a2a_serverless_frameworks/{name}.py" for name in ("answers", "history", "pydantic_ai")),
        ("frameworks/test_pydantic_ai*.py", "frameworks/test_answers.py"),
        "pydantic-ai",
    ),
    "adk": Area(
        ("a2a_serverless_frameworks/adk.py", "a2a_serverless_frameworks/adk_sessions.py"),
        ("frameworks/test_adk*.py",),
        "adk",
    ),
    "strands": Area(("a2a_serverless_frameworks/strands.py",), ("frameworks/test_strands*.py",), "strands"),
}
