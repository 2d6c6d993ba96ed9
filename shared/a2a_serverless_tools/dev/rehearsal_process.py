"""The process in which copies of stored tasks are played against a project's code. Its parent may kill it.

It reads a JSON document per line from stdin, the copy of a task, and writes one to stdout: what the play has shown, or
before that the name of a big text that it needs, which the parent answers with a line. From the first play on each
effect of the process is refused. What agents print is dropped, because it may be what clients said.
"""

from __future__ import annotations

import ast
import base64
import json
import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from a2a_serverless.adapters.agent_secrets import secrets_in_environment
from a2a_serverless.domain.record_names import SEPARATOR
from a2a_serverless.testing.effects import refuse_effects_of_process
from a2a_serverless.testing.rehearsal import StoredTask, Surroundings, rehearse_task
from a2a_serverless_tools.dev.loading import AgentsNotLoaded, load_project
from a2a_serverless_tools.project import own_packages, read_project

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

HIDDEN: Final = "…"
SHORT: Final = 5
"""So many digits are the number of an item, and no number that belongs to a person."""


def main(arguments: Sequence[str]) -> None:
    """Plays the tasks of stdin against the project in a folder. ``--show`` shows texts, ``--secrets`` reads secrets."""
    source, answers, shows = sys.stdin.buffer, os.fdopen(os.dup(1), "wb"), "--show" in arguments
    sys.dont_write_bytecode = True
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(2 if shows else silence, 1)
    os.dup2(2 if shows else silence, 2)
    project = read_project(Path(arguments[0]))
    try:
        agents = {agent.id: agent for agent in load_project(project)}
    except AgentsNotLoaded as error:
        _write(answers, {"error": str(error), "traceback": error.text})
        return
    _write(answers, {"agents": [*agents]})
    words = frozenset() if shows else find_words(own_packages(project))
    around = Surroundings(
        read_secret=secrets_in_environment(os.environ) if "--secrets" in arguments else None, prices=project.prices
    )
    refuse_effects_of_process()
    for line in source:
        task = StoredTask.of(json.loads(line), partial(_read_blob, source, answers))
        agent = agents.get(task.head.agent)
        rehearsal = rehearse_task(task, agent, around) if agent else None
        if rehearsal and not shows:
            rehearsal = rehearsal.with_names(partial(show_name, words))
        _write(answers, {"rehearsal": rehearsal.json_form() if rehearsal else None})


def find_words(packages: Sequence[Path]) -> frozenset[str]:
    """The texts and names in a project's packages and modules: no client has said them."""
    files = (file for place in packages for file in ([place] if place.is_file() else place.rglob("*.py")))
    return frozenset(word for file in files for word in _words_in(file))


def show_name(words: frozenset[str], name: str) -> str:
    """The name of an act, with ``HIDDEN`` in the place of each part that is not in the code."""
    return SEPARATOR.join(_show(words, part) for part in name.split(SEPARATOR))


def _show(words: frozenset[str], part: str) -> str:
    own = part.partition("#")[0].partition("/")[0]
    is_known = part in words or own in words or (len(own) <= SHORT and own.isdecimal())
    return part if is_known or not part else HIDDEN


def _words_in(file: Path) -> Iterator[str]:
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        yield from (
            text for name in ("id", "name", "attr", "arg") if isinstance(text := getattr(node, name, None), str)
        )


def _read_blob(source: BinaryIO, answers: BinaryIO, name: str, size: int | None) -> bytes:
    _write(answers, {"read": name, "size": size})
    content = json.loads(source.readline())
    if content is None:
        raise KeyError(name)
    return base64.b64decode(content)


def _write(answers: BinaryIO, value: Any) -> None:  # noqa: ANN401 - JSON
    answers.write(json.dumps(value).encode() + b"\n")
    answers.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
