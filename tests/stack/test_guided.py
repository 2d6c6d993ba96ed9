"""SAM's own guided conversation, held at a terminal against the emulator: what it was told stays told."""

import os
import pty
import re
import select
import shutil
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from a2a_serverless_tools.stack import sam
from a2a_serverless_tools.stack.emulator import aws_environment, without_aws
from a2a_serverless_tools.stack.targets import this_machine
from tests.functions.template import ROOT, template
from tests.observed import asked
from tests.stack.local import LocalStack

pytestmark = [pytest.mark.enable_socket, pytest.mark.integration]

NAME = "second"
TIMEOUT_SECONDS = 240
PROMPT = re.compile(r"(?:^|[\n\r\t])\s*([^\n\r\t\[]+?) \[[^\]\n]*\]: $")
COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
PARAMETER = "Parameter "
ANSWERS = {
    "CorsOrigins": "https://app.example.com",
    "OidcAudience": "agents",
    "OidcClaims": "owner=oid,scopes=scope scp",
}


class Terminal:
    """Somebody at a terminal, in a folder that has what ``make build`` leaves."""

    def __init__(self, stack: LocalStack, folder: Path) -> None:
        self.stack = stack
        self.folder = folder
        self.said = ""
        shutil.copyfile(ROOT / "samconfig.example.toml", folder / "samconfig.toml")
        (folder / ".aws-sam").mkdir()
        (folder / ".aws-sam/build").symlink_to(stack.running.build.path)

    def deploy(self, *arguments: str, answers: Mapping[str, str] | None = None) -> None:
        """``sam deploy`` to its end. A question is answered as ``answers`` say, or by the return key."""
        mine, theirs = pty.openpty()
        environment = without_aws(os.environ) | aws_environment(self.stack.deployment.endpoint)
        process = subprocess.Popen(  # noqa: S603 - SAM, by path
            [self.stack.paths.sam, "deploy", *arguments],
            cwd=self.folder,
            env={**environment, "SAM_CLI_TELEMETRY": "0", "SAM_CLI_POLL_DELAY": "0.5", "COLUMNS": "400"},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)
        try:
            self._talk(mine, answers or {})
            assert process.wait(TIMEOUT_SECONDS) == 0, self.said[-4000:]
        finally:
            process.kill()
            process.wait()
            os.close(mine)

    def _talk(self, terminal: int, answers: Mapping[str, str]) -> None:
        self.said, give_up = "", time.monotonic() + TIMEOUT_SECONDS
        while time.monotonic() < give_up:
            if not select.select([terminal], [], [], 1)[0]:
                continue
            try:
                heard = os.read(terminal, 65536)
            except OSError:  # the other side is closed
                return
            if not heard:
                return
            self.said += COLOURS.sub("", heard.decode(errors="replace"))
            if asked_for := PROMPT.search(self.said):
                self.said += "\n"
                os.write(terminal, answers.get(asked_for[1].strip(), "").encode() + b"\n")
        pytest.fail(f"no end: {self.said[-4000:]}")

    def parameters(self) -> dict[str, str]:
        """What the stack was deployed with."""
        cloudformation = sam.client("cloudformation", self.stack.deployment.endpoint)
        (found,) = cloudformation.describe_stacks(StackName=NAME)["Stacks"]
        return {one["ParameterKey"]: one["ParameterValue"] for one in found["Parameters"]}


def test_answers_survive_a_changed_one_and_the_next_plain_deployment_and_the_stack_stands_beside_the_other(
    stack: LocalStack, tmp_path: Path
) -> None:
    terminal = Terminal(stack, tmp_path)
    here = {**this_machine().parameters, "ResponseStreaming": "off"}
    told = {f"{PARAMETER}{name}": value for name, value in {**ANSWERS, **here}.items()}
    always = {"Deploy this changeset?": "y"}
    terminal.deploy("--guided", answers={"Stack Name": NAME, **told, **always})
    first = terminal.parameters()
    assert first == {name: one["Default"] for name, one in template()["Parameters"].items()} | ANSWERS | here
    asked_for = re.findall(rf"{PARAMETER}(\w+) \[", terminal.said)
    assert sorted(asked_for) == sorted(template()["Parameters"])

    terminal.deploy("--guided", answers={f"{PARAMETER}Models": "text=writer", **always})
    assert terminal.parameters() == first | {"Models": "text=writer"}

    terminal.deploy("--no-fail-on-empty-changeset", answers=always)
    assert terminal.parameters() == first | {"Models": "text=writer"}

    beside = sam.outputs(stack.deployment.endpoint, NAME)
    assert asked(beside.rest_url, ".well-known/jwks.json")["keys"]
    assert asked(stack.deployment.rest_url, "agents")["agents"]
    own, other = (dict(one.outputs) for one in (stack.deployment, beside))
    assert own.pop("WorkerService") == other.pop("WorkerService")
    assert not {*own.values()} & {*other.values()}


def test_answers_are_in_no_tracked_file() -> None:
    assert "samconfig.toml" in (ROOT / ".gitignore").read_text().split()
    assert "parameter_overrides" not in (ROOT / "samconfig.example.toml").read_text()
