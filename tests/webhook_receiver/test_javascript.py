"""The JavaScript package: the vectors in each runtime, and a task's webhooks to each server that its README shows.

Skipped, and said so, without Node or without the packages that `make conformance-clients` installs.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.request import Request, urlopen

import pytest

from a2a_serverless_tools.stack import processes
from tests.docs.documents import blocks
from tests.stack.local import eventually
from tests.webhook_receiver.javascript import DENO, EXAMPLE, MODULES, NODE, PACKAGE, WORKERD, link
from tests.webhook_receiver.test_readme_commands import listens
from tests.webhook_receiver.test_real_deliveries import TOKEN, answering, deliver_a_task, issuer, refused_by, ring
from vectors.make import PATH

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from a2a_serverless.domain.key_ring import KeyRing
    from a2a_serverless.protocol.versions import ProtocolVersion

__all__ = ["issuer", "ring"]
pytestmark = pytest.mark.enable_socket

VECTORS: dict[str, Any] = json.loads(PATH.read_text())
VERDICTS = [[case["code"], case["challenge"]] for case in VECTORS["cases"]]
README = PACKAGE / "README.md"
SHOWN = [block.text for block in blocks("js", README)]
RECEIVER = SHOWN[0]
SERVERS = {
    "http": (NODE, "createServer"),
    "express": (NODE, 'from "express"'),
    "fastify": (NODE, 'from "fastify"'),
    "Hono": (DENO, 'from "hono"'),
    "Deno": (DENO, "receiver.fetch);"),
    "Workers": (WORKERD, "export default"),
    "Lambda": (NODE, "toHandler"),
}
# Calls the function as Lambda does, with the events that it reads line by line.
LAMBDA = """
import { createInterface } from "node:readline";
import { handler } from "./server.js";

console.log = console.error; // standard output has the results only
for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${JSON.stringify(await handler(JSON.parse(line)))}\\n`);
}
"""
WORKER = """using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "main", worker = .worker), (name = "internet", network = (allow = ["public", "private"]))],
  sockets = [(name = "http", address = "127.0.0.1:%(port)s", http = (), service = "main")],
);
const worker :Workerd.Worker = (
  modules = [%(modules)s],
  bindings = [%(bindings)s],
  compatibilityDate = "2025-09-01",
);
"""


def needs(program: object, name: str) -> None:
    if program is None:
        pytest.skip(f"JAVASCRIPT RECEIVER NOT TESTED: no {name}")


def served(name: str) -> str:
    """The README's file of a server."""
    (text,) = [text for text in SHOWN if SERVERS[name][1] in text and text is not RECEIVER]
    return text


def run(command: Sequence[str | Path], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=300)  # noqa: S603
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@contextmanager
def started(
    command: Sequence[str | Path], folder: Path, port: int, **variables: str
) -> Iterator[subprocess.Popen[str]]:
    """A server, once it listens."""
    environment = os.environ | variables | {"DENO_NO_UPDATE_CHECK": "1"}
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen(command, cwd=folder, env=environment, **pipes) as process:  # noqa: S603
        try:
            eventually(lambda: listens(port) or process.poll() is not None)
            yield process
        finally:
            process.terminate()


def worker(folder: Path, port: int, **bindings: str) -> list[str | Path]:
    """The command that serves the folder's ``server.js`` as a Worker. Its modules are what a bundler would read."""
    sources = [path for path in PACKAGE.glob("*.js") if path.name not in ("node.js", "lambda.js")]
    names = {"server.js": folder / "server.js"}
    names |= {"a2a-webhook-receiver" if path.name == "index.js" else path.name: path for path in sources}
    for path in sources:
        (folder / path.name).write_bytes(path.read_bytes())
    modules = [f'(name = "{name}", esModule = embed "{path.name}")' for name, path in names.items()]
    values = [f'(name = "{name}", text = "{value}")' for name, value in bindings.items()]
    config = WORKER % {"port": port, "modules": ", ".join(modules), "bindings": ", ".join(values)}
    (folder / "config.capnp").write_text(config)
    return [str(WORKERD), "serve", "config.capnp"]


def test_every_test_of_the_package_passes_in_node() -> None:
    needs(NODE, "node")
    printed = run([str(NODE), "--test", "tests/"], PACKAGE)
    assert {"# fail 0", "# skipped 0", "# cancelled 0"} <= {*printed.splitlines()}
    passed = re.search(r"^# pass (\d+)$", printed, re.MULTILINE)
    assert passed
    assert int(passed[1]) > len(VERDICTS) + 10


def test_every_test_of_the_verifier_passes_in_deno() -> None:
    needs(DENO, "Deno: make conformance-clients")
    printed = run([str(DENO), "test", "--no-check", "--allow-read", "--no-lock", "tests/verify.test.js"], PACKAGE)
    passed = re.search(r"(\d+) passed[^|]*\| 0 failed", printed)
    assert passed
    assert int(passed[1]) >= len(VERDICTS)


def test_workerd_reaches_the_verdict_of_every_vector(tmp_path: Path) -> None:
    needs(WORKERD, "workerd: make conformance-clients")
    port = processes.claim_port("workerd", 0)
    source = PATH.parents[2] / "tests/webhook_receiver/node/verdicts.js"
    (tmp_path / "server.js").write_bytes(source.read_bytes())
    with started(worker(tmp_path, port), tmp_path, port):
        request = Request(f"http://127.0.0.1:{port}/", PATH.read_bytes())
        with urlopen(request, timeout=120) as answer:
            assert json.load(answer) == VERDICTS


@pytest.mark.parametrize("version", ["1.0", "0.3"])
@pytest.mark.parametrize("name", SERVERS)
def test_a_server_of_the_readme_accepts_every_post_of_a_task(
    name: str, version: ProtocolVersion, ring: KeyRing, issuer: str, tmp_path: Path
) -> None:
    needs(SERVERS[name][0], f"program for {name}: make conformance-clients")
    if name in ("express", "fastify", "Hono") and not (MODULES / name.lower()).exists():
        pytest.skip(f"JAVASCRIPT RECEIVER NOT TESTED: no {name}: make conformance-clients")
    link(tmp_path)
    port = processes.claim_port(name, 0)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "receiver.js").write_text(RECEIVER)
    (tmp_path / "server.js").write_text(served(name).replace("8011", str(port)))
    play = {"Lambda": play_lambda}.get(name, play_server)
    attempts, printed = play(name, ring, issuer, version, port, tmp_path)
    assert {attempt.status for attempt in attempts} == {200}, printed
    accepted = [int(number) for number in re.findall(r"^accepted task=\S+ event=(\d+)$", printed, re.MULTILINE)]
    assert accepted == [attempt.n for attempt in attempts if attempt.n]
    assert re.search(r"^\S+ completed$", printed, re.MULTILINE)
    assert "refused code=no-signature: " in printed


def play_server(
    name: str, ring: KeyRing, issuer: str, version: ProtocolVersion, port: int, folder: Path
) -> tuple[list[Any], str]:
    url = f"http://127.0.0.1:{port}/webhook"
    variables = {"ISSUER": issuer, "AUDIENCE": url, "WEBHOOK_TOKEN": TOKEN}
    options = ["--no-check", "--no-lock", "--allow-all", "--node-modules-dir=manual"]
    command: list[str | Path] = [str(NODE), "server.js"]
    if SERVERS[name][0] == DENO:
        command = [str(DENO), "run", *options, "server.js"]
    elif SERVERS[name][0] == WORKERD:
        command = worker(folder, port, **variables)
    with started(command, folder, port, **variables) as process:
        attempts, _ = deliver_a_task(ring, issuer, url, version)
        assert refused_by(url) == 401
        process.terminate()
        printed, _ = process.communicate(timeout=60)
    return attempts, printed


def play_lambda(
    _name: str, ring: KeyRing, issuer: str, version: ProtocolVersion, _port: int, folder: Path
) -> tuple[list[Any], str]:
    (folder / "lambda.js").write_text(LAMBDA)

    def invoke(_path: str, headers: dict[str, str], body: bytes) -> tuple[int, bytes]:
        assert process.stdin
        assert process.stdout
        process.stdin.write(json.dumps({"headers": headers, "body": body.decode()}) + "\n")
        process.stdin.flush()
        answer = json.loads(process.stdout.readline())
        return answer["statusCode"], answer["body"].encode()

    with answering(invoke) as port:
        url = f"http://127.0.0.1:{port}/webhook"
        variables = {"ISSUER": issuer, "AUDIENCE": url, "WEBHOOK_TOKEN": TOKEN}
        pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        process = subprocess.Popen(  # noqa: S603
            [str(NODE), "lambda.js"], cwd=folder, env=os.environ | variables, text=True, **pipes
        )
        attempts, _ = deliver_a_task(ring, issuer, url, version)
        assert refused_by(url) == 401
        _, printed = process.communicate(timeout=60)
    return attempts, printed


def test_each_server_of_the_readme_is_ten_lines_or_little_more() -> None:
    assert {name: lines for name in SERVERS if (lines := len(served(name).strip().splitlines())) > 13} == {}


TYPED = """
import { makeReceiver, type ReplayStore } from "a2a-webhook-receiver";
import { toHandler } from "a2a-webhook-receiver/lambda";
import { toListener } from "a2a-webhook-receiver/node";
import { createServer } from "node:http";

const store: ReplayStore = { admit: async () => null, settle() {}, async release() {} };
const receiver = makeReceiver({
  issuer: "i", audience: "a", store, expectations: async (taskId) => [{ taskId, token: "t", expires: Infinity }],
  handle({ taskId, state, late }) { return late && state === "completed" ? taskId.length : null; },
});
createServer(toListener(receiver));
export const handler = toHandler(receiver);
// @ts-expect-error: a state that does not exist
makeReceiver({ issuer: "i", audience: "a", token: "t", handle: ({ state }) => state === "done" });
// @ts-expect-error: no handler
makeReceiver({ issuer: "i", audience: "a", token: "t" });
"""


@pytest.mark.integration
def test_the_types_are_those_that_an_application_needs(tmp_path: Path) -> None:
    needs(NODE, "node")
    needs(compiler := next(MODULES.glob("typescript/bin/tsc"), None), "TypeScript: make conformance-clients")
    link(tmp_path)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "main.ts").write_text(TYPED)
    options = ["--noEmit", "--strict", "--module", "nodenext", "--lib", "es2022", "--types", "node"]
    run([str(NODE), str(compiler), *options, "main.ts"], tmp_path)


def test_the_example_needs_the_package_only() -> None:
    assert json.loads((EXAMPLE / "package.json").read_text())["dependencies"] == {
        "a2a-webhook-receiver": "file:../../javascript"
    }
    assert (EXAMPLE / "../../javascript").resolve() == PACKAGE
