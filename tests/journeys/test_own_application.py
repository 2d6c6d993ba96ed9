"""The how-to of agents inside a FastAPI application (docs/fastapi.md), in ``up``: over HTTP, and the api function."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.request import urlopen

import pytest

from a2a_serverless.http_client import open_request
from a2a_serverless_tools.cli.inbox import InboxClient
from a2a_serverless_tools.stack import processes
from projects import agent_file, make_project
from tests.docs.documents import QUESTION, ROOT, blocks
from tests.journeys.shell import Shell, need_setup

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.enable_socket, pytest.mark.integration, pytest.mark.xdist_group("test_own_application")]
PAGE = ROOT / "docs/fastapi.md"
WAITS = 4


class Shop(NamedTuple):
    """A project as the how-to makes it, and what ``up`` says of its stack."""

    shell: Shell
    said: dict[str, Any]

    @property
    def origin(self) -> str:
        return str(self.said["agents"]).removesuffix("/agents/agents")


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    need_setup()
    folder = agent_file(make_project("application-shop")).parent
    (web,) = blocks("python", PAGE)
    (settings,) = blocks("toml", PAGE)
    (folder / "web.py").write_text(web.text)
    file = folder.parent / "pyproject.toml"
    (line,) = (line for line in settings.text.splitlines() if line.startswith("application"))
    named = line.replace("my_agents", folder.name)
    file.write_text(file.read_text().replace("[tool.a2a-serverless]\n", f"[tool.a2a-serverless]\n{named}\n"))
    ports = {f"A2A_{part}_PORT": str(processes.claim_port(part, 0)) for part in ("EMULATOR", "API", "RECEIVER")}
    own = {**ports, "A2A_STATE": str(tmp_path_factory.mktemp("state")), "NO_COLOR": "1"}
    inherited = {name: value for name, value in os.environ.items() if name != "A2A_URL"}
    shell = Shell(folder.parent, {**inherited, **own})
    yield Shop(shell, shell.json("up"))
    shell.run("down")


def get(url: str) -> Any:
    with urlopen(url) as answer:
        return json.load(answer)


def test_up_serves_the_application_and_the_agents_below_its_path(shop: Shop) -> None:
    assert get(f"{shop.origin}/prices") == {"coat": 100}
    assert get(f"{shop.origin}/openapi.json")["info"]["title"] == "Shop"
    card = get(f"{shop.origin}/agents/tailor/.well-known/agent-card.json")
    assert {one["url"] for one in card["supportedInterfaces"]} >= {f"{shop.origin}/agents/tailor"}


def test_a_task_is_sent_to_the_path_and_its_webhooks_are_verified(shop: Shop) -> None:
    inbox = str(shop.said["inbox"]).rstrip("/")
    sent = shop.shell.run("send", "tailor", "A coat, please.", "--inbox", inbox)
    assert (sent.returncode, QUESTION in sent.stdout + sent.stderr) == (WAITS, True), sent.stderr
    entries = InboxClient(inbox, open_request).list_entries()
    assert {entry.verified for entry in entries if entry.state} == {True}


def test_the_api_function_serves_both_behind_the_rest_api(shop: Shop) -> None:
    assert get(f"{shop.said['restApi']}/prices") == {"coat": 100}
    assert [agent["id"] for agent in get(f"{shop.said['restApi']}/agents/agents")["agents"]] == ["tailor"]
