"""What a peer repeats of the secrets that were sent to it is removed from the whole item, before it is stored."""

from __future__ import annotations

import base64
import json
from typing import Any, Final

import pytest

from a2a_serverless import mirror
from a2a_serverless.adapters.agent_credentials import AgentCredentials
from a2a_serverless.adapters.remote_agents import A2ARemoteAgents
from a2a_serverless.domain.access import Caller
from a2a_serverless.domain.model import Principal
from a2a_serverless.domain.remotes import SecretHeaders
from a2a_serverless.protocol.v1 import (
    Message,
    Part,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    TaskPushNotificationConfig,
)
from tests.peers.forms import FORMS, URL, Form, SloppyAgent

SECRET: Final = "sk-very-secret"
ME: Final = Caller(Principal("acme", "alice"))
HELLO: Final = Message(message_id="m", role=Role.USER, parts=(Part(text="hello"),))
HOOK: Final = TaskPushNotificationConfig(url="https://here.example.com/callbacks/1", id="p", token="t")
everywhere = pytest.mark.parametrize("form", FORMS, ids=lambda form: f"{form.version} {form.binding}")


def echo(form: Form) -> dict[str, Any]:
    data: dict[str, Any] = {"data": {"headers": {"authorization": SECRET, SECRET: [SECRET]}}}
    if form.version == "0.3" and form.binding == "HTTP+JSON":
        data = {"data": data}
    raw = base64.b64encode(f"Authorization: {SECRET}".encode()).decode()
    artifact = form.artifact("a", f"you sent {SECRET}", {**form.kind("data"), **data}, form.file(raw))
    about = {"name": SECRET, "description": f"of {SECRET}", "metadata": {"echo": SECRET}}
    status = {"message": form.message(SECRET, metadata={"echo": SECRET})}
    members: dict[str, Any] = {"metadata": {"echo": {"x-key": SECRET}}, "history": [form.message(SECRET)]}
    return form.task(artifacts=[{**artifact, **about}], status=status, **members)


def agents_of(far: SloppyAgent, kind: str) -> tuple[A2ARemoteAgents, str]:
    if kind == "call":
        credentials = AgentCredentials(lambda: json.dumps({"https://far.example.com": {"Authorization": SECRET}}))
        return A2ARemoteAgents({}, {"far": URL}, transport=far.transport, credentials=credentials), "far"
    auth = SecretHeaders({"Authorization": "far"})
    agents = {"far": mirror(URL, card=far.card(), id="far", auth=auth)}
    return A2ARemoteAgents({}, transport=far.transport, agents=agents, read_secret=lambda _: SECRET), "far/remote"


def shows_secret(item: Any) -> bool:
    raw = base64.b64encode(SECRET.encode())[:-4]
    content = item.json_bytes()
    return SECRET.encode() in content or raw in content or b"c2stdmVyeS1zZWNyZXQ" in content


@everywhere
@pytest.mark.parametrize("kind", ["call", "mirror"])
def test_a_task_that_an_agent_returns_shows_no_echo_of_our_secrets(form: Form, kind: str) -> None:
    far = SloppyAgent(form, {"send": [form.item("task", echo(form))], "get": [echo(form)]})
    agents, name = agents_of(far, kind)
    if kind == "call":
        assert not shows_secret(agents.send(ME, name, HELLO, HOOK))
    task = agents.get(ME, name, "t")
    assert not shows_secret(task)
    assert base64.b64decode(task.artifacts[0].parts[2].raw or "") == b"Authorization: ***"


@everywhere
@pytest.mark.parametrize("streaming", [True, False])
def test_items_of_a_stream_show_no_echo_of_our_secrets(form: Form, *, streaming: bool) -> None:
    ids = {"taskId": "t", "contextId": "c", "metadata": {"echo": SECRET}}
    chunk = {**form.kind("artifact-update"), **ids, "artifact": echo(form)["artifacts"][0]}
    task = form.item("task", echo(form))
    items = [task, form.item("artifactUpdate", chunk)]
    far = SloppyAgent(form, {"send": [task], "stream": [items], "subscribe": [items]}, streaming=streaming)
    agents, name = agents_of(far, "mirror")
    request = SendMessageRequest(message=HELLO, configuration=SendMessageConfiguration())
    assert not any(map(shows_secret, agents.stream(ME, name, request, ())))
    assert not any(map(shows_secret, agents.subscribe(ME, name, "t")))


@everywhere
def test_the_log_of_parts_that_are_skipped_shows_no_echo_of_our_secrets(
    form: Form, caplog: pytest.LogCaptureFixture
) -> None:
    far = SloppyAgent(form, {"get": [{"echo": SECRET, **form.task(artifacts=7)}]})
    agents, name = agents_of(far, "mirror")
    agents.get(ME, name, "t")
    (record,) = caplog.records
    assert SECRET not in str(vars(record))
    assert "artifacts" in str(vars(record)["skipped"])
