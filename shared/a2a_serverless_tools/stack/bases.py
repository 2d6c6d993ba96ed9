"""The installed packages of functions, by what they need: `sam build` installs them, once for each set of needs."""

import hashlib
import json
import os
import re
import shutil
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import yaml

from a2a_serverless.adapters.agent_secrets import PARAMETER
from a2a_serverless_tools.project import Project, own_packages
from a2a_serverless_tools.stack import library
from a2a_serverless_tools.stack.emulator import without_aws
from a2a_serverless_tools.stack.packaging import compile_sources, functions_of, keep_newest
from a2a_serverless_tools.stack.paths import Paths
from a2a_serverless_tools.stack.sam import overrides, run_sam
from a2a_serverless_tools.stack.trimming import SDK, SERVICES, TRACED, named_services, trim_installed

if TYPE_CHECKING:
    from a2a_serverless_tools.stack.targets import Target

KEPT_BASES, KEPT_TEMPLATES = 30, 5


@dataclass(frozen=True)
class Base:
    """What is installed for a function, and the library's packages that are copied to it.

    ``constraints`` are versions in pip's format; ``services`` are the AWS services whose data stays; without ``unused``
    what only the library does not use stays, too, because agents of a project may use it.
    """

    folder: Path
    requirements: tuple[str, ...]
    constraints: str
    services: frozenset[str]
    unused: bool
    packages: Mapping[str, Path]

    @property
    def key(self) -> str:
        text = repr((self.requirements, self.constraints, sorted(self.services), self.unused))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def base_of(name: str, folder: Path, project: Project, *, runs_agents: bool) -> Base:
    """Return the base of a function: its own requirements, and the project's if it runs agents."""
    is_ours = folder.parent == library.FILES / "functions" and project.root != library.FILES
    lines = library.read_requirements(folder / "requirements.txt", samples=not is_ours)
    services = SERVICES
    own = runs_agents and project.root != library.FILES
    if project.otel and name in TRACED:
        lines.append("a2a-serverless[otel]")
        services |= {"ssm"} if (project.otel.headers_secret or "").startswith(PARAMETER) else set()
    if runs_agents:
        lines += project.dependencies
        services |= named_services(own_packages(project))
        services |= {"ssm" for place in project.secrets.values() if place.startswith(PARAMETER)}
    requirements, packages = library.resolve(lines)
    constraints = (
        _installed(project.root / "uv.lock") if own else (library.FILES / "requirements/functions.txt").read_text()
    )
    return Base(folder, tuple(requirements), constraints, services, not own, packages)


def parse_template(text: str) -> dict[str, Any]:
    """Return a template; the values of CloudFormation's short tags are left out."""
    document: dict[str, Any] = yaml.load(text, Loader=_Loader)  # noqa: S506 - a SafeLoader
    return document


def template_functions(template: Mapping[str, Any]) -> dict[str, str]:
    """Return the folders of a template's functions by logical id."""
    return {name: properties["CodeUri"].rstrip("/") for name, properties in functions_of(template).items()}


def folder_of(paths: Paths, target: "Target", base: Base) -> Path:
    """Return the folder of a base's packages."""
    return paths.home / "bases" / f"{target.runtime}-{target.architecture}-{base.key}"


def install(paths: Paths, target: "Target", text: str, needs: Mapping[str, Base], python: Path) -> Path:
    """Install the bases that are missing; return the folder of the built template. Raises `StackError`.

    Both come from `sam build` of the template with this text, whose functions name folders with their requirements, or
    an empty zip where there is nothing to install.
    """
    nested = paths.sources / "observability.yaml"
    key = hashlib.sha256(f"{text}{nested.read_text() if nested.exists() else ''}{target}".encode()).hexdigest()[:16]
    template_folder = paths.home / "templates" / key
    missing = {name: base for name, base in needs.items() if not folder_of(paths, target, base).exists()}
    if template_folder.exists() and not missing:
        return template_folder
    with TemporaryDirectory(prefix="installing-", dir=paths.home) as temporary:
        work = Path(temporary)
        _write_sources(work / "source", text, paths, needs, missing)
        options: list[str | Path] = ["--base-dir", work / "source", "--template-file", work / "source/template.yaml"]
        options += ["--build-dir", work / "built", *overrides(target.parameters)]
        run_sam(paths, "build", options, without_aws(os.environ))
        template = yaml.load((work / "built/template.yaml").read_text(), Loader=yaml.CSafeLoader)
        for name, folder in template_functions(template).items():
            if base := missing.get(name):
                place = folder_of(paths, target, base)
                _keep(work / "built" / folder, place, base, python, paths.compiled / target.runtime)
        _keep_template(work / "built", template, template_folder)
    for base in needs.values():
        os.utime(folder_of(paths, target, base))
    keep_newest(paths.home / "bases", KEPT_BASES)
    keep_newest(template_folder.parent, KEPT_TEMPLATES)
    return template_folder


class _Loader(yaml.CSafeLoader):
    """YAML with CloudFormation's short tags, whose values do not matter here."""


_Loader.add_multi_constructor("!", lambda *_: None)


def _installed(lock: Path) -> str:
    """The versions that are installed here: what was tested is what is deployed. With the digests that uv.lock has."""
    read = [distribution.metadata for distribution in metadata.distributions()]
    names = {(distribution["Name"].lower(), distribution["Version"]) for distribution in read if distribution["Name"]}
    digests = _digests(lock)
    return "".join(f"{name}=={version}{digests.get((name, version), '')}\n" for name, version in sorted(names))


def _digests(lock: Path) -> dict[tuple[str, str], str]:
    """The options of a requirement for each package and version of a lock; none without a lock of uv."""
    try:
        locked = tomllib.loads(lock.read_text())["package"]
    except (OSError, KeyError, ValueError):
        return {}
    files = {(one["name"], one.get("version", "")): [one.get("sdist", {}), *one.get("wheels", [])] for one in locked}
    return {key: "".join(f" --hash={file['hash']}" for file in each if "hash" in file) for key, each in files.items()}


def _write_sources(
    folder: Path, text: str, paths: Paths, needs: Mapping[str, Base], missing: Mapping[str, Base]
) -> None:
    for name, base in needs.items():
        place = folder / (base.key if name in missing else "installed.zip")
        if name in missing:
            place.mkdir(parents=True, exist_ok=True)
            (place / "requirements.txt").write_text("\n".join(["-c constraints.txt", *base.requirements]))
            (place / "constraints.txt").write_text(base.constraints)
        function = re.escape(base.folder.relative_to(paths.sources).as_posix())
        text = re.sub(rf"(CodeUri[\"']?:\s*[\"']?)(?:\./)?{function}/?(?=[\"'\s])", rf"\g<1>{place}", text)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "installed.zip").touch()
    (folder / "template.yaml").write_text(text)
    if (nested := paths.sources / "observability.yaml").exists():
        shutil.copy(nested, folder)


def _keep(folder: Path, place: Path, base: Base, python: Path, compiled: Path) -> None:
    """Trim and compile what was installed, and keep it. SAM makes one folder for functions with the same source."""
    if place.exists():
        return
    services = set(base.services)
    if not base.unused:
        services |= named_services(top for top in folder.iterdir() if top.is_dir() and top.name not in SDK)
    trim_installed(folder, services, unused=base.unused)
    compile_sources(folder, [folder], python=python, cache=compiled)
    place.parent.mkdir(exist_ok=True)
    folder.rename(place)


def _keep_template(source: Path, template: dict[str, Any], place: Path) -> None:
    """Keep the built template as JSON: SAM reads it seven times, with a parser that is fast only for JSON."""
    shutil.rmtree(place, ignore_errors=True)
    for folder in template_functions(template).values():
        shutil.rmtree(source / folder, ignore_errors=True)
    (source / "template.yaml").write_text(json.dumps(template, indent=1))
    place.parent.mkdir(exist_ok=True)
    source.rename(place)
