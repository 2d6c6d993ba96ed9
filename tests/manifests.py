"""The manifest of the sample agents, as the build writes it into the functions' zips."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

from a2a_serverless.agent_loader import MANIFEST, describe, write_manifest
from a2a_serverless_tools.project import read_project


@cache
def manifest_of_samples() -> Path:
    """A file that functions read by ``AGENTS_FILE``."""
    project = read_project(Path(__file__).parents[1])
    file = Path(tempfile.mkdtemp()) / MANIFEST
    described = [{path: describe(path) for path in paths} for paths in (project.agents, project.local_agents)]
    write_manifest(file, *described)
    return file
