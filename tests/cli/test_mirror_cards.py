"""The cards of a project's mirrors: kept in files, compared with what the remote agents serve."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless import SecretHeaders, mirror
from a2a_serverless_tools.cli.app import run
from a2a_serverless_tools.cli.mirror_cards import compare
from a2a_serverless_tools.cli.options import CliContext
from a2a_serverless_tools.project import ProjectError, find_project
from a2a_serverless_tools.project_check import check_project
from tests.cli.shell import Shell
from tests.client.deployment import Deployment, documents
from tests.echo import Writer
from tests.engine.mirrored import URL, RemoteAgent
from tests.mirror_project import add_mirror, card_command

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from a2a_serverless import Agent
    from a2a_serverless.client import ClientRequest, ClientResponse

CARD_URL = f"{URL}/.well-known/agent-card.json"


def stored(folder: Path, **options: Any) -> tuple[Path, Agent]:
    file = folder / "far.json"
    file.write_text(json.dumps(RemoteAgent().card()))
    return file, mirror(URL, id="far", card=file, **options)


def shell(agent: Agent, served: dict[str, Any]) -> Shell:
    at = Shell(Deployment(Writer().agent), transport=documents({CARD_URL: served}))
    assert agent.remote
    at.mirrors = [(agent.id, agent.remote)]
    return at


def test_a_card_that_is_as_it_was_is_no_drift_whoever_has_signed_it_again(tmp_path: Path) -> None:
    _, agent = stored(tmp_path)
    at = shell(agent, RemoteAgent().card() | {"signatures": [{"protected": "p", "signature": "s"}]})
    (card,) = compare(CliContext(transport=at.transport), at.mirrors)
    assert card.changed == []


def test_the_members_that_have_changed_are_named_and_the_card_is_stored(tmp_path: Path) -> None:
    file, agent = stored(tmp_path)
    at = shell(agent, RemoteAgent().card() | {"version": "4", "iconUrl": "https://far.example.com/icon.png"})
    (card,) = compare(CliContext(transport=at.transport), at.mirrors)
    assert card.changed == ["iconUrl", "version"]
    card.write()
    assert json.loads(file.read_text())["version"] == "4"


def test_the_card_is_read_with_the_credentials_of_its_mirror(tmp_path: Path) -> None:
    _, agent = stored(tmp_path, auth=SecretHeaders({"Authorization": "far"}))
    assert agent.remote
    seen: list[dict[str, str]] = []

    @contextmanager
    def transport(call: ClientRequest) -> Iterator[ClientResponse]:
        seen.append(dict(call.headers))
        with documents({CARD_URL: RemoteAgent().card()})(call) as answer:
            yield answer

    context = CliContext(transport=transport, environment={"A2A_SECRET_FAR": "Bearer far", "A2A_AUTHORIZATION": "mine"})
    assert [card.changed for card in compare(context, [("far", agent.remote)])] == [[]]
    assert [headers["Authorization"] for headers in seen] == ["Bearer far"]


@pytest.mark.parametrize(("served", "verdict"), [({}, "PASS"), ({"version": "4"}, "FAIL")])
def test_the_check_of_a_deployment_says_that_a_card_has_changed(
    tmp_path: Path, served: dict[str, str], verdict: str
) -> None:
    _, agent = stored(tmp_path)
    at = shell(agent, RemoteAgent().card() | served)
    result = next(one for one in json.loads(at.run("check", "--json").out)["checks"] if one["name"] == "mirrors")
    assert result["verdict"] == verdict
    assert "version" in result["text"] or verdict == "PASS"


def test_without_a_project_with_mirrors_there_is_no_such_check() -> None:
    at = Shell(Deployment(Writer().agent), transport=documents({}))
    assert "mirrors" not in [one["name"] for one in json.loads(at.run("check", "--json").out)["checks"]]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project as ``init`` writes it, without the wheels, to which the mirror of the documents was added."""
    folder = tmp_path / "my-mirror"
    (folder / "my_mirror").mkdir(parents=True)
    (folder / "my_mirror/__init__.py").touch()
    settings = '[project]\nname = "my-mirror"\ndependencies = ["a2a-serverless"]\n[tool.a2a-serverless]\n'
    (folder / "pyproject.toml").write_text(f'{settings}agents = ["my_mirror.tailor:tailor"]\n')
    at = Shell(Deployment(Writer().agent), transport=documents({CARD_URL: RemoteAgent().card()}))
    add_mirror(folder, URL, at.run(*card_command(URL)).out)
    return folder


def test_the_documents_show_a_mirror_that_can_be_built(project: Path) -> None:
    ((described,),) = check_project(find_project(project)).agents.values()
    assert (described["id"], described["name"], described["remote"]["url"]) == ("far-away", "Far Away", URL)


def test_a_secret_of_a_mirror_that_the_project_does_not_list_is_named(project: Path) -> None:
    module = project / "my_mirror/weather.py"
    source = module.read_text().replace("import mirror", "import SecretHeaders, mirror")
    module.write_text(source.replace(", card=", ', auth=SecretHeaders({"X-Key": "weather"}), card='))
    with pytest.raises(ProjectError, match="the mirror far-away needs the secret 'weather'"):
        check_project(find_project(project))
    with (project / "pyproject.toml").open("a") as settings:
        settings.write('secrets = { weather = "my-mirror/weather" }\n')
    assert check_project(find_project(project)).agents


def test_the_command_refreshes_the_cards_of_the_project(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(project)
    context = CliContext(transport=documents({CARD_URL: RemoteAgent().card() | {"version": "4"}}))
    for arguments, code in ((["cards", "refresh"], 1), (["cards", "refresh", "--write"], 0), (["cards", "refresh"], 0)):
        with pytest.raises(SystemExit) as ended:
            run(arguments, context)
        assert ended.value.code == code
    assert "version" in capsys.readouterr().out
    assert json.loads((project / "my_mirror/weather.json").read_text())["version"] == "4"
