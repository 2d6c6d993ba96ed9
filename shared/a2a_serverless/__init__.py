"""Run agents on AWS Lambda and talk A2A to them.

These names are the public API for agent authors, together with ``a2a_serverless.testing.AgentTestHarness``. All other
modules are private: they may change in any release. A name is imported on first use, so that a function without models
does not load them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from a2a_serverless.domain.agent import (
        Agent,
        AgentCallFailed,
        AgentExtension,
        Answer,
        BudgetExceeded,
        Callback,
        CallbackRequest,
        CancelReason,
        Codec,
        KeyValueStore,
        Retry,
        SecretNotRead,
        Skill,
        Step,
        StepConflict,
        StepFailed,
        StepTimedOut,
        StoredValue,
        TaskContext,
        TaskFailed,
        TaskRejected,
        VersionConflict,
        agent,
        current_task,
    )
    from a2a_serverless.domain.budgets import Budget
    from a2a_serverless.domain.remotes import OAuthClientCredentials, SecretHeaders, SigV4
    from a2a_serverless.domain.schedules import Schedule
    from a2a_serverless.engine.result_codecs import TypeCodec
    from a2a_serverless.mirrors import mirror
    from a2a_serverless.protocol.v1 import Artifact, Message, Part, Task, TaskState

_PROTOCOL: Final = ("Artifact", "Message", "Part", "Task", "TaskState")
_ELSEWHERE: Final = {
    "Budget": "domain.budgets",
    "Schedule": "domain.schedules",
    "mirror": "mirrors",
    **dict.fromkeys(("OAuthClientCredentials", "SecretHeaders", "SigV4"), "domain.remotes"),
    "TypeCodec": "engine.result_codecs",
    **dict.fromkeys(_PROTOCOL, "protocol.v1"),
}
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
    return getattr(import_module(f"a2a_serverless.{_ELSEWHERE.get(name, 'domain.agent')}"), name)


def __dir__() -> list[str]:
    return __all__
