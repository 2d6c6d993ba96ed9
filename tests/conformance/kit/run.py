"""A2A's conformance kits against the local stack: ``make prove KIND=conformance TCK=<a clone of a2aproject/a2a-tck>``.

The kit is no part of the project. What is run are the two commits below, each in an environment of its own.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from a2a_serverless_tools.stack import local_stack, paths, processes, sam
from a2a_serverless_tools.stack.emulator import aws_environment, without_aws
from tests.conformance.kit import results
from tests.manifests import manifest_of_samples

ROOT = Path(__file__).parents[3]
WORK = ROOT / ".a2a/conformance"
DOCUMENT = ROOT / "docs/conformance.md"
KITS = {  # the branch 1.0-dev, and the tag 0.3.0.beta4
    "1.0": "357c4a87afa2818731590647cccbea31c31733a2",
    "0.3": "eb1f804c27ea25db8805264d9ed2d7ca077a7776",
}
SWITCHES = {
    "AGENTS_FILE": str(manifest_of_samples()),
    "WEBHOOK_OWNERSHIP": "off",
    "WEBHOOK_LOCAL_ALLOW": "127.0.0.1:*,localhost:*",
}
SWITCHES_OF = {"1.0": {}, "0.3": {"BLOCKING_SECONDS": "1"}}
SHAPES = {"1.0": "v1", "0.3": "v0_3"}  # of the cards, by the kit's version
API = "tests.conformance.kit.api:make_app"
SUITE = "tests/compatibility/"
OLD_SUITES = ("tests/mandatory/", "tests/optional/")
READING = ("-p", "reading")
ONLY_C = ("-k", "TestCapabilityExtensionRequired")


@dataclass(frozen=True)
class Run:
    """One run of a kit: against which agent, of the api under uvicorn or of the deployed function."""

    name: str
    kit: str
    agent: str
    arguments: tuple[str, ...]
    deployed: bool = False


RUNS = (
    Run("A", "1.0", "conformance", (SUITE,)),
    Run("B", "1.0", "conformance-plain", (SUITE,)),
    Run("C", "1.0", "conformance-extension", (SUITE, *ONLY_C)),
    Run("A (1.0.1)", "1.0", "conformance", (SUITE, *READING)),
    Run("B (1.0.1)", "1.0", "conformance-plain", (SUITE, *READING)),
    Run("B (deployed, 1.0.1)", "1.0", "conformance-plain", (SUITE, *READING), deployed=True),
    Run("0.3 JSON-RPC", "0.3", "conformance-0.3", (*OLD_SUITES, "--test-scope=all")),
    Run("0.3 REST", "0.3", "conformance-0.3", (*OLD_SUITES, "--test-scope=all", "--transports=rest")),
)


def checked_out(clone: Path, version: str) -> Path:
    """The kit's folder for a version, with its environment; made when it is not there yet."""
    folder = WORK / f"kit-{version}-{KITS[version][:7]}"
    if not (folder / ".venv/.installed").exists():
        folder.mkdir(parents=True, exist_ok=True)
        archive = subprocess.run(  # noqa: S603 - a folder that its owner has named
            ["git", "-C", str(clone), "archive", KITS[version]],  # noqa: S607 - the shell's git
            capture_output=True,
            check=True,
        )
        subprocess.run(["tar", "-x", "-C", str(folder)], input=archive.stdout, check=True)  # noqa: S603, S607 - as above
        uv = Path(sys.executable).with_name("uv")
        subprocess.run([uv, "venv", "--quiet", "--clear", "--python", sys.executable, folder / ".venv"], check=True)  # noqa: S603 - our own
        subprocess.run([uv, "pip", "install", "--quiet", "--python", folder / ".venv", "-e", folder], check=True)  # noqa: S603 - as above
        (folder / ".venv/.installed").touch()
    return folder


def play(run: Run, kit: Path, base_url: str) -> None:
    """One run. It leaves a report, and beside it what the kit printed."""
    _report(run).unlink(missing_ok=True)
    option = "--sut-host" if run.kit == "1.0" else "--sut-url"
    command = [str(kit / ".venv/bin/python"), "-m", "pytest", *run.arguments, f"{option}={base_url}/{run.agent}"]
    command += ["-q", "--tb=short", f"--junitxml={_report(run)}"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent), "TCK_STREAMING_TIMEOUT": "2"}
    with _report(run).with_suffix(".log").open("w") as log:
        subprocess.run(command, cwd=kit, env=environment, stdout=log, stderr=log, check=False)  # noqa: S603 - as above


def main() -> None:
    """Plays the runs, writes the document from all reports that there are, and names what nobody has explained."""
    arguments, console = _arguments(), Console()
    if not arguments.again:
        _play(paths.find(state=WORK / "state"), arguments, console)
    reports = {run.name: _report(run) for run in RUNS if _report(run).exists()}
    cases = [case for name, report in reports.items() for case in results.read(name, report)]
    if len(reports) == len(RUNS):
        DOCUMENT.write_text(_document(DOCUMENT.read_text(), cases, min(map(results.day, reports.values()))))
    for case in (open_ends := results.unexplained(cases)):
        console.print(f"{case.run}: {case.test}: {case.outcome}: {case.text}", markup=False, soft_wrap=True)
    sys.exit(1 if open_ends else 0)


def _play(here: paths.Paths, arguments: argparse.Namespace, console: Console) -> None:
    """The runs, each on the variant of the stack that it needs."""
    base_url, variant = "", None
    try:
        for run in (run for run in RUNS if arguments.only in run.name):
            kit = checked_out(arguments.kit, run.kit)
            if variant != (variant := (run.kit, run.deployed)):
                base_url = _brought_up(here, arguments, run, console)
            play(run, kit, base_url)
            console.print(f"{run.name}: {results.counts(results.read(run.name, _report(run)))}", soft_wrap=True)
    finally:
        local_stack.down(here, console)


def _brought_up(here: paths.Paths, arguments: argparse.Namespace, run: Run, console: Console) -> str:
    """The address of a stack for a run: with its switches, its cards, and no idempotency."""
    ports = arguments.emulator_port, arguments.api_port, arguments.receiver_port
    switches = {**SWITCHES, **SWITCHES_OF[run.kit]}
    options = local_stack.Options(*ports, switches=switches)
    running = local_stack.up(here, options, console)
    if run.deployed:
        switches |= {"PUBLIC_BASE_URL": running.deployment.rest_url}
        running = local_stack.up(here, local_stack.Options(*ports, switches=switches), console)
        _replace_handler(running.deployment)
    else:
        processes.stop(here, running.api)
        api = local_stack.start_api(here, running.build, running.deployment, options, API)
        processes.wait_until_ready(api, "/", seconds=local_stack.READY_S)
    _publish_cards(running.deployment, SHAPES[run.kit])
    return running.deployment.rest_url if run.deployed else options.api_url


def _replace_handler(deployment: sam.Deployment) -> None:
    """Lets the deployed api answer by ``function.py``."""
    variables = sam.function_environment(deployment, "api") | {"PYTHONPATH": str(Path(__file__).parent)}
    sam.client("lambda", deployment.endpoint).update_function_configuration(
        FunctionName=deployment.outputs["ApiFunctionName"],
        Handler="function.handler",
        Environment={"Variables": variables},
    )


def _publish_cards(deployment: sam.Deployment, shape: str) -> None:
    rotator = sam.function_environment(deployment, "rotator") | aws_environment(deployment.endpoint)
    command = [sys.executable, "-m", "tests.conformance.kit.cards", shape]
    subprocess.run(command, cwd=ROOT, env=without_aws(os.environ) | rotator, check=True)  # noqa: S603 - our own


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kit", type=Path, help="a clone of https://github.com/a2aproject/a2a-tck")
    parser.add_argument("--only", default="", help="part of a run's name")
    parser.add_argument("--again", action="store_true", help="run nothing; read the reports that are there")
    for part, port in (("emulator", 4566), ("api", 8000), ("receiver", 8010)):
        variable = os.environ.get(f"A2A_{part.upper()}_PORT", port)
        parser.add_argument(f"--{part}-port", type=int, default=int(variable))
    return parser.parse_args()


def _document(text: str, cases: list[results.Case], day: str) -> str:
    """The document with the tables of these cases."""
    before, _, rest = text.partition("<!-- drawn: results -->\n")
    _, _, after = rest.partition("<!-- end -->")
    commits = ", ".join(f"{version}: `{commit}`" for version, commit in KITS.items())
    heading = f"Run on {day}. Commits of the kit: {commits}."
    lines = [
        heading,
        "",
        *results.figures(cases),
        "",
        "## Every reason why a test did not pass",
        "",
        *results.table(cases),
    ]
    return f"{before}<!-- drawn: results -->\n\n" + "\n".join(lines) + f"\n\n<!-- end -->{after}"


def _report(run: Run) -> Path:
    return WORK / f"{''.join(letter if letter.isalnum() else '-' for letter in run.name)}.xml"


if __name__ == "__main__":
    main()
