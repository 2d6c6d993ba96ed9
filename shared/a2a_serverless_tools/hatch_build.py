"""Puts what `init`, `build` and `up` copy or use into the wheel and the sdist, as ``assets``: stack/library.py."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ASSETS = (
    "events",
    *(
        f"examples/{name}_agent.py"
        for name in ("a2a_sdk", "adk", "langgraph", "openai_agents", "pydantic_ai", "strands")
    ),
    "examples/project",
    "examples/test_shop.py",
    "functions",
    "observability.yaml",
    "requirements/emulator.txt",
    "requirements/functions.txt",
    "requirements/sam.txt",
    "samconfig.example.toml",
    "template.yaml",
)


class CustomBuildHook(BuildHookInterface[Any]):
    """Adds files of the checkout. A wheel that is made of an sdist finds them there, and has them in the same order."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Map the files of the checkout to their places. An editable install has none: it uses the checkout's."""
        if version == "editable":
            return
        here = Path(self.root) / "assets"
        files = here if here.is_dir() else Path(self.root).parents[1]
        build_data["force_include"] |= {str(files / name): f"assets/{name}" for name in ASSETS}
