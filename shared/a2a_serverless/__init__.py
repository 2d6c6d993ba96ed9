"""Run agents on AWS Lambda and talk A2A to them.

These names are the public API for agent authors, together with ``a2a_serverless.testing.AgentTestHarness``. All other
modules are private: they may change in any release. A name is imported on first use, so that a function without models
does not load them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from a2a_serverless.domain.agent import Agent, AgentExtension, Answer, Skill, agent
    from a2a_serverless.domain.agent_errors import (
        AgentCallFailed,
        BudgetExceeded,
        SecretNotRead,
        StepConflict,
        StepFailed,
        StepTimedOut,
        TaskFailed,
        TaskRejected,
    )
    from a2a_serverless.domain.budgets import Budget
    from a2a_serverless.domain.current_task import current_task
    from a2a_serverless.domain.key_value_store import KeyValueStore, StoredValue, VersionConflict
    from a2a_serverless.domain.remotes import OAuthClientCredentials, SecretHeaders, SigV4
    from a2a_serverless.domain.schedules import Schedule
    from a2a_serverless.domain.steps import Codec, Retry, Step
    from a2a_serverless.domain.task_context import Callback, CallbackRequest, CancelReason, TaskContext
    from a2a_serverless.engine.result_codecs import TypeCodec
    from a2a_serverless.mirrors import mirror
    from a2a_serverless.protocol.v1 import Artifact, Message, Part, Task, TaskState

_NAMES: Final = {
    "domain.agent": ("Agent", "AgentExtension", "Answer", "Skill", "agent"),
    "domain.agent_errors": (
        "AgentCallFailed",
        "BudgetExceeded",
        "SecretNotRead",
        "StepConflict",
        "StepFailed",
        "StepTimedOut",
        "TaskFailed",
        "TaskRejected",
    ),
    "domain.budgets": ("Budget",),
    "domain.current_task": ("current_task",),
    "domain.key_value_store": ("KeyValueStore", "StoredValue", "VersionConflict"),
    "domain.remotes": ("OAuthClientCredentials", "SecretHeaders", "SigV4"),
    "domain.schedules": ("Schedule",),
    "domain.steps": ("Codec", "Retry", "Step"),
    "domain.task_context": ("Callback", "CallbackRequest", "CancelReason", "TaskContext"),
    "engine.result_codecs": ("TypeCodec",),
    "mirrors": ("mirror",),
    "protocol.v1": ("Artifact", "Message", "Part", "Task", "TaskState"),
}
_MODULES: Final = {name: module for module, names in _NAMES.items() for name in names}
__all__ = [
    "Agent",
    "AgentCallFailed",
    "AgentExtension",
    "Answer",
    "Artifact",
    "Budget",
    "BudgetExceeded",
    "Callback",
    "CallbackRequest",
    "CancelReason",
    "Codec",
    "KeyValueStore",
    "Message",
    "OAuthClientCredentials",
    "Part",
    "Retry",
    "Schedule",
    "SecretHeaders",
    "SecretNotRead",
    "SigV4",
    "Skill",
    "Step",
    "StepConflict",
    "StepFailed",
    "StepTimedOut",
    "StoredValue",
    "Task",
    "TaskContext",
    "TaskFailed",
    "TaskRejected",
    "TaskState",
    "TypeCodec",
    "VersionConflict",
    "agent",
    "current_task",
    "mirror",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - the type of the name is declared above
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"a2a_serverless.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
