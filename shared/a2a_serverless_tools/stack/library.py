"""Where the files of this project's distributions are: in a checkout, or in installed wheels.

``FILES`` has the layout of a checkout either way: template, functions, events, requirements. The wheel of the tools
carries them as ``assets``.
"""

from collections.abc import Iterable
from importlib.metadata import requires
from importlib.util import find_spec
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement

from a2a_serverless_tools.project import LIBRARY

TOOLS = Path(__file__).resolve().parents[1]
CHECKOUT = TOOLS.parents[1]
ASSETS = TOOLS / "assets"
IS_WHEEL = ASSETS.is_dir()
FILES = ASSETS if IS_WHEEL else CHECKOUT
# The distributions of this project; each has one package.
DISTRIBUTIONS = {name.replace("_", "-"): name for name in sorted(LIBRARY)}
_HERE = {".": "a2a-serverless", "./webhook_receiver": "a2a-webhook-receiver"}  # in the requirements of functions
_OF_THE_SAMPLES = ",picture"


def read_requirements(file: Path, *, samples: bool = True) -> list[str]:
    """Return the requirements in a file; without options such as ``-c``, because the build has its own.

    This project's distributions are there by name. With ``samples`` false, what only the samples need is left out.
    """
    lines = (line.partition(" #")[0].strip() for line in file.read_text().splitlines())
    requirements = [_named(line) for line in lines if line and not line.startswith(("-", "#"))]
    return requirements if samples else [line.replace(_OF_THE_SAMPLES, "") for line in requirements]


def resolve(requirements: Iterable[str]) -> tuple[list[str], dict[str, Path]]:
    """Return the requirements with those of this project's distributions in their place, and the folders of these.

    The folders are by package. A build copies them from where the commands run, so the library that was tested is the
    one that is deployed, and no index is asked for its name.
    """
    others, folders = set[str](), dict[str, Path]()
    pending, closure = [*requirements], set[str]()
    while pending:
        if (line := pending.pop()) in closure:
            continue
        closure.add(line)
        try:
            requirement = Requirement(line)
        except InvalidRequirement:  # a path, or a line with options
            requirement = None
        if requirement is None or requirement.name not in DISTRIBUTIONS:
            others.add(line)
            continue
        package = DISTRIBUTIONS[requirement.name]
        folders[package] = folder_of(package)
        pending += _needs(requirement)
    return sorted(others), dict(sorted(folders.items()))


def folder_of(package: str) -> Path:
    """Return the folder of an installed package."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"No module named {package!r}", name=package)
    return Path(spec.origin).parent


def _named(line: str) -> str:
    place, bracket, extras = line.partition("[")
    return _HERE.get(place, place) + bracket + extras


def _needs(requirement: Requirement) -> Iterable[str]:
    """Yield the requirements of an installed distribution, with those of the extras."""
    for one in map(Requirement, requires(requirement.name) or ()):
        if one.marker is None or any(one.marker.evaluate({"extra": extra}) for extra in ("", *requirement.extras)):
            one.marker = None
            yield str(one)
