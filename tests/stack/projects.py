"""A project in a folder of its own, built by a stand-in for SAM that installs what lies in ``packages``."""

from __future__ import annotations

import json
import platform
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pydantic

from a2a_serverless_tools.stack.library import CHECKOUT, FILES
from a2a_serverless_tools.stack.paths import Paths, find
from a2a_serverless_tools.stack.targets import Target

if TYPE_CHECKING:
    from collections.abc import Sequence

HERE = Target(
    f"python{sys.version_info.major}.{sys.version_info.minor}",
    {"x86_64": "x86_64", "aarch64": "arm64", "arm64": "arm64"}[platform.machine()],
)
ELSEWHERE = Target(HERE.runtime, "arm64" if HERE.architecture == "x86_64" else "x86_64")
FUNCTIONS = ("api", "relay", "rotator", "worker")
TEMPLATE = {
    "Resources": {
        f"{name.title()}Function": {
            "Type": "AWS::Serverless::Function",
            "Properties": {"CodeUri": f"functions/{name}/"},
        }
        for name in FUNCTIONS
    }
}
# Installs the packages for each function that names a folder, and those in ``packages-of-<function>`` for it,
# and notes what it was asked for.
FAKE_SAM = """#!{python}
import json, os, pathlib, shutil, sys
sys.path.insert(0, {checkout!r})
from tests.functions.template import parsed
given = dict(zip(sys.argv[2::1], sys.argv[3::1]))
template = parsed(pathlib.Path(given["--template-file"]).read_text())
built = pathlib.Path(given["--build-dir"])
built.mkdir(parents=True)
for name, one in template["Resources"].items():
    source = pathlib.Path(one["Properties"].get("CodeUri", "none"))
    if source.is_dir():
        shutil.copytree({packages!r}, built / name)
        alone = pathlib.Path({packages!r} + "-of-" + name)
        if alone.is_dir():
            shutil.copytree(alone, built / name, dirs_exist_ok=True)
        print("installed", name, (source / "requirements.txt").read_text().split())
        one["Properties"]["CodeUri"] = name
(built / "template.yaml").write_text(json.dumps(template))
print("called", *sys.argv[1:])
print("environment", *sorted(os.environ))
"""
NEEDED = ("pydantic", "pydantic_core", "annotated_types", "typing_inspection", "typing_extensions.py")
AGENT = (FILES / "examples/hello_agent.py").read_text().replace("hello", "mine").replace('    runs="inline",\n', "")


def make_project(root: Path, *, agents: Sequence[str] = ("my_agents.mine:mine",), has_template: bool = True) -> Paths:
    """A project with an agent, and what the library itself imports as installed packages.

    It has a template and functions of its own, or else the library's.
    """
    packages, compiled = root / "packages", root / ".a2a/compiled"
    packages.mkdir(parents=True)
    compiled.parent.mkdir()
    (CHECKOUT / ".a2a/compiled").mkdir(parents=True, exist_ok=True)
    compiled.symlink_to(CHECKOUT / ".a2a/compiled")  # by content, so all tests may share it
    for name in NEEDED:
        source = Path(pydantic.__file__).parents[1] / name
        if source.is_dir():
            shutil.copytree(source, packages / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, packages)
    for name in FUNCTIONS if has_template else ():
        (root / "functions" / name).mkdir(parents=True)
        (root / "functions" / name / "app.py").write_text("handler = print\n")
        (root / "functions" / name / "requirements.txt").write_text("a2a-serverless\n")
    with_agent(root, "")
    package = '[project]\nname = "mine"\ndependencies = ["a2a-serverless"]\n'
    (root / "pyproject.toml").write_text(f"{package}[tool.a2a-serverless]\nagents = {[*agents]}\n")
    if has_template:
        (root / "template.yaml").write_text(json.dumps(TEMPLATE, indent=1))
    program = FAKE_SAM.format(python=sys.executable, packages=str(packages), checkout=str(CHECKOUT))
    write_program(root / ".a2a/venvs/sam/bin/sam", program)
    return find(root)


def with_agent(root: Path, source: str) -> None:
    """Writes the agent, with these lines before its own."""
    file = root / "my_agents/mine.py"
    file.parent.mkdir(exist_ok=True)
    file.write_text(AGENT.replace("from a2a_serverless", f"{source}\nfrom a2a_serverless", 1))


def write_program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
