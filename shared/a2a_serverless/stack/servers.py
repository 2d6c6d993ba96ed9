"""The servers beside the emulator: the receiver, and the api under uvicorn, because the emulator buffers streams."""

import os
import sys
from collections.abc import Mapping

from a2a_serverless.stack.emulator import aws_environment, without_aws
from a2a_serverless.stack.paths import Paths
from a2a_serverless.stack.processes import Process, claim_port, start, wait_until_ready
from a2a_serverless.stack.sam import Deployment, function_environment

API_APP = "a2a_serverless.wiring.api:make_app"
RECEIVER_APP = "app:app"


def start_api(paths: Paths, deployment: Deployment, *, port: int = 8000, app: str = API_APP) -> Process:
    """Serve the api function's app on 127.0.0.1 against the deployed resources, with the environment of its function.

    `app` names a function that returns an ASGI app.
    """
    env = function_environment(deployment, "api") | aws_environment(deployment.endpoint)
    api = _serve(paths, "api", [app, "--app-dir", str(paths.root / "shared")], env, port)
    wait_for(api)
    return api


def start_receiver(paths: Paths, env: Mapping[str, str], *, port: int = 8010, app: str = RECEIVER_APP) -> Process:
    """Serve the webhook receiver on 127.0.0.1. `env` is its configuration.

    Return at once: it depends on no other server, so it starts while the others do. See `wait_for`.
    """
    arguments = [app, "--app-dir", str(paths.root / "webhook_receiver")]
    return _serve(paths, "receiver", arguments, env, port)


def wait_for(server: Process) -> None:
    """Return when a server answers. Raises `StackError` if it ends or takes too long."""
    wait_until_ready(server, "/", seconds=30)


def _serve(paths: Paths, name: str, arguments: list[str], env: Mapping[str, str], port: int) -> Process:
    port = claim_port(name, port)
    command = [sys.executable, "-P", "-m", "a2a_serverless.stack.serve", *arguments, "--port", str(port)]
    return start(paths, name, command, without_aws(os.environ) | dict(env), port=port)
