"""Every curl of docs/api.md runs against the agents of ``dev``, and every operation has one in each binding."""

from __future__ import annotations

import json
import re
import runpy
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from a2a_serverless.http.routes import V1
from a2a_serverless.protocol.operations import Operation
from a2a_serverless_tools.dev.server import make_receiver
from a2a_serverless_tools.local.server import listen
from tests.conformance.live import serving
from tests.docs.documents import ROOT, blocks
from tests.stack.local import eventually
from tests.webhook_receiver.serving import serving as serving_receiver

if TYPE_CHECKING:
    from collections.abc import Iterator

API = ROOT / "docs/api.md"
CURLS = [block.text for block in blocks("shell", API) if block.needs is None]
SECONDS = 120
CARD = "ExtendedAgentCard|extendedAgentCard"
LOCAL = "http://127.0.0.1:8000"
RECEIVER = "http://127.0.0.1:8010"

pytestmark = [
    pytest.mark.enable_socket,
    pytest.mark.skipif(shutil.which("curl") is None, reason="CURLS NOT RUN: curl is not installed"),
]


class Reader:
    """Somebody who copies each command, and writes the ids of the answers for the placeholders."""

    def __init__(self, url: str, receiver: str) -> None:
        self._urls = {LOCAL: url, RECEIVER: receiver}
        self._ids = {"TASK": "", "CONTEXT": "", "TOKEN": "", "CONFIG": "second"}
        self._before = ""

    def run(self, curl: str) -> str:
        other = {"TASK": self._before} if "/tasks/TASK:cancel" in curl else {}  # the page has canceled the newest one
        for name, value in (self._ids | other).items():
            curl = re.sub(rf"\b{name}\b", value, curl)
        for documented, here in self._urls.items():
            curl = curl.replace(documented, here)
        command = ["bash", "-c", curl]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)  # noqa: S603
        assert done.returncode == 0, done.stderr
        task = r'^\{"id"' if "/legacy/" in curl else r'"task":\{"id"'
        if found := re.search(task + r':"([^"]+)","contextId":"([^"]+)"', done.stdout):
            self._before = self._ids["TASK"] if found[1] != self._ids["TASK"] else self._before
            self._ids |= {"TASK": found[1], "CONTEXT": found[2]}
        if found := re.search(r'"token": ?"([^"]+)"', done.stdout):
            self._ids["TOKEN"] = found[1]
        return done.stdout


@pytest.fixture(scope="module")
def reader() -> Iterator[Reader]:
    tailor = runpy.run_path(str(ROOT / "examples/project/my_agents/tailor.py"))["tailor"]
    with serving([tailor]) as url, listen(0) as listener:
        receiver = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with serving_receiver(make_receiver(url, receiver), listener):
            yield Reader(url, receiver)


def test_every_operation_has_a_curl_in_both_bindings() -> None:
    text = API.read_text()
    assert [one for one in Operation if f'"method": "{one}"' not in text] == []
    paths = {re.sub(r"\{\w+:task\}", "TASK", route.template).replace("{id:name}", "CONFIG") for route in V1}
    assert [path for path in sorted(paths) if f"{LOCAL}/tailor{path}" not in text] == []


def test_every_curl_gets_the_answer_that_the_page_promises(reader: Reader) -> None:
    for curl in CURLS:
        said = reader.run(curl)
        if re.search(CARD, curl):
            assert "UNSUPPORTED_OPERATION" in said
        elif curl.startswith("curl -sN"):
            assert said.count("data:") > 1, said
            assert '"error"' not in said
        else:
            assert "error" not in json.loads(said), (curl, said)
    eventually(lambda: "accepted" in reader.run(f"curl -s '{RECEIVER}/api/notifications'"))
