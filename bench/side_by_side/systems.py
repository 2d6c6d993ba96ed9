"""The systems: `systems.toml`, read and checked."""

from __future__ import annotations

import os
import shutil
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from plays import Play

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parents[1]


@dataclass(frozen=True)
class System:
    """One system; `systems.toml` says what the fields mean."""

    name: str
    title: str
    adapter: str
    licence: str
    acts: str
    lease_s: Mapping[str, float]
    documents: Sequence[str]
    environment_name: str = ""
    packages: Sequence[str] = ()
    program: str = ""
    command: str = ""
    file: str = ""
    ours: bool = False
    caller: bool = False
    worker: bool = True
    machines: int = 2
    variables: Mapping[str, str] = field(default_factory=dict)
    resume: Mapping[str, str] = field(default_factory=dict)
    waiting: Mapping[str, Any] = field(default_factory=dict)
    cannot: Mapping[str, str] = field(default_factory=dict)
    known: Mapping[str, str] = field(default_factory=dict)

    @property
    def python(self) -> str:
        """The interpreter of its environment."""
        folder = ROOT / ".a2a/venvs" / self.environment_name if self.environment_name else ROOT / ".venv"
        return str(folder / "bin/python")

    @property
    def variables_of_processes(self) -> dict[str, str]:
        """What its processes get beside the player's own environment."""
        needed = {self.program: self.found} if self.program else {}
        return {**self.variables, **needed, "CHECKOUT": str(ROOT), "AWS_DEFAULT_REGION": "us-east-1"}

    @property
    def found(self) -> str:
        """The path of the program that it needs, by a variable of its name; empty if there is none."""
        path = os.environ.get(self.program) or shutil.which(self.program.lower())
        installed = sorted(Path("/usr/lib").glob(f"*/*/bin/{self.program.lower()}"))  # as Debian does
        return os.path.realpath(path) if path else str(installed[-1]) if installed else ""

    def why_not(self, play: Play) -> str:
        """Why a play cannot be played; empty if it can."""
        return self.cannot.get(play.fault.__name__, "")

    def waits(self, setting: str, play: Play) -> bool:
        """Whether the documents say that this play ends only when somebody acts."""
        name = play.fault.__name__
        return name in self.waiting and setting in self.waiting[name]["settings"]


def read() -> dict[str, System]:
    """All systems, by name."""
    return {
        name: System(name=name, **values) for name, values in tomllib.loads((HERE / "systems.toml").read_text()).items()
    }
