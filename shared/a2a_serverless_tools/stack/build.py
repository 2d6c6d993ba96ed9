"""Builds the functions of a project: `sam build` installs their packages, and this module makes the zips.

Only what changed is built. The installed packages of a function (its base) depend on its requirements only, and are
kept. The library, the project's own packages, and the manifest of its agents are copied over them. So an edited agent
costs a new zip of the functions that run it, and no installation.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from difflib import unified_diff
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from a2a_serverless.agent_loader import MANIFEST, write_manifest
from a2a_serverless_tools.project import PROFILES, Project, own_packages, read_project
from a2a_serverless_tools.project_check import Checked, check_project
from a2a_serverless_tools.stack import bases, settings
from a2a_serverless_tools.stack.bases import Base, parse_template, template_functions
from a2a_serverless_tools.stack.errors import StackError
from a2a_serverless_tools.stack.imports import check_folder
from a2a_serverless_tools.stack.interpreters import interpreter
from a2a_serverless_tools.stack.packaging import compile_sources, functions_of, keep_newest, write_zip
from a2a_serverless_tools.stack.paths import Paths
from a2a_serverless_tools.stack.targets import Build, Target
from a2a_serverless_tools.stack.template_check import check_template, lint
from a2a_serverless_tools.stack.trimming import API, ROTATOR, RUN_AGENTS, TRACED, WORKER, trim_library
from a2a_serverless_tools.stack.unpacked import Unpacked, read_unpacked

KEPT_BUILDS, KEPT_ZIPS = 3, 60
CONTAINER = "docs/container.md"
# Where Lambda runs no task its worker function has no agents, whose packages may be too large for it.
NO_WORKER = """def handler(event, context):
    raise RuntimeError("Workers outside of Lambda run the tasks of this stack.")
"""
KEY_RING = "Custom::KeyRing"  # CloudFormation calls the rotator when its properties change
READ_AGENTS = RUN_AGENTS | {ROTATOR}
_IGNORED = shutil.ignore_patterns("__pycache__", "LICENSE", "pyproject.toml", "hatch_build.py")


def build(paths: Paths, target: Target) -> Build:
    """Build every function for `target` whose inputs have changed since its last build.

    A build never changes: each set of inputs has its own folder, and the oldest are removed. There is one build at a
    time in a project. Raises `StackError`, and `ProjectError` when something is missing in the project.
    """
    project = read_project(paths.root)
    work = _Work(paths, target, project, check_project(project), interpreter(target.runtime))
    with paths.exclusive():
        return _build(paths, target, work)


def _build(paths: Paths, target: Target, work: "_Work") -> Build:
    template = bases.install(paths, target, work.text, work.bases, work.python)
    zips = {name: paths.home / "zips" / f"{work.digest(name)}.zip" for name in work.bases}
    missing = [name for name, file in zips.items() if not file.exists()]
    document = work.document(template, zips)
    work.make(missing, zips)
    parts = [str(target), document, *(file.name for file in zips.values())]
    folder = paths.builds / _digest([*map(str.encode, parts), *_contents(template)])
    if not folder.exists():
        work.write_build(folder, template, document, zips)
    keep_newest(paths.builds, KEPT_BUILDS)
    keep_newest(paths.home / "zips", KEPT_ZIPS)
    return Build(folder, missing, work.checked.path)


def code_of(project: Project) -> str:
    """A digest of the project's own packages, and of what their import needs."""
    variables = repr((project.environment, project.secrets, project.prices)).encode()
    return _digest([*_contents(*own_packages(project)), variables])


def release(paths: Paths, target: Target) -> Path:
    """Build for AWS, into the default folder of `sam deploy`; return the folder. What AWS would refuse is not left."""
    built = build(paths, target)
    lint(built.path / "template.yaml", paths.sam.with_name("cfn-lint"))
    for one in functions_near_limit(built.path):
        if one.is_over:
            raise StackError("build", str(one), remedy=CONTAINER)
    shutil.rmtree(paths.release, ignore_errors=True)
    return Path(shutil.copytree(built.path, paths.release))


def functions_near_limit(folder: Path) -> list[Unpacked]:
    """Return the zips of a build that have four fifths of what Lambda unpacks, or more. Lambda gets no other zips."""
    template = json.loads((folder / "template.yaml").read_text())
    names = [properties["CodeUri"] for properties in functions_of(template).values() if "CodeUri" in properties]
    return [one for one in map(read_unpacked, (folder / name for name in names)) if one.is_near]


@dataclass(frozen=True)
class Changes:
    """What a deployment would change: a unified diff of the templates, and the functions with other code."""

    template: str
    functions: Sequence[str]


def compare(paths: Paths, target: Target) -> Changes | None:
    """Build for AWS; return the changes against the last `release`, which stays, or None if there was none."""
    built = build(paths, target)
    if not (paths.release / "template.yaml").is_file():
        return None
    before, after = paths.release, built.path
    templates = {file.relative_to(folder) for folder in (before, after) for file in folder.rglob("template.yaml")}
    lines = (line for name in sorted(templates) for line in _difference(before, after, name))
    old, new = ({file.stem: file.read_bytes() for file in folder.glob("*.zip")} for folder in (before, after))
    return Changes("".join(lines), sorted(name for name in {**old, **new} if old.get(name) != new.get(name)))


def _difference(before: Path, after: Path, name: Path) -> Iterator[str]:
    """Yield the lines of a unified diff of a template in two builds, both with their names in order."""
    old, new = (_ordered(folder / name).splitlines(keepends=True) for folder in (before, after))
    return unified_diff(old, new, f"last build/{name}", f"this build/{name}")


def _ordered(template: Path) -> str:
    if not template.is_file():
        return ""
    document = yaml.load(template.read_text(), Loader=yaml.CSafeLoader)
    return yaml.dump(document, Dumper=yaml.CSafeDumper, width=120, allow_unicode=True)


@dataclass(frozen=True)
class _Work:
    """One build: of which project, for which target."""

    paths: Paths
    target: Target
    project: Project
    checked: Checked
    python: Path

    @cached_property
    def runs_agents(self) -> list[str]:
        """The functions that import the project's code: the worker, and the api for inline agents or an application."""
        return [WORKER, API] if self.checked.inline or self.project.application else [WORKER]

    @cached_property
    def text(self) -> str:
        """The template, with the constants of the project and its profile."""
        constants = PROFILES.get(self.project.profile or "", {}) | self.project.constants
        return settings.set_constants(self.paths.template.read_text(), constants)

    @cached_property
    def bases(self) -> dict[str, Base]:
        """The functions of the template, with what is installed for each."""
        template = parse_template(self.text)
        if WORKER not in template.get("Resources", {}):
            remedy = "without a template.yaml of its own a project has the library's"
            raise StackError("build", f"{self.paths.template} has no {WORKER}", remedy=remedy)
        return {
            name: bases.base_of(name, self.paths.sources / folder, self.project, runs_agents=name in self.runs_agents)
            for name, folder in template_functions(template).items()
        }

    @cached_property
    def manifest(self) -> bytes:
        return json.dumps(self.checked.agents).encode()

    @cached_property
    def agents(self) -> bytes:
        """The digest of the project's code."""
        return code_of(self.project).encode()

    @cached_property
    def library(self) -> dict[str, bytes]:
        """Digests of the library's packages by name."""
        folders = {name: folder for base in self.bases.values() for name, folder in base.packages.items()}
        return {name: _digest(_contents(folder)).encode() for name, folder in folders.items()}

    def digest(self, name: str) -> str:
        """A digest of everything that a function's zip depends on."""
        base = self.bases[name]
        parts = [str(self.target).encode(), name.encode(), base.key.encode(), *_contents(base.folder)]
        parts += [self.library[package] for package in base.packages]
        if name in READ_AGENTS:
            parts.append(self.manifest)
        if name in self.runs_agents:
            parts.append(self.agents)
        if self.project.otel and name in TRACED:
            parts.append(repr(self.project.otel).encode())
        return _digest(parts)

    def make(self, names: Sequence[str], zips: Mapping[str, Path]) -> None:
        """Make the zips of these functions. Raises `StackError` when an agent cannot be imported from its folder."""
        with TemporaryDirectory(prefix="unfinished-", dir=self.paths.home) as work:
            folders = {name: self._assemble(name, Path(work, name)) for name in names}
            self._check(folders)
            with ThreadPoolExecutor() as pool:  # deflate runs outside the interpreter's lock
                list(pool.map(write_zip, folders.values()))
            for name in names:
                zips[name].parent.mkdir(exist_ok=True)
                Path(work, f"{name}.zip").replace(zips[name])

    def document(self, template: Path, zips: Mapping[str, Path]) -> str:
        """The template that is deployed, as JSON, with the project's settings. Raises ProjectError."""
        document = json.loads((template / "template.yaml").read_text())
        for name, properties in functions_of(document).items():
            properties["CodeUri"] = f"{name}.zip"
            if name == WORKER and _works_elsewhere(document):
                del properties["CodeUri"]
                properties |= {"InlineCode": NO_WORKER, "Handler": "index.handler"}
            if function := self.project.functions.get(_short(name)):
                settings.set_limits(document, properties, function)
            if name in self.runs_agents:
                settings.give(document, properties, self.project)
            elif name == API and "Role" in properties:
                settings.remove_models(document, properties)
            if self.project.otel and name in TRACED:
                settings.give_otel(document, properties, self.project)
        if self.project.application:
            settings.serve_application(document, self.project.application, self.checked.path)
        settings.add_schedules(document, (agent for ones in self.checked.agents.values() for agent in ones))
        settings.remove_cost_alarm(document)
        settings.bound_roles(document)
        settings.encrypt(document)
        settings.set_defaults(document, self.target.parameters)
        check_template(document)
        constants = json.dumps(document.get("Metadata", {}).get("Settings"))
        for resource in document["Resources"].values():
            if resource["Type"] == KEY_RING:
                resource["Properties"]["Digest"] = _digest([zips[ROTATOR].stem.encode(), constants.encode()])
        return json.dumps(document, indent=1)

    def write_build(self, folder: Path, template: Path, document: str, zips: Mapping[str, Path]) -> None:
        """Write the folder that `sam deploy` reads: the template, and the zips."""
        unfinished = folder.with_name(f"unfinished-{os.getpid()}")
        shutil.rmtree(unfinished, ignore_errors=True)
        shutil.copytree(template, unfinished)
        for name, file in zips.items():
            os.link(file, unfinished / f"{name}.zip")
        (unfinished / "template.yaml").unlink()
        (unfinished / "template.yaml").write_text(document)
        write_manifest(unfinished / MANIFEST, self.checked.agents, self.agents.decode())
        shutil.rmtree(folder, ignore_errors=True)
        unfinished.rename(folder)

    def _assemble(self, name: str, folder: Path) -> Path:
        base = self.bases[name]
        shutil.copytree(bases.folder_of(self.paths, self.target, base), folder, copy_function=os.link, symlinks=True)
        ours = [
            _copy(one, folder / one.name) for one in sorted(base.folder.iterdir()) if one.name != "requirements.txt"
        ]
        ours += [_copy(source, folder / package) for package, source in base.packages.items()]
        if name in self.runs_agents:
            ours += [_copy(one, folder / one.name) for one in own_packages(self.project)]
        if name in READ_AGENTS:
            # Other functions need not change with the code.
            code = self.agents.decode() if name in self.runs_agents else ""
            write_manifest(folder / MANIFEST, self.checked.agents, code)
        trim_library(folder)
        compile_sources(folder, ours, python=self.python, cache=self.paths.compiled / self.target.runtime)
        return folder

    def _check(self, folders: Mapping[str, Path]) -> None:
        own = [self.project.application] if self.project.application else []
        inline = [*self.checked.inline, *own] if API in folders else []
        everywhere = [*self.checked.agents] if WORKER in folders else []
        reasons: dict[str, list[str]] = {}
        for name, paths in ((WORKER, everywhere), (API, inline)):
            problems = check_folder(folders[name], paths, self.project, self.target, self.python) if paths else ()
            for reason in problems:
                reasons.setdefault(reason, []).append(_short(name))
        if reasons:
            whys = (f"{reason} (in the zip of {', '.join(sorted(names))})" for reason, names in reasons.items())
            raise StackError("build", "; ".join(whys), remedy='docs/projects.md, "Dependencies"')


def _works_elsewhere(document: Mapping[str, Any]) -> bool:
    service = document.get("Metadata", {}).get("Settings", {}).get("WorkerService")
    return service not in {None, "lambda.amazonaws.com"}


def _short(logical_id: str) -> Any:  # noqa: ANN401 - one of the names of `Project.functions`, or another
    return logical_id.removesuffix("Function").lower()


def _copy(source: Path, target: Path) -> Path:
    if source.name == "__pycache__":
        return target
    if source.is_file():
        return Path(shutil.copy(source, target))
    return Path(shutil.copytree(source, target, ignore=_IGNORED, dirs_exist_ok=True))


def _contents(*places: Path) -> Iterable[bytes]:
    """Yield names and contents of the files in these folders."""
    for place in places:
        for path in [place] if place.is_file() else sorted(place.rglob("*")):
            inside = path.relative_to(place.parent)
            if path.is_file() and "__pycache__" not in inside.parts:
                yield inside.as_posix().encode() + b"\0" + path.read_bytes()


def _digest(parts: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(hashlib.sha256(part).digest())
    return digest.hexdigest()[:16]
