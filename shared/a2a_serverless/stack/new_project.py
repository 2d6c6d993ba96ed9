"""Writes a new project: the deployment of this library, with one agent, its test, and a workflow.

All is made from the library's own files. What differs is the project's name, and that the library is a package there.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from a2a_serverless.stack.errors import StackError
from a2a_serverless.stack.library import FILES

NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
LONGEST = 50
EXAMPLE, AGENT = "my-agents", "tailor"
_TEXTS = ("template.yaml", "observability.yaml")


def create(name: str, parent: Path) -> list[Path]:
    """Write a project into a new folder; return its files. Raises `StackError` for a bad name, or if it exists."""
    if not NAME.fullmatch(name) or len(name) > LONGEST:
        why = (
            f"{name!r} is no name: lower case, digits and single hyphens, a letter first, {LONGEST} characters at most"
        )
        raise StackError("init", why)
    root = parent / name
    if root.exists():
        raise StackError("init", f"{root} exists already", remedy="another name, or another folder")
    for place, text, mode in _files(name):
        file = root / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(mode)
    return sorted(path for path in root.rglob("*") if path.is_file())


def _files(name: str) -> Iterator[tuple[str, str, int]]:
    for one in _TEXTS:
        yield one, (FILES / one).read_text(), 0o644
    yield "samconfig.toml", _samconfig((FILES / "samconfig.example.toml").read_text(), name), 0o644
    for folder, change in (("functions", _function), ("events", _event)):
        for file in sorted((FILES / folder).rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                yield file.relative_to(FILES).as_posix(), change(file.read_text()), file.stat().st_mode & 0o777
    example = FILES / "examples/project"
    for file in sorted(example.rglob("*")):
        if file.is_file() and "__pycache__" not in file.parts:
            place = _named(file.relative_to(example).as_posix(), name)
            yield ".gitignore" if place == "gitignore" else place, _named(file.read_text(), name), 0o644


def _named(text: str, name: str) -> str:
    return text.replace(EXAMPLE, name).replace(EXAMPLE.replace("-", "_"), name.replace("-", "_"))


def _samconfig(text: str, name: str) -> str:
    """The options for AWS, without those of the emulator, which the commands have."""
    options = text[text.index("version =") : text.index("# The emulator")]
    return options.replace('"a2a-serverless"', f'"{name}"').replace("service=a2a-serverless", f"service={name}")


def _function(text: str) -> str:
    """A requirements file names the library and the receiver as packages. The samples' own needs are left out."""
    text = re.sub(r"^-c .*\n", "", text, flags=re.MULTILINE).replace(",picture", "")
    text = re.sub(r"^\.(?=\[|$)", "a2a-serverless", text, flags=re.MULTILINE)
    return re.sub(r"^\./webhook_receiver$", "a2a-webhook-receiver", text, flags=re.MULTILINE)


def _event(text: str) -> str:
    return re.sub(r"\bdocument\b", AGENT, text)
