"""The paths of the checkout. The local stack writes only under its `.a2a/`."""

import os
from dataclasses import dataclass
from pathlib import Path

from a2a_serverless.stack.errors import StackError

CHECKOUT = Path(__file__).resolve().parents[3]


@dataclass(frozen=True)
class Paths:
    """Paths of one checkout and of one running stack in it."""

    root: Path
    state: Path

    @property
    def demo(self) -> "Paths":
        """The paths of the demo's stack, which is apart from the one of `up`."""
        return Paths(self.root, self.state / "demo")

    @property
    def template(self) -> Path:
        return self.root / "template.yaml"

    @property
    def sam(self) -> Path:
        return self.root / ".a2a/venvs/sam/bin/sam"

    @property
    def emulator(self) -> Path:
        return self.root / ".a2a/venvs/emulator/bin/ministack"

    @property
    def builds(self) -> Path:
        return self.root / ".a2a/builds"

    @property
    def release(self) -> Path:
        return self.root / ".aws-sam/build"

    @property
    def compiled(self) -> Path:
        return self.root / ".a2a/compiled"

    def log(self, part: str) -> Path:
        """Return the log file of a part; makes its folder."""
        path = self.state / "logs" / f"{part}.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def relative(self, path: Path) -> Path:
        """Return the path relative to the checkout, if it is in it."""
        return path.relative_to(self.root) if path.is_relative_to(self.root) else path


def find(root: Path = CHECKOUT, state: Path | None = None) -> Paths:
    """Return the paths of a checkout. Raises `StackError` when it is not a checkout or not set up.

    `state` is the folder of a stack's logs and process records, `.a2a` by default; each stack needs its own.
    """
    paths = Paths(root, state or root / ".a2a")
    if not paths.template.is_file():
        raise StackError("checkout", f"no template.yaml in {root}", remedy="run this from a clone of the repository")
    for tool in (paths.sam, paths.emulator):
        if not os.access(tool, os.X_OK):
            raise StackError("tools", f"{paths.relative(tool)} is missing", remedy="make setup")
    return paths
