"""Retired names are not used again, a class name means one thing in the library, and a test has a sentence as name."""

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

# A sentence that begins with a pronoun does not say of what it speaks.
PRONOUNS: Final = re.compile(
    "(any|every|some)(body|one|thing)|no(body|ne|thing)|neither|i|me|my|we|us|ours?|you|yours?|he|him|his|she|hers?"
    "|it|its|itself|they|them|theirs?|there|these|this|those|that|(what|which|who)(ever)?|whom|whose"
)
WORDS_OF_A_SENTENCE: Final = 5


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


def fault_of(name: str) -> str | None:
    """Returns why the name of a test is no sentence; the number of a rule does not count."""
    first, *others = re.sub(r"^test_(rule_\d\d_)?", "", name).split("_")
    if len(others) + 1 < WORDS_OF_A_SENTENCE:
        return f"has {len(others) + 1} words"
    return f"begins with {first!r}" if PRONOUNS.fullmatch(first) else None


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("test_a_sweep_is_counted", "has 4 words"),
        ("test_rule_08_deliveries_keep_their_order", "has 4 words"),
        ("test_what_was_given_up_can_be_redriven", "begins with 'what'"),
        ("test_rule_10_nothing_gets_out_of_a_log", "begins with 'nothing'"),
        ("test_a_sweep_counts_itself_once", None),
        ("test_rule_08_a_delivery_keeps_its_order", None),
    ],
)
def test_a_name_of_a_test_needs_five_words_and_no_pronoun_first(name: str, fault: str | None) -> None:
    assert fault_of(name) == fault


def test_every_test_has_a_sentence_as_its_name() -> None:
    faults = [
        f"{path}::{node.name} {fault}"
        for path, tree in sources("tests")
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
        if (fault := fault_of(node.name))
    ]
    remedy = "Say what somebody does to something, in five words or more, of which the first is no pronoun"
    assert faults == [], f"{remedy}:\n" + "\n".join(faults)
