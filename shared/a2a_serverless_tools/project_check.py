"""Checks a project before it is built: names every module, variable, secret and dependency that is missing.

The agents are imported in a process of their own, with the environment that the functions will have. So a module, an
attribute, an environment variable, a secret or a dependency that is missing is found without a build.
"""

from __future__ import annotations

import ast
import json
import os
import re
import signal
import subprocess
import sys
import traceback
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from a2a_serverless.agent_loader import AgentImportError, describe, import_agents
from a2a_serverless.domain.remotes import Auth, OAuthClientCredentials, Remote, SecretHeaders, remote_of
from a2a_serverless.http.application import ApplicationError, import_application
from a2a_serverless.testing.agent_check import check_agents
from a2a_serverless_tools.project import LIBRARY, Project, ProjectError, find_project, imported_modules, own_packages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

CPU_S: Final = 60
LONGEST_S: Final = 300
_REQUIREMENT: Final = re.compile(r"\s*([\w.-]+)\s*(?:\[([^\]]*)\])?")
Described = dict[str, list[dict[str, Any]]]


@dataclass(frozen=True)
class Checked:
    """The descriptions of a project's agents by import path, and the path at which its application has them."""

    agents: Described
    path: str = ""

    @property
    def inline(self) -> list[str]:
        """The import paths of agents that run in the api."""
        return [path for path, agents in self.agents.items() if any(agent["runs"] == "inline" for agent in agents)]


def check_project(project: Project | None = None) -> Checked:
    """Imports and describes the agents of a project, by default of the one of the current folder.

    Raises ProjectError, which names each thing that is missing.
    """
    project = project or find_project()
    environment = project.environment | function_environment(project.source)
    command = [sys.executable, "-B", "-m", "a2a_serverless_tools.project_check"]
    agents, path, problems = run_import(command, environment, ProjectError, project.model_dump_json())
    if problems:
        raise ProjectError("\n".join(problems))
    return Checked(agents, path)


def mirrors_here() -> list[tuple[str, Remote]]:
    """The mirrors of the current folder's project that have a card in a file, by id. Raises ProjectError."""
    agents = [agent for agents in check_project().agents.values() for agent in agents]
    remotes = [(str(agent["id"]), remote_of(agent["remote"])) for agent in agents]
    return [(agent, remote) for agent, remote in remotes if remote and remote.card_file]


def run_import(
    command: Sequence[str | Path],
    environment: Mapping[str, str],
    fail: Callable[[str], Exception],
    text: str = "",
    *,
    cpu_s: int = CPU_S,
    longest_s: float = LONGEST_S,
) -> Any:  # noqa: ANN401 - any JSON
    """Runs a Python that imports agents; returns the JSON of its last line. Raises what ``fail`` makes of a reason.

    It may use ``cpu_s`` of CPU time, because on a busy machine a good project can need many times as long by the clock.
    """
    limited = os.name == "posix"
    # A shell sets the limit, because a function between fork and exec may hang in a process with threads.
    limit = ["/bin/sh", "-c", 'ulimit -S -c 0; ulimit -S -t "$0"; exec "$@"', f"{cpu_s}"] if limited else []
    try:
        process = subprocess.run(  # noqa: S603 - a Python, by path
            [*limit, *command],
            env=environment,
            input=text,
            capture_output=True,
            text=True,
            check=False,
            timeout=longest_s,
        )
    except subprocess.TimeoutExpired:
        raise fail(f"importing the agents takes longer than {longest_s} s") from None
    if limited and process.returncode == -signal.SIGXCPU:
        raise fail(f"importing the agents takes more than {cpu_s} s of CPU time")
    lines = process.stdout.splitlines()
    if process.returncode or not lines:
        reason = (process.stderr.splitlines() or ["it said nothing"])[-1]
        raise fail(f"importing the agents ended Python: {reason}")
    return json.loads(lines[-1])


def function_environment(*folders: Path) -> dict[str, str]:
    """The environment of a process that imports agents from these folders, and inherits no other variable."""
    library = Path(__file__).parents[1]
    variables = {"PYTHONPATH": os.pathsep.join(map(str, [*folders, library])), "AWS_DEFAULT_REGION": "us-east-1"}
    return variables | {name: os.environ[name] for name in ("PATH", "HOME", "SYSTEMROOT") if name in os.environ}


def failure(path: str, error: BaseException) -> str:
    """What is wrong with an agent whose import raised an error."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    if isinstance(error, KeyError) and place.filename in {os.__file__, "<frozen os>"}:
        return f"{path} needs the environment variable {error.args[0]}: set it in [tool.a2a-serverless.environment]"
    if isinstance(error, ModuleNotFoundError):
        return f"{path} needs the module {error.name!r}, which is not there"
    if isinstance(error, AgentImportError | ApplicationError):
        return str(error)
    return f"{path} cannot be imported: {type(error).__name__}: {error}"


def _examine(project: Project) -> tuple[Described, str, list[str]]:
    descriptions: Described = {}
    problems, mount = [], ""
    for path in project.agents:
        try:
            descriptions[path] = describe(path)
        except BaseException as error:  # noqa: BLE001 - whatever an import raises
            problems.append(failure(path, error))
    if project.application:
        try:
            mount = import_application(project.application).path
        except BaseException as error:  # noqa: BLE001 - whatever an import raises
            problems.append(failure(project.application, error))
    problems += _conflicts(descriptions)
    problems += _unlisted_secrets(descriptions, project)
    own = {path.stem: path for path in own_packages(project)}
    for file in sorted(_loaded(own)):
        tree, name = ast.parse(file.read_bytes()), file.relative_to(project.source)
        problems += _unknown_secrets(tree, f"{name}", project)
        problems += _undeclared(tree, f"{name}", {*own, *LIBRARY}, project)
    return descriptions, mount, problems


def _unlisted_secrets(descriptions: Described, project: Project) -> Iterator[str]:
    """The secrets of mirrors that are not listed."""
    for one in (agent for agents in descriptions.values() for agent in agents):
        remote = remote_of(one["remote"])
        for name in _secrets_of(remote.auth) if remote else ():
            if name not in project.secrets:
                yield f"the mirror {one['id']} needs the secret {name!r}, which is not in [tool.a2a-serverless] secrets"


def _secrets_of(auth: Auth | None) -> tuple[str, ...]:
    """The names of the project's secrets that the authentication needs."""
    match auth:
        case SecretHeaders():
            return tuple(auth.secrets.values())
        case OAuthClientCredentials():
            return (auth.secret,)
    return ()


def _conflicts(descriptions: Described) -> Iterator[str]:
    try:
        check_agents(agent for path in descriptions for agent in import_agents(path))
    except ValueError as error:
        yield str(error)


def _loaded(own: Mapping[str, Path]) -> Iterator[Path]:
    """The files of the project's modules that the agents have imported."""
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if name.partition(".")[0] in own and file and file.endswith(".py"):
            yield Path(file)


def _unknown_secrets(tree: ast.Module, file: str, project: Project) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(attr="secret"), args=[ast.Constant(value=str(name)), *_]):
                pass
            case ast.keyword(arg="signed_with", value=ast.Constant(value=str(text))):
                name = text.partition(":")[2]
            case _:
                continue
        if name not in project.secrets:
            yield f"{file}:{node.lineno} reads the secret {name!r}, which is not in [tool.a2a-serverless] secrets"


def _undeclared(tree: ast.Module, file: str, own: set[str], project: Project) -> Iterator[str]:
    """Packages that are installed here, and would not be in the functions."""
    declared, installed = (
        _needed([*project.dependencies, "a2a-serverless[egress,http,picture]"]),
        metadata.packages_distributions(),
    )
    for top in {name.partition(".")[0] for name in imported_modules(tree)} - own - sys.stdlib_module_names:
        from_ = {_canonical(name) for name in installed.get(top, ())}
        if from_ and not from_ & declared:
            package = " or ".join(sorted(from_))
            yield f"{file} imports {top!r} of the package {package}, which is not in [project] dependencies"


def _needed(requirements: Iterable[str]) -> set[str]:
    """The installed packages that requirements name, and those that they need."""
    pending, closure = [*requirements], set[str]()
    while pending:
        if (requirement := pending.pop()) not in closure and (parts := _REQUIREMENT.match(requirement)):
            closure.add(requirement)
            extras = {_canonical(extra.strip()) for extra in (parts[2] or "").split(",")}
            pending += [one for one in _requires(parts[1]) if _extra(one) in (None, *extras)]
    return {_canonical(parts[1]) for one in closure if (parts := _REQUIREMENT.match(one))}


def _requires(name: str) -> list[str]:
    try:
        return metadata.requires(name) or []
    except metadata.PackageNotFoundError:
        return []


def _extra(requirement: str) -> str | None:
    """The extra with which a package has a requirement; None when it always has it."""
    match = re.search(r"extra == ['\"]([\w.-]+)['\"]", requirement)
    return _canonical(match[1]) if match else None


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    report = json.dumps(_examine(Project.model_validate_json(sys.stdin.read(), by_name=True)))
    sys.stdout.write(f"\n{report}\n")
