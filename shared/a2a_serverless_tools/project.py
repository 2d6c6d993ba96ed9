"""The project that a command works in: the nearest ``pyproject.toml`` with a table ``[tool.a2a-serverless]``.

``agents`` in this table is the one list of a deployment's agents. Functions never read it: the build writes what they
need into their zips. This module imports no agent.
"""

from __future__ import annotations

import ast
import os
import tomllib
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictInt, StringConstraints, ValidationError, model_validator

from a2a_serverless.domain.outbound import is_confidential
from a2a_serverless.ports import tracing

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, MutableMapping

    from pydantic_core import ErrorDetails

FILE: Final = "pyproject.toml"
TABLE: Final = "[tool.a2a-serverless]"
LIMIT: Final = 1024 * 1024
LIBRARY: Final = frozenset(  # packages of this project, which are beside the agents in a checkout
    {"a2a_serverless", "a2a_serverless_frameworks", "a2a_serverless_tools", "a2a_webhook_receiver"}
)
_ImportPath = Annotated[str, StringConstraints(pattern=r"^\w+(\.\w+)*:\w+$", max_length=256)]
_Variable = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_]*$", max_length=128)]
_SecretName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]*$", max_length=64)]
_Amount = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$", max_length=64)]
_SecretId = Annotated[str, StringConstraints(pattern=r"^\S+$", max_length=2048)]
_Action = Annotated[str, StringConstraints(pattern=r"^[a-z0-9-]+:[A-Za-z0-9*?]+$", max_length=128)]
_Line = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029]*$", max_length=4096)]
TIMEOUTS: Final = {
    "api": (30, 900),  # 29 s are for answers that are not streamed
    "worker": (60, 900),  # a run stops 20 s before its end
    "notifier": (30, 900),  # an attempt takes 15 s
    "relay": (10, 900),
    "sweeper": (20, 59),  # it stops 10 s before its end, and runs each minute
    "rotator": (10, 110),  # CloudFormation waits 120 s for the first key
}
"""The shortest and the longest timeout of each function, in seconds."""


PROFILES: Final[dict[str, dict[str, int]]] = {
    # A quota of ten: two streams, two workers, two notifiers, the relay and the sweeper leave two for other requests.
    "new-account": {
        "STREAMS_PER_DEPLOYMENT": 2,
        "STREAMS_PER_OWNER": 1,
        "WorkerConcurrency": 2,
        "NotifierConcurrency": 2,
    },
    # A quota of 1,000: webhooks and recovery go on if streams and workers use the rest.
    "production": {"RelayReserved": 4, "SweeperReserved": 2},
}
"""The constants that each profile sets."""


class ProjectError(ValueError):
    """There is no project, or its ``pyproject.toml`` is invalid. The text names the file and what to write."""


class _Table(BaseModel):
    """A table of the project's settings, whose names have hyphens."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=lambda name: name.replace("_", "-"))


class Function(_Table):
    """Settings of one function: ``memory`` in MiB, ``timeout`` in seconds. None is the template's value."""

    memory: Annotated[StrictInt, Field(ge=128, le=10_240)] | None = None
    timeout: StrictInt | None = None


class Vpc(_Table):
    """The network in which agents run: ids of subnets and of security groups."""

    subnets: tuple[Annotated[str, StringConstraints(pattern=r"^subnet-[0-9a-f]+$")], ...] = Field(
        min_length=1, max_length=16
    )
    security_groups: tuple[Annotated[str, StringConstraints(pattern=r"^sg-[0-9a-f]+$")], ...] = Field(
        min_length=1, max_length=5
    )


class Statement(_Table):
    """What agents may do in AWS: ``actions`` on ``resources``, under a ``condition`` of IAM.

    Resources are ARNs, in which pseudo parameters of CloudFormation stand as ``${AWS::Region}``, or ``*``.
    """

    actions: tuple[_Action, ...] = Field(min_length=1, max_length=100)
    resources: tuple[Annotated[str, StringConstraints(pattern=r"^(\*|arn:\S+)$", max_length=2048)], ...] = Field(
        min_length=1, max_length=100
    )
    condition: dict[str, dict[str, str | list[str]]] = {}


class Otel(_Table):
    """The table ``otel``: where spans are exported to, by OpenTelemetry's protocol over HTTP (docs/observability.md).

    ``endpoint`` is the collector's base URL, ``headers_secret`` the place of the headers that it wants to see,
    ``sampling`` the share of traces that are recorded, unless the caller has decided it. With ``content``, the spans of
    libraries keep what clients and models said.
    """

    endpoint: Annotated[str, StringConstraints(pattern=r"^https?://[^\s?#]+$", max_length=2048)]
    headers_secret: _SecretId | None = None
    service_name: Annotated[str, StringConstraints(pattern=r"^[^\s,=]+$", max_length=128)] | None = None
    sampling: Annotated[float, Field(ge=0, le=1)] = 1.0
    content: bool = False

    @model_validator(mode="after")
    def _check_endpoint(self) -> Otel:
        if self.headers_secret and not is_confidential(self.endpoint):
            raise ValueError(f"headers-secret needs an https endpoint, or one on this machine, not {self.endpoint}")
        return self


class Project(_Table):
    """A project. ``agents`` are import paths (``package.module:attribute``), ``source`` the folder of their packages.

    ``application`` is the import path of a FastAPI application in which they are mounted (docs/fastapi.md).
    ``environment`` are variables for the functions that run agents, ``secrets`` the places of secrets by name,
    ``statements`` what these functions may do in AWS, ``vpc`` the network in which they run. ``functions`` are memory
    and timeout of each function, ``constants`` the template's constants that differ, also from those that the
    ``profile`` sets (``PROFILES``). ``otel`` says where spans go,
    ``prices`` what a million tokens of a model cost. ``dependencies`` is what ``[project]`` lists.
    """

    root: Path
    name: str
    agents: tuple[_ImportPath, ...] = Field(min_length=1, max_length=100)
    application: _ImportPath | None = None
    source_folder: str = Field(default=".", alias="source")
    environment: dict[_Variable, str] = {}
    secrets: dict[_SecretName, _SecretId] = {}
    statements: tuple[Statement, ...] = Field(default=(), max_length=100)
    vpc: Vpc | None = None
    functions: dict[Literal["api", "worker", "relay", "notifier", "sweeper", "rotator"], Function] = {}
    profile: Literal["new-account", "production"] | None = None
    constants: dict[str, StrictInt | _Line] = {}
    otel: Otel | None = None
    prices: dict[str, dict[_Amount, Annotated[float, Field(ge=0, le=1e9)]]] = {}
    dependencies: tuple[str, ...] = ()

    @property
    def source(self) -> Path:
        """The folder from which the agents are imported."""
        return self.root / self.source_folder

    @model_validator(mode="after")
    def _check_source(self) -> Project:
        if not self.source.resolve().is_relative_to(self.root.resolve()):
            raise ValueError(f"source = {self.source_folder!r} is outside of the project")
        if not self.source.is_dir():
            raise ValueError(f"source = {self.source_folder!r} is not a folder")
        return self

    @model_validator(mode="after")
    def _check_timeouts(self) -> Project:
        for name, function in self.functions.items():
            shortest, longest = TIMEOUTS[name]
            if function.timeout is not None and not shortest <= function.timeout <= longest:
                raise ValueError(f"functions.{name}.timeout must be from {shortest} to {longest} seconds")
        return self


def find_project(start: Path | None = None) -> Project:
    """Returns the project of a folder (the current one by default). Raises ProjectError."""
    start = (start or Path.cwd()).resolve()
    for folder in (start, *start.parents):
        if (folder / FILE).is_file():
            return read_project(folder)
    why = f"no {FILE} in {start} or above"
    raise ProjectError(f"{why}: run this in a project, or make one with `a2a-serverless init NAME`")


def read_project(root: Path) -> Project:
    """Reads the project in a folder. Raises ProjectError."""
    file = root / FILE
    document = _parse(file)
    for misspelled in _misspelled_tables(document):
        raise ProjectError(f"{file} has the table [{misspelled}], which nothing reads: its name is {TABLE}")
    package, table = document.get("project", {}), document.get("tool", {}).get("a2a-serverless")
    if table is None:
        raise ProjectError(f'{file} has no table {TABLE} with agents = ["package.module:attribute"]')
    fields = {"root": root, "name": package.get("name", root.name), "dependencies": package.get("dependencies", ())}
    try:
        return Project.model_validate(table | fields)
    except ValidationError as error:
        whys = [f"{'.'.join(map(str, one['loc'])) or TABLE}: {_why(one)}" for one in error.errors()]
    raise ProjectError(f"{file}, {TABLE}: {'; '.join(whys)}")


def set_environment(root: Path, environment: MutableMapping[str, str] = os.environ) -> None:
    """Sets the variables of the project in a folder, but for those that are set. Raises ProjectError.

    Without a project in the folder it sets none.
    """
    file = root / FILE
    if file.is_file() and "a2a-serverless" in _parse(file).get("tool", {}):
        for name, value in read_project(root).environment.items():
            environment.setdefault(name, value)


def _misspelled_tables(document: Mapping[str, Any]) -> Iterator[str]:
    """The tables whose names are almost that of ours, as somebody writes it who means ours."""
    for prefix, tables in (("tool.", document.get("tool", {})), ("", document)):
        for name in get_close_matches("a2a-serverless", tables, cutoff=0.8):
            if prefix == "" or name != "a2a-serverless":
                yield f"{prefix}{name}"


def _why(error: ErrorDetails) -> str:
    """What is wrong with a setting; for one that is unknown, the name that may be meant."""
    if error["type"] != "extra_forbidden":
        return error["msg"]
    *place, name = map(str, error["loc"])
    tables: dict[str, type[_Table]] = {"vpc": Vpc, "otel": Otel, "functions": Function, "statements": Statement}
    table = tables.get(place[0] if place else "", Project)
    names = {field.alias or key.replace("_", "-") for key, field in table.model_fields.items()}
    names -= {"root", "name", "dependencies"} if table is Project else set()
    close = get_close_matches(name, names, n=1)
    return (
        f"no such setting: did you mean {close[0]}?" if close else f"no such setting: one of {', '.join(sorted(names))}"
    )


def _parse(file: Path) -> dict[str, Any]:
    try:
        content = file.read_bytes()
    except OSError as error:
        raise ProjectError(f"{file} cannot be read: {error.strerror}") from None
    if len(content) > LIMIT:
        raise ProjectError(f"{file} is larger than {LIMIT // 1024} KB")
    try:
        return tomllib.loads(content.decode())
    except ValueError as error:
        raise ProjectError(f"{file} is not valid: {error}") from None


def otel_variables(project: Project) -> dict[str, str]:
    """The variables of functions that say where spans go; none without the table ``otel``."""
    if (otel := project.otel) is None:
        return {}
    variables = {tracing.OTEL_SWITCH: "on", tracing.OTEL_ENDPOINT: otel.endpoint}
    variables |= {tracing.OTEL_SERVICE: otel.service_name or project.name, tracing.OTEL_SHARE: str(otel.sampling)}
    variables |= {tracing.OTEL_CONTENT: "true"} if otel.content else {}
    return variables | ({tracing.OTEL_HEADERS_SECRET: otel.headers_secret} if otel.headers_secret else {})


def local_otel(
    project: Project, environment: Mapping[str, str] = os.environ, module: str = "opentelemetry.sdk"
) -> dict[str, str]:
    """What the terminal's variables say instead in a run on this machine; nothing without the table ``otel``.

    Raises ProjectError if spans could not be exported here, because ``module`` is not installed, or if others could
    read the headers for the collector.
    """
    if project.otel is None:
        return {}
    if not _is_installed(module):
        raise ProjectError(f"[tool.a2a-serverless.otel] needs {module}: install a2a-serverless[otel] beside [cli]")
    names = (tracing.OTEL_ENDPOINT, tracing.OTEL_HEADERS)
    variables = {name: environment[name] for name in names if name in environment}
    endpoint = variables.get(tracing.OTEL_ENDPOINT, project.otel.endpoint)
    headers = variables.get(tracing.OTEL_HEADERS) or project.otel.headers_secret
    if endpoint and headers and not is_confidential(endpoint):
        needs = "need an https endpoint, or one on this machine"
        raise ProjectError(f"the headers for the collector {needs}, not {endpoint}")
    return variables


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def own_packages(project: Project) -> list[Path]:
    """The project's packages and modules that its agents and its application import: what a function must carry."""
    pending = [path.partition(":")[0] for path in (*project.agents, project.application) if path]
    places: dict[str, Path] = {}
    while pending:
        top = pending.pop().partition(".")[0]
        place = next((one for one in (project.source / top, project.source / f"{top}.py") if one.exists()), None)
        if place and top not in places and top not in LIBRARY:
            places[top] = place
            for file in [place] if place.is_file() else place.rglob("*.py"):
                pending += imported_modules(_parsed(file), nested=True)
    return [places[top] for top in sorted(places)]


def imported_modules(tree: ast.Module, *, nested: bool = False) -> Iterator[str]:
    """The modules that a module imports at its top level; with ``nested`` everywhere."""
    for node in ast.walk(tree) if nested else tree.body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


def _parsed(file: Path) -> ast.Module:
    try:
        return ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):
        return ast.Module([], [])  # its import says what is wrong
