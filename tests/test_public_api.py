"""The public API: what `a2a_serverless` exports, and that importing it loads no models."""

import subprocess
import sys

import pytest

import a2a_serverless

NAMES = """Agent AgentCallFailed AgentExtension Answer Artifact Budget BudgetExceeded Callback CallbackRequest
CancelReason Codec KeyValueStore Message OAuthClientCredentials Part Retry Schedule SecretHeaders SigV4
Skill Step SecretNotRead StepConflict StepFailed
StepTimedOut StoredValue Task TaskContext TaskFailed TaskRejected TaskState TypeCodec VersionConflict agent
current_task mirror"""


def test_the_public_names_are_these_and_each_can_be_imported() -> None:
    names = NAMES.split()
    assert sorted(a2a_serverless.__all__) == sorted(names)
    assert all(getattr(a2a_serverless, name) is not None for name in names)
    assert set(names) <= set(dir(a2a_serverless))


def test_an_unknown_name_is_named() -> None:
    with pytest.raises(AttributeError, match="'Agents'"):
        a2a_serverless.Agents  # noqa: B018


def test_importing_the_package_loads_no_models() -> None:
    code = "import sys, a2a_serverless; print('pydantic' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    assert shown.stdout.strip() == "False"
