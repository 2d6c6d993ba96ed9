"""The api's cold start with a LangGraph agent in the project, by the one without (N19).

Two new projects, which differ in one agent and its dependencies, are built in an environment with LangGraph. The zips
of their api functions start in turns, as for N1: a new process, until the first SendMessage of the agent that both have
is answered and durably stored. Only the worker imports the LangGraph agent, and only its zip has LangGraph.
The first build installs it.
"""

from __future__ import annotations

import os
import subprocess
from functools import partial
from pathlib import Path
from typing import Final

from a2a_serverless_tools.stack.environments import find_uv, package_index
from cold_start import environment, first_answer_ms, unzipped
from measuring import ROOT, Report, figure, goal, main, ratios, side_by_side
from projects import AGENT, make_project
from stand_in import running

LIMIT: Final = 1.03
PYTHON: Final = ROOT / ".a2a/venvs/bench-langgraph/bin/python"
BUILD: Final = """
from a2a_serverless_tools.stack import paths
from a2a_serverless_tools.stack.build import build
from a2a_serverless_tools.stack.targets import this_machine
print(build(paths.find(), this_machine()).path)
"""
ALONE, BESIDE = "without a LangGraph agent", "with a LangGraph agent"


def measure(rounds: int) -> Report:
    """Measures both in each round."""
    apis = {ALONE: unzipped(built(make_project("alone")), "Api"), BESIDE: unzipped(built(with_langgraph()), "Api")}
    if "shop" not in (apis[BESIDE] / "agents.json").read_text():
        raise SystemExit("the api does not know the LangGraph agent")
    with running() as endpoint:
        env = environment(endpoint)
        start = partial(first_answer_ms, module="app", path=f"/{AGENT}", method="SendMessage", env=env)
        values = side_by_side({name: partial(start, [folder]) for name, folder in apis.items()}, rounds)
    alone, beside = values[ALONE], values[BESIDE]
    return Report(
        "Cold start beside a framework",
        __doc__ or "",
        [figure(f"api {name}", "ms", times, ours=True) for name, times in values.items()],
        [goal("N19", "cold start of the api with a LangGraph agent, by without", "<=", LIMIT, ratios(beside, alone))],
    )


def with_langgraph() -> Path:
    """Makes a project with one agent more, the LangGraph example."""
    project = make_project("beside-langgraph")
    (project / "shop.py").write_text((ROOT / "examples/langgraph_agent.py").read_text())
    file = project / "pyproject.toml"
    text = file.read_text().replace('<0.2"]', '<0.2", "a2a-serverless[langgraph]"]', 1)
    file.write_text(text.replace('tailor:tailor"]', 'tailor:tailor", "shop:shop_agent"]'))
    return project


def built(project: Path) -> Path:
    """Builds a project for this machine; returns the folder of the build."""
    env = {**os.environ, **package_index(), "UV": find_uv()}
    done = subprocess.run([PYTHON, "-c", BUILD], cwd=project, env=env, stdout=subprocess.PIPE, text=True, check=True)
    return Path(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    main(measure, rounds=11)
