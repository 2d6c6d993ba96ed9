"""Where this library's own files are: in a checkout, or in an installed wheel, which carries them as ``assets``.

``FILES`` has the layout of a checkout either way: template, functions, events, requirements, samples.
"""

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).resolve().parents[1]
CHECKOUT = PACKAGE.parents[1]
ASSETS = PACKAGE / "assets"
IS_WHEEL = ASSETS.is_dir()
FILES = ASSETS if IS_WHEEL else CHECKOUT
LIBRARY, RECEIVER = "a2a_serverless", "a2a_webhook_receiver"
# In a requirements file: the library by its name, as the checkout or as a wheel, with extras; and the receiver.
_WHEEL = r"(?:\./)?wheels/{}-[\w.+-]+\.whl"
_REST = r"(?:\s*[=<>!~].*)?(?:\s+--hash=\S+)*"
_LIBRARY = re.compile(rf"(?:\.|a2a-serverless|{_WHEEL.format(LIBRARY)})(?:\[([\w,\s-]*)\])?{_REST}")
_RECEIVER = re.compile(rf"(?:\./webhook_receiver|a2a-webhook-receiver|{_WHEEL.format(RECEIVER)}){_REST}")


def receiver() -> Path:
    """Return the folder of the installed package ``a2a_webhook_receiver``."""
    spec = find_spec(RECEIVER)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"No module named {RECEIVER!r}", name=RECEIVER)
    return Path(spec.origin).parent


def packages(requirements: Iterator[str] | list[str]) -> dict[str, Path]:
    """Return the own packages that lines of a requirements file name, with their folders."""
    found = {}
    for line in requirements:
        if _LIBRARY.fullmatch(line):
            found[LIBRARY] = PACKAGE
        elif _RECEIVER.fullmatch(line):
            found[RECEIVER] = receiver()
    return found


def expand(requirements: Iterator[str] | list[str]) -> list[str]:
    """Return the lines with what the library and the receiver need in place of them, without duplicates.

    A build copies these two from where the commands run, so the library that was tested is the one that is deployed.
    """
    return sorted({one for line in requirements for one in _needs(line)})


def read_requirements(file: Path) -> list[str]:
    """Return the requirements in a file; without options such as ``-c``, because the build has its own."""
    lines = (re.sub(r"(^|\s)#.*", "", line).strip() for line in file.read_text().splitlines())
    return [line for line in lines if line and not line.startswith("-")]


def _needs(line: str) -> list[str]:
    if found := _LIBRARY.fullmatch(line):
        extras = [extra.strip() for extra in (found[1] or "").split(",") if extra.strip()]
        package = _package(FILES / "pyproject.toml")
        optional = (package["optional-dependencies"][extra] for extra in extras)
        return [one for needed in (package["dependencies"], *optional) for each in needed for one in _needs(each)]
    if _RECEIVER.fullmatch(line):
        return [*_package(FILES / "webhook_receiver/pyproject.toml")["dependencies"]]
    return [line]


@cache
def _package(file: Path) -> dict[str, Any]:
    package: dict[str, Any] = tomllib.loads(file.read_text())["project"]
    return package
