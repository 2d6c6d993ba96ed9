"""Resolves the most used agent libraries beside the wheel with its commands: ``make prove KIND=libraries``.

A library gets the version that it gets alone, or the wheel's bounds shut it out.
"""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Final

from a2a_serverless_tools.stack.environments import find_uv
from a2a_serverless_tools.stack.library import CHECKOUT

LIBRARIES: Final = (
    *("agent-framework", "agno", "autogen-agentchat", "beeai-framework", "crewai", "dspy", "google-adk", "haystack-ai"),
    *("langchain", "langgraph", "llama-index-core", "openai-agents", "pydantic-ai", "semantic-kernel", "smolagents"),
    "strands-agents",
)
# With the extra for its agents, too.
EXTRAS: Final = {
    "google-adk": "adk",
    "langgraph": "langgraph",
    "openai-agents": "openai-agents",
    "pydantic-ai": "pydantic-ai",
    "strands-agents": "strands",
}
# As authors bound it: uv would take the newest slim package for the extra, and for that the oldest whole one.
BOUNDS: Final = {"pydantic-ai": ">=2"}
PYTHON: Final = "3.13"  # Lambda's


def resolve(library: str, *beside: str) -> str:
    """The version of a library that is resolved, or why there is none."""
    options = ["--quiet", "--no-header", "--no-annotate", "--python-version", PYTHON]
    command = [find_uv(), "pip", "compile", *options, *beside, "-"]
    asked = f"{library}{BOUNDS.get(library, '')}"
    done = subprocess.run(command, input=asked, cwd=CHECKOUT, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        return done.stderr.strip().splitlines()[-1]
    (version,) = re.findall(rf"^{library}==(\S+)", done.stdout, re.MULTILINE)
    return str(version)


def main() -> int:
    """Prints a line for each library; returns how many get another version beside the wheel than alone."""
    shut_out = 0
    for library in LIBRARIES:
        extras = ["--extra", "cli", *(["--extra", EXTRAS[library]] if library in EXTRAS else [])]
        alone, beside = resolve(library), resolve(library, "pyproject.toml", *extras)
        shut_out += alone != beside
        print(f"{'ok ' if alone == beside else 'OLD'}  {library:20} {alone:12} {beside}", flush=True)
    return shut_out


if __name__ == "__main__":
    sys.exit(main())
