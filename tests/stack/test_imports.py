"""An agent that cannot be imported stops the build, by name, before anything is replaced."""

import io
import json
import os
import platform
import shutil
import sys
import zipfile
from pathlib import Path

import pydantic
import pytest
from rich.console import Console

from a2a_serverless.stack import local_stack, processes, sam
from a2a_serverless.stack.errors import StackError
from a2a_serverless.stack.paths import CHECKOUT, Paths, find

HERE = sam.Target(
    f"python{sys.version_info.major}.{sys.version_info.minor}",
    {"x86_64": "x86_64", "aarch64": "arm64", "arm64": "arm64"}[platform.machine()],
)
ELSEWHERE = sam.Target(HERE.runtime, "arm64" if HERE.architecture == "x86_64" else "x86_64")
# Stands in for SAM: puts the checkout's package into every function's folder, and what lies in `packages`.
FAKE_SAM = """#!{python}
import pathlib, shutil, sys
folder = pathlib.Path(sys.argv[sys.argv.index("--build-dir") + 1])
for name in ("Api", "Rotator", "Worker"):
    shutil.copytree("shared", folder / f"{{name}}Function")
    shutil.copytree("packages", folder / f"{{name}}Function", dirs_exist_ok=True)
    (folder / f"{{name}}Function/app.py").write_text("")
shutil.copy("template.yaml", folder)
"""
AGENTS = "sample_agents.travel:travel, my_agents.mine:mine"
TEMPLATE = {"Globals": {"Function": {"Environment": {"Variables": {"AGENTS": AGENTS}}}}, "Resources": {}}
INSTALLED = Path(pydantic.__file__).parents[1]
SLEEP = "import time\ntime.sleep(600)\n"


@pytest.fixture
def checkout(tmp_path: Path) -> Paths:
    """A checkout with the agents of this one and one more, whose file is up to the test."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(CHECKOUT / "shared", tmp_path / "shared", ignore=ignored)
    (tmp_path / "packages").mkdir()
    for name in ("pydantic", "pydantic_core", "annotated_types", "typing_inspection"):
        shutil.copytree(INSTALLED / name, tmp_path / "packages" / name, ignore=ignored)
    shutil.copy(INSTALLED / "typing_extensions.py", tmp_path / "packages")
    for name in (*sam.INPUTS, ".a2a/venvs/emulator/bin/ministack"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    fake = tmp_path / ".a2a/venvs/sam/bin/sam"
    fake.parent.mkdir(parents=True)
    fake.write_text(FAKE_SAM.format(python=sys.executable))
    for program in (fake, tmp_path / ".a2a/venvs/emulator/bin/ministack"):
        program.chmod(0o755)
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "template.yaml").write_text(json.dumps(TEMPLATE))
    return find(tmp_path)


def with_agent(checkout: Paths, source: str) -> Paths:
    example = (CHECKOUT / "examples/hello_agent.py").read_text().replace("hello", "mine")
    file = checkout.root / "shared/my_agents/mine.py"
    file.write_text(example.replace("from a2a_serverless", f"{source}\nfrom a2a_serverless", 1))
    return checkout


def refused(checkout: Paths, target: sam.Target = HERE) -> str:
    with pytest.raises(StackError) as raised:
        sam.build(checkout, target)
    assert [path for path in checkout.builds.iterdir() if path.is_dir()] == [], (
        "no build is left that could be deployed"
    )
    return str(raised.value)


@pytest.mark.parametrize("target", [HERE, ELSEWHERE], ids=["for this machine", "for another one"])
def test_a_build_names_the_agent_whose_package_is_missing_and_what_helps(checkout: Paths, target: sam.Target) -> None:
    said = refused(with_agent(checkout, "import numpy.linalg"), target)
    missing = "build: my_agents.mine:mine needs the module 'numpy', which is not there (in the zip of api, worker)"
    assert said.splitlines()[0] == missing
    assert 'what helps: docs/agents.md, "Packages that an agent needs"' in said


def test_what_the_checkout_s_own_environment_has_and_the_zip_has_not_is_missing(checkout: Paths) -> None:
    said = refused(with_agent(checkout, "import yaml, typer"))
    assert "needs the module 'yaml'" in said


def test_what_is_trimmed_from_a_function_that_runs_the_agents_is_missing_there(checkout: Paths) -> None:
    said = refused(with_agent(checkout, "from a2a_serverless.testing import Rehearsal"))
    assert "my_agents.mine:mine needs the module 'a2a_serverless.testing', which is not there" in said


WRONG = {
    "a name that nobody knows": ("unknown()", "NameError: name 'unknown' is not defined"),
    "no Python": ("def (", "SyntaxError: "),
    "a wrong value": ("raise ValueError('no')", "ValueError: no"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_build_names_the_agent_that_cannot_be_imported_because_of(checkout: Paths, case: str) -> None:
    source, reason = WRONG[case]
    assert f"build: my_agents.mine:mine cannot be imported: {reason}" in refused(with_agent(checkout, source))


FINE = """
import os
try:
    import numpy  # a package that may be missing
except ImportError:
    numpy = None

def used():
    import numpy  # a package that is imported when it is used

KEY = os.environ["MY_KEY"]  # a variable that the function will have
"""
LOUD = 'print("hello", flush=True)'


@pytest.mark.parametrize("source", [FINE, LOUD], ids=["careful", "loud"])
@pytest.mark.parametrize("target", [HERE, ELSEWHERE], ids=["for this machine", "for another one"])
def test_an_agent_that_can_be_imported_is_built(checkout: Paths, source: str, target: sam.Target) -> None:
    assert (sam.build(with_agent(checkout, source), target).path / "WorkerFunction.zip").exists()


def test_an_agent_that_is_registered_and_has_no_file_is_named(checkout: Paths) -> None:
    assert "my_agents.mine:mine cannot be imported: ModuleNotFoundError: No module named" in refused(checkout)


def test_the_zips_that_make_cards_have_a_manifest_and_only_those_that_run_agents_their_code(checkout: Paths) -> None:
    built = sam.build(with_agent(checkout, "import json"), HERE).path
    for name, runs in (("Api", True), ("Rotator", False), ("Worker", True)):
        with zipfile.ZipFile(built / f"{name}Function.zip") as archive:
            agents = json.loads(archive.read("agents.json"))["agents"]
            assert [one["id"] for path in AGENTS.split(", ") for one in agents[path]] == ["travel", "mine"]
            assert ("my_agents/mine.py" in archive.namelist()) == runs
            assert ("sample_agents/travel.py" in archive.namelist()) == runs


def test_an_agent_that_cannot_be_described_yet_is_imported_by_all_who_make_cards(checkout: Paths) -> None:
    built = sam.build(with_agent(checkout, "import os\nKEY = os.environ['MY_KEY']"), HERE).path
    with zipfile.ZipFile(built / "RotatorFunction.zip") as archive:
        assert list(json.loads(archive.read("agents.json"))["agents"]) == ["sample_agents.travel:travel"]
        assert "my_agents/mine.py" in archive.namelist()


REFUSED = {
    "lacks a package in the zips": ("import numpy", r"build: my_agents\.mine:mine needs the module 'numpy'"),
    "lacks a package here": (
        "import only_there",
        r"api: my_agents\.mine:mine cannot be imported in .*No module named 'only_there'",
    ),
}


@pytest.mark.enable_socket
@pytest.mark.parametrize("case", REFUSED)
def test_the_running_stack_stays_as_it_is_when_an_agent(checkout: Paths, case: str) -> None:
    source, reason = REFUSED[case]
    (checkout.root / "packages/only_there.py").touch()
    names = ("api", "emulator", "receiver")
    running = [
        processes.start(checkout, name, [sys.executable, "-c", SLEEP], os.environ, port=processes.claim_port(name, 0))
        for name in names
    ]
    try:
        with pytest.raises(StackError, match=reason):
            local_stack.up(with_agent(checkout, source), local_stack.Options(), Console(file=io.StringIO()))
        assert sorted(process.name for process in processes.started(checkout)) == [*names]
    finally:
        for process in running:
            processes.stop(checkout, process, seconds=0)
