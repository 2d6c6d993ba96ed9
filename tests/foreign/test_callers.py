"""Clients of other frameworks call our agents over real HTTP, each in its environment, in a process of its own.

Each program prints what its user gets of every flow. ``flows.py`` says what that is, and what is lost: so a new version
that gets more or less fails here, and the page that shows the table is written anew.
"""

from __future__ import annotations

import json
import os
import subprocess
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

import pytest

from a2a_serverless.domain.model import Principal
from tests.conformance.live import serving
from tests.foreign.clerk import AGENTS
from tests.foreign.flows import CALLERS, FLOWS, ROOT, program_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.enable_socket, pytest.mark.xdist_group("foreign clients")]

TIMEOUT_S: Final = 300
AT_ONCE: Final = 2
# Some of these libraries send telemetry, or read lists from the web.
QUIET: Final = {
    "CREWAI_DISABLE_TELEMETRY": "true",
    "LITELLM_LOCAL_MODEL_COST_MAP": "true",
    "NO_COLOR": "1",
    "OTEL_SDK_DISABLED": "true",
}
CASES: Final = [
    (name, flow) for name, caller in CALLERS.items() for flow in (*FLOWS, *caller.more) if flow not in caller.without
]


def python_of(name: str) -> Path:
    """The Python of a client's environment."""
    return ROOT / ".a2a/venvs" / f"caller-{CALLERS[name].environment or name}" / "bin/python"


def key_of(name: str) -> str:
    """The API key of a client: each is an owner of its own, so that none sees the questions of another."""
    return f"a2a_{name}"


class Programs:
    """Runs each program once, a few at a time."""

    def __init__(self, url: str, slow_url: str, folder: Path, pool: ThreadPoolExecutor) -> None:
        self._url, self._slow_url, self._folder, self._pool = url, slow_url, folder, pool
        self._started: dict[str, Future[subprocess.CompletedProcess[str]]] = {}

    def seen(self, name: str) -> dict[str, Any]:
        """What a program has printed; skips the test if the client's environment is missing."""
        python = python_of(name)
        if not python.exists():
            pytest.skip(
                f"FOREIGN CLIENT NOT RUN: {name}: it needs `make {python.parents[1].relative_to(ROOT)}/.installed`"
            )
        for each in CALLERS if not self._started else ():
            if python_of(each).exists():
                self._started[each] = self._pool.submit(self._run, each)
        ran = self._started[name].result()
        assert ran.returncode == 0, ran.stderr
        return dict(json.loads(ran.stdout.splitlines()[-1]))

    def _run(self, name: str) -> subprocess.CompletedProcess[str]:
        arguments = [self._url, self._slow_url, key_of(name), str(self._folder / name)]
        return subprocess.run(  # noqa: S603 - our own programs
            [python_of(name), program_of(name), *arguments],
            cwd=self._folder,
            env={"PATH": os.environ["PATH"], "HOME": str(self._folder), **QUIET},
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Programs]:
    """Two deployments: one as on AWS, and one whose requests and streams are shorter than the work of its agents."""
    callers = {key_of(name): Principal("acme", name) for name in CALLERS}
    folder = tmp_path_factory.mktemp("callers")
    with (
        serving(AGENTS, callers=callers) as url,
        serving(AGENTS, callers=callers, stream_ms=2_000, blocking_ms=2_000) as slow_url,
        ThreadPoolExecutor(AT_ONCE) as pool,
    ):
        yield Programs(url, slow_url, folder, pool)


@pytest.mark.parametrize(("name", "flow"), CASES, ids=map(" ".join, CASES))
def test_a_foreign_client_sees_what_the_page_says(programs: Programs, name: str, flow: str) -> None:
    caller = CALLERS[name]
    expected = caller.more[flow] if flow in caller.more else caller.seen[flow].value
    assert programs.seen(name)[flow] == expected
