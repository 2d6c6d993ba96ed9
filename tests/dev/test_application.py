"""``dev`` with the project's own FastAPI application, in which the agents are mounted."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from a2a_serverless_tools.cli.inbox import InboxClient
from tests.dev.terminal import DEADLINE_S, PROGRAM, Project, make_project, running, start
from tests.observed import asked, observed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.dev.terminal import Dev

pytestmark = [pytest.mark.enable_socket, pytest.mark.integration]

SHOP = """
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request

from a2a_serverless.aws.agents_app import make_agents_app


@asynccontextmanager
async def lifespan(app):
    print("the shop opens at NINE", flush=True)
    yield {"prices": {"coat": 100}}
    print("the shop closes", flush=True)


app = FastAPI(title="Shop", lifespan=lifespan)


@app.middleware("http")
async def note(request: Request, call_next):
    response = await call_next(request)
    response.headers["x-shop"] = request.url.path
    return response


@app.get("/prices")
def prices(request: Request) -> dict[str, int]:
    return request.state.prices


app.mount("/agents", make_agents_app())
"""
ASKER = 'answer = await task.ask("Which colour?")\nreturn f"A {answer.text()} coat."'


def with_application(root: Path, text: str = SHOP) -> Project:
    project = make_project(root, tailor="return task.text()", asker=ASKER)
    settings = root / "pyproject.toml"
    settings.write_text(settings.read_text() + 'application = "workshop.web:app"\n')
    (root / "workshop/web.py").write_text(text)
    return project


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return with_application(tmp_path_factory.mktemp("project"))


@pytest.fixture(scope="module")
def dev(project: Project) -> Iterator[Dev]:
    with running(project) as dev:
        yield dev


def origin(dev: Dev) -> str:
    assert dev.url.endswith("/agents")
    return dev.url.removesuffix("/agents")


def test_the_application_answers_with_its_middleware_lifespan_and_openapi(dev: Dev) -> None:
    with urlopen(f"{origin(dev)}/prices") as answer:
        assert (json.load(answer), answer.headers["x-shop"]) == ({"coat": 100}, "/prices")
    with urlopen(f"{origin(dev)}/openapi.json") as answer:
        described = json.load(answer)
    assert (described["info"]["title"], [*described["paths"]]) == ("Shop", ["/prices"])
    with urlopen(f"{dev.url}/tailor/.well-known/agent-card.json") as answer:
        card = json.load(answer)
        assert answer.headers["x-shop"] == "/agents/tailor/.well-known/agent-card.json"
    assert {one["url"] for one in card["supportedInterfaces"]} >= {f"{dev.url}/tailor"}


def test_a_page_of_another_origin_is_the_applications_matter_but_may_not_call_the_agents(dev: Dev) -> None:
    foreign = {"origin": "https://elsewhere.example.com"}
    with urlopen(Request(f"{origin(dev)}/prices", headers=foreign)) as answer:
        assert answer.status == 200
    with pytest.raises(HTTPError, match="403"):
        urlopen(Request(f"{dev.url}/agents", headers=foreign))


def test_a_task_runs_to_its_end_and_its_webhooks_are_verified(dev: Dev, project: Project) -> None:
    command = [PROGRAM, "send", "tailor", "a coat", "--inbox", dev.inbox.rstrip("/")]  # finds dev by its folder
    sent = subprocess.run(command, cwd=project.root, capture_output=True, text=True, timeout=DEADLINE_S, check=False)  # noqa: S603
    assert sent.returncode == 0, sent.stderr
    assert "a coat" in sent.stdout
    entries = InboxClient(dev.inbox, observed(origin(dev))).list_entries()
    assert [entry.state for entry in entries if entry.state][-1] == "completed"
    assert [entry.outcome for entry in entries if not entry.verified] == ["challenge"], entries
    assert asked(dev.url, ".well-known/jwks.json")["keys"]


def test_a_rehearsal_is_asked_for_below_the_path(dev: Dev, project: Project) -> None:
    task = dev.task("asker")
    dev.wait_for("task", task=task.id, state="input-required")
    command = [PROGRAM, "rehearse", "--json"]
    done = subprocess.run(command, cwd=project.root, capture_output=True, text=True, timeout=DEADLINE_S, check=False)  # noqa: S603
    assert "fits" in done.stdout, done.stderr


def test_a_changed_application_is_served_and_the_lifespan_of_before_ends(dev: Dev, project: Project) -> None:
    web = project.root / "workshop/web.py"
    web.write_text(SHOP.replace("NINE", "TEN").replace("100", "90"))
    dev.wait_for_line("the shop opens at TEN")
    dev.wait_for_line("the shop closes")
    dev.wait_for("reloaded")
    with urlopen(f"{origin(dev)}/prices") as answer:
        assert json.load(answer) == {"coat": 90}
    web.write_text(SHOP.replace('"/agents"', '"/elsewhere"'))
    assert "start `dev` again" in dev.wait_for("notLoaded")["traceback"]
    with urlopen(f"{origin(dev)}/prices") as answer:
        assert json.load(answer) == {"coat": 90}
    web.write_text(SHOP)
    dev.wait_for("reloaded")


REFUSED = {
    "import not_there": "No module named 'not_there'",
    "app = 5": "is no FastAPI application but a builtins.int: name the FastAPI object itself",
    SHOP.replace('app.mount("/agents", make_agents_app())', ""): 'has no agents: add app.mount("/agents", make_ag',
    SHOP.replace("yield", "raise OSError('no till')\n    yield"): "no till",
}


@pytest.mark.parametrize(("text", "why"), REFUSED.items())
def test_an_application_that_cannot_be_served_ends_dev_with_a_remedy(tmp_path: Path, text: str, why: str) -> None:
    with start(with_application(tmp_path, text)) as process:
        try:
            said = process.communicate(timeout=DEADLINE_S)[0]
        finally:
            process.kill()
    assert (why in said, process.returncode) == (True, 1), said
