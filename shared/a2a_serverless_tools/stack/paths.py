"""The paths of a project. The commands write only under its `.a2a/`, and `build` to `.aws-sam/build`."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from a2a_serverless_tools.project import ProjectError, find_project
from a2a_serverless_tools.stack.errors import StackError
from a2a_serverless_tools.stack.library import CHECKOUT, FILES, IS_WHEEL

__all__ = ["CHECKOUT", "Paths", "find", "find_samples", "state_folder"]


@dataclass(frozen=True)
class Paths:
    """Paths of one project and of one running stack in it. Its environments and builds are in ``home``."""

    root: Path
    state: Path
    apart: Path | None = None

    @property
    def home(self) -> Path:
        return self.apart or self.root / ".a2a"

    @property
    def demo(self) -> "Paths":
        """The paths of a stack of the samples, which is apart from the one of `up`."""
        return Paths(FILES, self.state / "demo", self.home)

    @property
    def dev(self) -> "Paths":
        """The paths of what `dev` runs, which is no stack."""
        return Paths(self.root, self.state / "dev", self.home)

    @property
    def sources(self) -> Path:
        """The folder of template, functions and events: the project, if it has a template, or else the library's."""
        return self.root if (self.root / "template.yaml").is_file() else FILES

    @property
    def template(self) -> Path:
        return self.sources / "template.yaml"

    @property
    def sam(self) -> Path:
        return self.home / "venvs/sam/bin/sam"

    @property
    def emulator(self) -> Path:
        return self.home / "venvs/emulator/bin/ministack"

    @property
    def builds(self) -> Path:
        return self.home / "builds"

    @property
    def release(self) -> Path:
        return self.root / ".aws-sam/build"

    @property
    def compiled(self) -> Path:
        return self.home / "compiled"

    def log(self, part: str) -> Path:
        """Return the log file of a part; makes its folder."""
        path = self.state / "logs" / f"{part}.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Wait until no other process installs or builds in ``home``, and keep others waiting while the block runs."""
        import fcntl  # late: there is none on Windows, where `init` works

        self.home.mkdir(parents=True, exist_ok=True)
        with (self.home / "building").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def relative(self, path: Path) -> Path:
        """Return the path relative to the project, if it is in it."""
        return path.relative_to(self.root) if path.is_relative_to(self.root) else path


def find(root: Path | None = None, state: Path | None = None) -> Paths:
    """Return the paths of the project at ``root``, by default the one of the current folder. Raises `ProjectError`.

    In no project a checkout of this repository is the project. `state` is the folder of a stack's logs and process
    records, `.a2a` by default; each stack needs its own.
    """
    root = root or _found()
    return Paths(root, state or root / ".a2a")


def state_folder(environment: Mapping[str, str]) -> Path | None:
    """Return the folder of the stack's state that the environment names; None for the usual one."""
    return Path(environment["A2A_STATE"]).resolve() if environment.get("A2A_STATE") else None


def find_samples(state: Path | None = None) -> Paths:
    """Return the paths for a stack of the samples, which are in a checkout only. Raises `StackError`."""
    if IS_WHEEL:
        raise StackError("demo", "its agents are in the repository, not in this package", remedy="`make demo` there")
    return find(state=state).demo


def _found() -> Path:
    try:
        return find_project().root
    except ProjectError:
        if IS_WHEEL:
            raise
        return CHECKOUT
