"""The api function with the project's own application, in which the agents are mounted, by API Gateway's events."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import textwrap
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless.aws.api_app import Served, make_served_app
from a2a_serverless.http.application import ApplicationError, import_application
from a2a_serverless.http.lambda_proxy import make_gateway_handler
from a2a_serverless.http.runtime import SEPARATOR, RuntimeApi, make_streaming_handler, serve
from tests.contexts import Context
from tests.handlers.test_event_loop import of_local_server
from tests.handlers.test_operations import Place
from tests.handlers.test_runtime import event
from tests.loggers import kept_loggers
from tests.manifests import manifest_of_samples
from tests.runtime_api import Invocation, runtime_api
from tests.test_wiring import ACCOUNT, NAMES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.types import Send

ROOT = Path(__file__).parents[2]
APPLICATION = """
import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import BackgroundTasks, FastAPI, Request, Response
from fastapi.responses import StreamingResponse

from a2a_serverless.aws.agents_app import make_agents_app

log = []


@asynccontextmanager
async def lifespan(app):
    log.append("begun")
    await asyncio.sleep(0)
    yield {"prices": {"coat": 100}}
    log.append("ended")


app = FastAPI(title="Shop", lifespan=lifespan)


@app.middleware("http")
async def note(request: Request, call_next):
    response = await call_next(request)
    response.headers["x-shop"] = request.url.path
    return response


@app.get("/prices")
async def prices(request: Request, response: Response) -> dict[str, int]:
    await asyncio.sleep(0)
    response.set_cookie("a", "1")
    response.set_cookie("b", "2")
    return request.state.prices


@app.get("/blocking")
def blocking(tasks: BackgroundTasks) -> list[str]:
    tasks.add_task(log.append, "afterwards")
    return log


@app.get("/lines")
async def lines() -> StreamingResponse:
    async def numbers() -> AsyncIterator[str]:
        for number in range(3):
            await asyncio.sleep(0)
            yield f"{number}\\n"

    return StreamingResponse(numbers(), media_type="text/plain")


@app.get("/broken")
async def broken() -> None:
    raise ValueError("a secret text")


app.mount("/agents", make_agents_app())
"""


@pytest.fixture(autouse=True)
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The import path of an application, in a folder of a project."""
    (tmp_path / "shop_web.py").write_text(APPLICATION)
    monkeypatch.syspath_prepend(tmp_path)
    with kept_loggers():
        yield "shop_web:app"
    sys.modules.pop("shop_web", None)


@contextmanager
def served(shop: str, place: Place) -> Iterator[Served]:
    app = make_served_app(place.edge, {"APPLICATION": shop})
    try:
        yield app
    finally:
        end(app.loop)


def end(loop: asyncio.AbstractEventLoop | None) -> None:
    """Closes a loop with its tasks, of which one waits for the end of the lifespan."""
    assert loop
    if not loop.is_closed():
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.get_loop()


def get(path: str) -> dict[str, Any]:
    return event("/{proxy+}", path)


def test_a_route_waits_and_has_the_lifespans_state_the_middlewares_and_all_cookies(shop: str) -> None:
    with served(shop, Place()) as app:
        answer = make_gateway_handler(*app)(get("/prices"), Context())
    assert (answer["statusCode"], answer["body"], answer["headers"]["x-shop"]) == (200, '{"coat":100}', "/prices")
    assert len(answer["multiValueHeaders"]["set-cookie"]) == 2


def test_the_lifespan_begins_once_and_a_background_task_ends_before_the_next_request(shop: str) -> None:
    with served(shop, Place()) as app:
        handler = make_gateway_handler(*app)
        assert json.loads(handler(get("/blocking"), Context())["body"]) == ["begun"]
        assert json.loads(handler(get("/blocking"), Context())["body"]) == ["begun", "afterwards"]


def test_an_error_is_answered_with_500_and_its_text_is_not_logged(shop: str, caplog: pytest.LogCaptureFixture) -> None:
    with served(shop, Place()) as app:
        handler = make_gateway_handler(*app)
        assert handler(get("/broken"), Context())["statusCode"] == 500
        assert handler(get("/prices"), Context())["statusCode"] == 200
    (record,) = [record for record in caplog.records if record.message == "application failed"]
    assert "secret" not in str(vars(record))


def test_the_agents_answer_below_their_path_and_a_task_is_there(shop: str) -> None:
    place = Place()
    task = place.send()
    with served(shop, place) as app:
        handler = make_gateway_handler(*app)
        sent = handler(get(f"/agents/echo/tasks/{task}"), Context())
        assert (sent["statusCode"], json.loads(sent["body"])["id"]) == (200, task)
        assert handler(get(f"/echo/tasks/{task}"), Context())["statusCode"] == 404
        described = json.loads(handler(get("/openapi.json"), Context())["body"])
    assert (described["info"]["title"], "/prices" in described["paths"]) == ("Shop", True)


@pytest.mark.parametrize("path", ["/agents", "/live/agents"])
def test_an_application_may_have_a_root_path_that_a_proxy_takes_away(shop: str, tmp_path: Path, path: str) -> None:
    text = APPLICATION.replace("app.mount(", 'app.root_path = "/live"\napp.mount(')
    (tmp_path / "shop_web.py").write_text(text)
    place = Place()
    task = place.send()
    with served(shop, place) as app:
        assert make_gateway_handler(*app)(get(f"{path}/echo/tasks/{task}"), Context())["statusCode"] == 200


def test_an_answer_may_have_no_headers() -> None:
    async def bare(_: object, __: object, send: Send) -> None:
        await send({"type": "http.response.start", "status": 204})
        await send({"type": "http.response.body"})

    with asyncio.Runner() as runner:
        assert make_gateway_handler(bare, runner.get_loop())(get("/prices"), Context())["statusCode"] == 204


@pytest.mark.parametrize("error", [None, ValueError("before the answer")])
def test_an_application_that_ends_without_an_answer_fails_the_invocation(error: Exception | None) -> None:
    async def silent(*_: object) -> None:
        if error:
            raise error

    with asyncio.Runner() as runner, pytest.raises(type(error) if error else RuntimeError):
        make_gateway_handler(silent, runner.get_loop())(get("/prices"), Context())


@pytest.mark.enable_socket
def test_the_loop_that_streams_posts_each_answer_in_the_streamed_form(shop: str) -> None:
    paths = ["/prices", "/lines", "/agents/.well-known/agent-card.json", "/broken"]
    invocations = [Invocation(json.dumps(get(path)).encode()) for path in paths]
    waiting = iter(invocations)
    with served(shop, Place()) as app, runtime_api(lambda: next(waiting)) as server:
        handler = make_streaming_handler(app.app, make_gateway_handler(*app), app.loop)
        left = iter([True] * len(paths))
        serve(RuntimeApi(server.address), handler, lambda: next(left, False), loop=app.loop)
    answers = {}
    for path, invocation in zip(paths, invocations, strict=True):
        prelude, _, body = b"".join(invocation.posted()).partition(SEPARATOR)
        answers[path] = json.loads(prelude), body
    assert answers["/prices"][0]["multiValueHeaders"]["set-cookie"][1].startswith("b=2")
    assert (answers["/prices"][0]["headers"]["x-shop"], answers["/prices"][1]) == ("/prices", b'{"coat":100}')
    assert answers["/lines"][1] == b"0\n1\n2\n"
    assert answers["/agents/.well-known/agent-card.json"][0]["statusCode"] in {200, 404}
    assert answers["/broken"][0]["statusCode"] == 500


PAID = {"fastapi", "a2a_serverless.http.application", "a2a_serverless.http.hosting", "a2a_serverless.http.threads"}


@pytest.mark.parametrize("names_it", [False, True])
def test_only_a_function_with_an_application_imports_what_serves_it(
    shop: str, tmp_path: Path, *, names_it: bool
) -> None:
    """The second line is what the started function answers to an event for a route of the application."""
    names = (*NAMES, "ACCESS_TABLE_NAME", "DELIVERY_QUEUE_URL", "PUBLIC_TABLE_NAME")
    environment = {**dict.fromkeys(names, "some"), **ACCOUNT, "AGENTS_FILE": str(manifest_of_samples())}
    code = f"""
        import json, runpy, sys
        sys.path[:0] = [{str(tmp_path)!r}, {str(ROOT)!r}]
        handler = runpy.run_path({str(ROOT / "functions/api/app.py")!r})["handler"]
        print(json.dumps(sorted(sys.modules)))
        from tests.contexts import Context
        print(json.dumps(handler({get("/prices")!r}, Context())["statusCode"]))
    """
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", textwrap.dedent(code)],
        env=environment | ({"APPLICATION": shop} if names_it else {}),
        capture_output=True,
        text=True,
        check=True,
    )
    imported, status = (json.loads(line) for line in done.stdout.splitlines()[-2:])
    assert {*imported} & PAID == (PAID if names_it else set())
    assert "anyio.streams.memory" not in imported, "the first request for an application imports it"
    assert status == (200 if names_it else 404)


@pytest.mark.enable_socket
def test_the_function_that_streams_serves_the_application_as_a_process(shop: str, tmp_path: Path) -> None:
    names = (*NAMES, "ACCESS_TABLE_NAME", "DELIVERY_QUEUE_URL", "PUBLIC_TABLE_NAME")
    environment = {**dict.fromkeys(names, "some"), **ACCOUNT, "AGENTS_FILE": str(manifest_of_samples())}
    invocations = [Invocation(json.dumps(get(path)).encode()) for path in ("/prices", "/lines")]
    waiting = iter(invocations)
    with runtime_api(lambda: next(waiting, None) or Invocation(b"{}")) as server:
        more = {"APPLICATION": shop, "AWS_LAMBDA_RUNTIME_API": server.address, "PYTHONPATH": str(tmp_path)}
        command = [sys.executable, str(ROOT / "functions/api/streaming.py")]
        with subprocess.Popen(command, env=environment | more, stdout=subprocess.DEVNULL) as process:  # noqa: S603
            answers = [b"".join(invocation.posted()).partition(SEPARATOR)[2] for invocation in invocations]
            process.kill()
    assert answers == [b'{"coat":100}', b"0\n1\n2\n"]


WRONG = {
    "": "shop_wrong:app is no application: shop_wrong has no app",
    "app = 5": "shop_wrong:app is no FastAPI application but a builtins.int: name the FastAPI object itself",
    "def app(): pass": "is no FastAPI application but a builtins.function: name the FastAPI object itself",
    "from fastapi import FastAPI\napp = FastAPI()": (
        'has no agents: add app.mount("/agents", make_agents_app()) of a2a_serverless.aws.agents_app to it'
    ),
}
MOUNTED = """
from fastapi import FastAPI
from a2a_serverless.aws.agents_app import make_agents_app
app = FastAPI()
"""


def imported_from(tmp_path: Path, text: str) -> str:
    (tmp_path / "shop_wrong.py").write_text(text)
    try:
        return import_application("shop_wrong:app").path
    finally:
        sys.modules.pop("shop_wrong", None)


@pytest.mark.parametrize(("text", "why"), WRONG.items())
def test_an_object_that_is_no_application_with_agents_is_refused_with_a_remedy(
    tmp_path: Path, text: str, why: str
) -> None:
    with pytest.raises(ApplicationError) as refused:
        imported_from(tmp_path, text)
    assert why in str(refused.value)


@pytest.mark.parametrize(
    ("lines", "path"),
    [
        ('app.mount("/agents", make_agents_app())', "/agents"),
        ('app.mount("/", make_agents_app())', ""),
        ('inner = FastAPI()\ninner.mount("/b", make_agents_app())\napp.mount("/a", inner)', "/a/b"),
    ],
)
def test_the_path_of_the_agents_is_that_of_their_mount(tmp_path: Path, lines: str, path: str) -> None:
    assert imported_from(tmp_path, MOUNTED + lines) == path


@pytest.mark.parametrize("paths", [["/a", "/b"], ["/{tenant}"]])
def test_agents_have_one_path_without_parameters(tmp_path: Path, paths: list[str]) -> None:
    with pytest.raises(ApplicationError, match="has the agents at"):
        imported_from(tmp_path, MOUNTED + "\n".join(f"app.mount({path!r}, make_agents_app())" for path in paths))


def test_a_function_whose_lifespan_fails_does_not_start(tmp_path: Path) -> None:
    fail = """
@asynccontextmanager
async def fail(app):
    open("/no/such")
    yield
"""
    text = MOUNTED.replace("FastAPI()", "FastAPI(lifespan=fail)") + 'app.mount("/agents", make_agents_app())\n'
    (tmp_path / "shop_fails.py").write_text(f"from contextlib import asynccontextmanager\n{fail}{text}")
    with pytest.raises(FileNotFoundError):
        make_served_app(of_local_server(Place().edge), {"APPLICATION": "shop_fails:app"})
