"""The JavaScript package in tests: where Node and the other runtimes are, and a folder that has the package."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Final

from tests.docs.documents import ROOT

if TYPE_CHECKING:
    from pathlib import Path

NODE: Final = shutil.which("node")
PACKAGE: Final = ROOT / "webhook_receiver/javascript"
EXAMPLE: Final = ROOT / "webhook_receiver/examples/node"
MODULES: Final = ROOT / "tests/webhook_receiver/runtimes/node_modules"
"""express, Deno, workerd and others, after `make conformance-clients`."""


def program(pattern: str) -> Path | None:
    """A program of an npm package, which each platform has in a place of its own."""
    return next(MODULES.glob(pattern), None)


DENO: Final = program("@deno/*/deno")
WORKERD: Final = program("@cloudflare/workerd-*/bin/workerd")


def link(folder: Path) -> None:
    """Lets JavaScript in the folder import the package, and the packages in ``MODULES``."""
    modules = folder / "node_modules"
    modules.mkdir(parents=True)
    for module in MODULES.glob("*"):
        (modules / module.name).symlink_to(module)
    (modules / "a2a-webhook-receiver").symlink_to(PACKAGE)
