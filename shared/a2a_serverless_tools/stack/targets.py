"""The Lambda runtime and architecture that functions are built for, and the result of a build."""

import json
import platform
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from a2a_serverless_tools.stack.errors import StackError

_ARCHITECTURES = {"x86_64": "x86_64", "aarch64": "arm64", "arm64": "arm64"}


@dataclass(frozen=True)
class Target:
    """The Lambda runtime and architecture that functions are built for."""

    runtime: str = "python3.13"
    architecture: str = "arm64"

    @property
    def parameters(self) -> dict[str, str]:
        return {"Runtime": self.runtime, "Architecture": self.architecture}

    @property
    def runs_here(self) -> bool:
        return (sys.platform, _ARCHITECTURES.get(platform.machine())) == ("linux", self.architecture)


@dataclass(frozen=True)
class Build:
    """A built set of functions. `made` are the functions whose zips this call has made.

    `mount` is the path at which the project's application has the agents; "" at the root.
    """

    path: Path
    made: Sequence[str]
    mount: str = ""

    @property
    def template(self) -> dict[str, Any]:
        template: dict[str, Any] = json.loads((self.path / "template.yaml").read_text())
        return template


def this_machine() -> Target:
    """Return the target of this machine, where the emulator runs functions. Raises `StackError` unless it is Linux."""
    if sys.platform != "linux":
        why = "functions are built for Linux, and the emulator runs them on this machine"
        raise StackError("build", why, remedy="use a Linux machine, virtual machine or container")
    runtime = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return Target(runtime, _ARCHITECTURES[platform.machine()])
