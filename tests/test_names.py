"""Retired names are not used again, and a class name means one thing in the library."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[1]
PACKAGES: Final = ("shared/a2a_serverless", "shared/a2a_serverless_frameworks", "shared/a2a_serverless_tools")
FOLDERS: Final = ("shared", "functions", "webhook_receiver", "bench", "examples", "tests")

# Retired words of the project's own, and their standard terms.
RETIRED: Final = {
    "allowance": "quota",
    "bell": "message",
    "bells": "messages, queues",
    "broom": "sweeper",
    "desk": "service",
    "fold": "replay, snapshot",
    "folded": "replayed",
    "folds": "snapshots",
    "letterbox": "queue",
    "locksmith": "key_rotation",
    "patience": "timeout, retry_policy",
    "proofs": "verifier",
    "rang": "enqueued",
    "remains": "erasure",
    "rubber": "erasure",
    "rung": "enqueued",
    "shelf": "lister",
    "smith": "rotation",
    "switchboard": "admin",
    "telling": "replayer",
    "turnstile": "limiter",
    "unfolded": "bytes_since_snapshot",
    "vault": "store",
}
VERSIONS: Final = "protocol"  # the models of each version count alone


def sources(*folders: str) -> Iterator[tuple[Path, ast.Module]]:
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            below = path.relative_to(ROOT)
            if "builtin" not in below.parts:
                yield below, ast.parse(path.read_bytes())


def defined(tree: ast.Module) -> Iterator[str]:
    """Yields every name that a module defines."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name
            case ast.alias(asname=str(name)):
                yield name


@cache
def names_in(folder: str) -> Sequence[tuple[Path, set[str]]]:
    """Returns the names that each module below a folder defines."""
    return [(path, {*defined(tree), path.stem}) for path, tree in sources(folder)]


def words(name: str) -> set[str]:
    return {word.lower() for word in re.findall(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+", name)}


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_identifier_has_a_retired_word_in_it(folder: str) -> None:
    found = {
        f"{path}: {name} ({', '.join(RETIRED[word] for word in sorted(words(name) & RETIRED.keys()))})"
        for path, names in names_in(folder)
        for name in names
        if words(name) & RETIRED.keys() and not name.startswith("test_")
    }
    assert not found


def test_no_two_classes_of_the_library_have_one_name() -> None:
    places = defaultdict(list)
    for path, tree in sources(*PACKAGES):
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and VERSIONS not in path.parts:
                places[node.name].append(str(path))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}
