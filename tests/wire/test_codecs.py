import subprocess
import sys

from a2a_serverless.wire import v0_3, v0_3_rest, v1
from a2a_serverless.wire.codecs import codec


def test_each_binding_and_version_has_its_codec() -> None:
    assert codec("jsonrpc", "1.0") is v1
    assert codec("rest", "1.0") is v1
    assert codec("jsonrpc", "0.3") is v0_3
    assert codec("rest", "0.3") is v0_3_rest


def test_a_1_0_call_loads_neither_the_old_codecs_nor_pydantic() -> None:
    code = "import sys; from a2a_serverless.wire import codecs, jsonrpc, rest; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()  # noqa: S603
    assert "a2a_serverless.wire.v1" in loaded
    assert not {"a2a_serverless.wire.v0_3", "a2a_serverless.wire.v0_3_rest", "pydantic", "rfc8785"} & set(loaded)
