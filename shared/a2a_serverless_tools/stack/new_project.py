"""Writes a new project: one agent, of this library or of a framework, its test, settings, a workflow, and the wheels.

The template and the functions are the library's, until `eject` copies them into the project.
"""

import json
import keyword
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import packages_distributions
from pathlib import Path
from tempfile import TemporaryDirectory

from a2a_serverless_tools.project import LIBRARY, Project
from a2a_serverless_tools.project_check import check_project
from a2a_serverless_tools.stack.environments import find_uv, package_index
from a2a_serverless_tools.stack.errors import StackError
from a2a_serverless_tools.stack.library import FILES, read_requirements
from a2a_serverless_tools.stack.targets import Target
from a2a_serverless_tools.stack.wheels import make_wheels

NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
LONGEST = 50
EXAMPLE, WHEELS = "my-agents", "wheels"
EJECTED = ("template.yaml", "observability.yaml", "functions", "events")
_FOLDERS = {"events", "functions", "tests", WHEELS}
_PYTEST = {"iniconfig", "packaging", "pluggy", "pytest"}  # which runs the project's tests
_ABOUT = """\
`my_agents/shop.py` is the agent. A script answers in the place of a model, also in the test; the first lines of the
module tell how to name a model. Variables are set in `[tool.a2a-serverless.environment]` of `pyproject.toml`. An agent
that you have goes into a module beside it: give it to the same function, and list the result in `pyproject.toml`.

On this machine"""


def create(
    folder: Path, make: Callable[[Path], Mapping[str, Path]] = make_wheels, *, framework: str = ""
) -> list[Path]:
    """Write a project into a new folder, whose name is the project's; return its files.

    Its agent is one of ``framework``, or of this library without one. ``make`` writes the wheels of this project into a
    folder, and returns them by distribution. Raises `StackError` for a name that cannot work, or if the folder exists.
    """
    name = folder.name
    if why := unusable(name, _example(framework).read_text()):
        raise StackError("init", why, remedy="another name")
    if folder.exists():
        raise StackError("init", f"{folder} exists already", remedy="another name, or another folder")
    with TemporaryDirectory() as temporary:
        wheels = make(Path(temporary))
        (folder / WHEELS).mkdir(parents=True)
        for wheel in wheels.values():
            shutil.copyfile(wheel, folder / WHEELS / wheel.name)
        for place, text in _files(name, framework, wheels):
            file = folder / place
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
    return sorted(path for path in folder.rglob("*") if path.is_file())


def eject(project: Project) -> list[Path]:
    """Write the library's template, functions and events into a project, whose builds use them from then on.

    Return the files. The functions' requirements name the library, which a build takes from where it is installed. The
    events are for the project's first agent. Raises `StackError` if one of them exists, and `ProjectError`.
    """
    if there := [name for name in EJECTED if (project.root / name).exists()]:
        raise StackError("eject", f"{', '.join(there)} exists already", remedy="move it away")
    agent = next(one["id"] for descriptions in check_project(project).agents.values() for one in descriptions)
    literal = json.dumps(agent)[1:-1]
    sources = [file for name in EJECTED for file in _listed(FILES / name)]
    for source in sources:
        file = project.root / source.relative_to(FILES)
        file.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, file)
        if file.name == "requirements.txt":
            file.write_text("".join(f"{line}\n" for line in read_requirements(source, samples=False)))
        elif file.suffix == ".json":
            file.write_text(re.sub(r"\bdocument\b", lambda _: literal, source.read_text()))
    return [project.root / source.relative_to(FILES) for source in sources]


def unusable(name: str, agent: str) -> str:
    """Return why a project with the code ``agent`` cannot have this name; empty if it can.

    Its package has underscores for the hyphens.
    """
    package = name.replace("-", "_")
    if not NAME.fullmatch(name) or len(name) > LONGEST:
        return (
            f"{name!r} is no name: lower case, digits and single hyphens, a letter first, {LONGEST} characters at most"
        )
    if keyword.iskeyword(package):
        return f"{name!r} is a word of Python, so nothing could import the package"
    if package in sys.stdlib_module_names or package == "test":
        return f"{name!r} is a module of Python's library, which the project's package would hide"
    if package in _FOLDERS:
        return f"{name!r} is a folder of each project"
    installed = packages_distributions()
    packages = {one.lower().replace("-", "_").replace(".", "_") for names in installed.values() for one in names}
    imported = re.findall(r"^ *(?:from|import) (\w+)", agent, re.MULTILINE)
    if package in {*LIBRARY, *_PYTEST, *installed, *packages, *imported}:
        return f"{name!r} is a package that the project needs, which its own would hide"
    return ""


def lock(folder: Path) -> str:
    """Write a project's ``uv.lock``; return why it was not written, or nothing. Asks the package index."""
    try:
        command = [find_uv(), "lock", "--quiet", "--python", sys.executable, "--directory", str(folder)]
    except StackError as error:
        return error.why
    environment = {**os.environ, **package_index()}
    process = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)  # noqa: S603
    return (process.stderr.strip().splitlines() or ["uv lock failed"])[-1].strip() if process.returncode else ""


def _files(name: str, framework: str, wheels: Mapping[str, Path]) -> Iterator[tuple[str, str]]:
    yield "samconfig.toml", _samconfig((FILES / "samconfig.example.toml").read_text(), name)
    yield ".python-version", f"{Target().runtime.removeprefix('python')}\n"
    project = FILES / "examples/project"
    files = {file.relative_to(project).as_posix(): file for file in _listed(project)}
    changes = {"[tool.uv.sources]\n": _sources(wheels)}
    if framework:
        del files["my_agents/tailor.py"], files["tests/test_tailor.py"]
        files |= {"my_agents/shop.py": _example(framework), "tests/test_shop.py": FILES / "examples/test_shop.py"}
        changes |= {
            "my_agents.tailor:tailor": "my_agents.shop:shop_agent",
            'send tailor "A coat, please."': 'send shop "a coat"',
            '"a2a-serverless>=': f'"a2a-serverless[{framework}]>=',
            "On this machine": _ABOUT,
        }
    for place, file in files.items():
        text = file.read_text()
        for old, new in changes.items():
            text = text.replace(old, new)
        yield ".gitignore" if place == "gitignore" else _named(place, name), _named(text, name)


def _example(framework: str) -> Path:
    """The file with an agent of a framework, or of this library."""
    name = f"{framework.replace('-', '_')}_agent.py" if framework else "project/my_agents/tailor.py"
    return FILES / "examples" / name


def _listed(place: Path) -> list[Path]:
    files = [place] if place.is_file() else place.rglob("*")
    return sorted(file for file in files if file.is_file() and "__pycache__" not in file.parts)


def _named(text: str, name: str) -> str:
    return text.replace(EXAMPLE, name).replace(EXAMPLE.replace("-", "_"), name.replace("-", "_"))


def _sources(wheels: Mapping[str, Path]) -> str:
    """Where uv finds the packages of this project; the lock has their digests."""
    lines = (f'{name} = {{ path = "{WHEELS}/{wheel.name}" }}\n' for name, wheel in wheels.items())
    return "".join(["[tool.uv.sources]\n", *lines])


def _samconfig(text: str, name: str) -> str:
    """The options for AWS, without those of the emulator, which the commands have."""
    options = text[text.index("version =") : text.index("# The emulator")]
    return options.replace('"a2a-serverless"', f'"{name}"').replace("service=a2a-serverless", f"service={name}")
