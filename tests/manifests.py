"""The manifest of the agents of tests and samples, as the build writes it into the functions' zips."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

from a2a_serverless.agent_loader import MANIFEST, describe, write_manifest
from a2a_serverless_tools.project import read_project

KIT = "sample_agents.conformance:AGENTS"


@cache
def manifest_of_samples() -> Path:
    """A file that functions read by ``AGENTS_FILE``: the conformance kit's agents, and the samples."""
    project = read_project(Path(__file__).parents[1])
    file = Path(tempfile.mkdtemp()) / MANIFEST
    write_manifest(file, {path: describe(path) for path in (KIT, *project.agents)})
    return file
