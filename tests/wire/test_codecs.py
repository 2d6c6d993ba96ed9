import subprocess
import sys

from a2a_serverless.domain.model import Message, Part, Role, Task, TaskState, TaskStatus
from a2a_serverless.protocol.operations import Operation
from a2a_serverless.wire import v0_3, v0_3_rest, v1
from a2a_serverless.wire.codecs import codec

NOW = 1_790_000_000_000
SAID = Message("m", Role.AGENT, (Part("text", "hello"),), context_id="c")
TASK = Task("t", "c", TaskStatus(TaskState.WORKING, NOW), 2, history=(SAID,), metadata={"keyOne": 1})


def test_each_binding_and_version_has_its_codec() -> None:
    assert codec("jsonrpc", "1.0", NOW) is v1
    assert codec("rest", "1.0", NOW) is v1
    assert codec("proto", "1.0", NOW) is v1
    assert codec("jsonrpc", "0.3", NOW) is v0_3
    assert codec("rest", "0.3", NOW) is v0_3_rest


def test_answers_in_the_protos_own_names_say_the_same_and_leave_metadata_alone() -> None:
    proto = codec("proto", "0.3", NOW)
    assert proto.answer(Operation.GET, TASK) == {
        "id": "t",
        "context_id": "c",
        "status": {"state": "TASK_STATE_WORKING", "timestamp": "2026-09-21T14:13:20.000Z"},
        "history": [{"message_id": "m", "role": "ROLE_AGENT", "content": [{"text": "hello"}], "context_id": "c"}],
        "metadata": {"keyOne": 1},
    }
    assert proto.stream_item(TASK, "t", "c") == {"task": proto.answer(Operation.GET, TASK)}


def test_a_1_0_call_loads_neither_the_old_codecs_nor_pydantic() -> None:
    code = "import sys; from a2a_serverless.wire import codecs, jsonrpc, rest; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()  # noqa: S603
    assert "a2a_serverless.wire.v1" in loaded
    assert not {"a2a_serverless.wire.v0_3", "a2a_serverless.wire.v0_3_rest", "pydantic", "rfc8785"} & set(loaded)
