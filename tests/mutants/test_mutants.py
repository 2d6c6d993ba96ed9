"""The tool itself: what it changes, what kills, and what ``survivors.toml`` may say."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import pytest

from a2a_serverless.domain.key_ring import KeyRing, RetiredKey, SigningKey
from tests.echo import Writer
from tests.mutants.areas import AREAS, LIBRARY, SHARED, TESTS
from tests.mutants.mutations import Mutant, choose, modules, mutants_of
from tests.mutants.processes import Outcome, allow, next_done, start
from tests.mutants.run import Trial, known_survivors, report
from tests.world import World

if TYPE_CHECKING:
    from pathlib import Path

KEY_RING: Final = mutants_of("domain.key_ring")
RING: Final = KeyRing(SigningKey("a", {}, ""), SigningKey("b", {}, ""), (RetiredKey("c", {}, 10),))
TEST: Final = """
from a2a_serverless.domain.key_ring import KeyRing, RetiredKey, SigningKey

RING = KeyRing(SigningKey("a", {}, ""), SigningKey("b", {}, ""), (RetiredKey("c", {}, 10),))

def test_public():
    assert len(RING.jwks(9)["keys"]) == 3 and len(RING.jwks(11)["keys"]) == 2

def test_never_run_by_what_is_tried():
    assert True
"""


def mutant(function: str, text: str) -> Mutant:
    (found,) = [one for one in KEY_RING if one.key == ("domain.key_ring", function, text)]
    return found


def test_a_mutant_changes_what_is_loaded_and_changes_it_back() -> None:
    with mutant("KeyRing.jwks", "old.until > now -> old.until >= now").loaded() as names:
        assert names == ["KeyRing.jwks"]
        assert len(RING.jwks(10)["keys"]) == 3  # type: ignore[arg-type]
    assert len(RING.jwks(10)["keys"]) == 2  # type: ignore[arg-type]


def test_a_seed_chooses_the_same_mutants_each_time_and_another_seed_others() -> None:
    first, again, other = (choose(mutants_of("domain.key_ring"), seed, 5) for seed in (1, 1, 2))
    assert [one.key for one in first] == [one.key for one in again]
    assert {one.key for one in first} != {one.key for one in other}


def test_a_mutant_that_a_test_notices_is_killed_and_others_survive(tmp_path: Path) -> None:
    path = tmp_path / "test_key_ring.py"
    path.write_text(TEST)
    killed = mutant("KeyRing.jwks", "old.until > now -> old.until <= now")
    lives = mutant("KeyRing.jwks", "old.until > now -> old.until >= now")
    never_run = mutant("revoke", "old.kid != kid -> old.kid == kid")
    options = [str(path), "-q", "-s", "-c", "/dev/null", "--rootdir", str(tmp_path), "-p", "no:cacheprovider"]

    def run() -> None:
        trial = Trial([killed, lives, never_run], tmp_path, AREAS["keys"].paths)
        assert not pytest.main(options, plugins=[trial])

    start(run)
    assert next_done()[1] is Outcome.DONE
    results = [json.loads(line) for line in (tmp_path / "results.jsonl").read_text().splitlines()]
    assert {tuple(one["mutant"]): (one["result"], one.get("by"), one.get("tests")) for one in results} == {
        killed.key: ("killed", "test_key_ring.py::test_public", None),
        lives.key: ("survived", None, 1),
        never_run.key: ("survived", None, 0),
    }


def test_a_process_that_never_ends_is_killed_and_an_error_is_a_crash() -> None:
    def loop() -> None:
        allow(0.01)
        while True:
            pass

    outcomes = {start(loop): Outcome.TIMED_OUT, start(lambda: 1 // 0): Outcome.CRASHED, start(str): Outcome.DONE}  # type: ignore[arg-type]
    assert dict(next_done() for _ in range(3)) == outcomes


def test_a_simulated_world_lives_in_a_copy_of_a_process_that_has_played_one() -> None:
    def play() -> None:
        world = World([Writer(seconds=0).agent])
        world.send("hello")
        world.settle()

    def play_in_time() -> None:
        allow(10)
        play()

    play()
    copy = start(play_in_time)
    assert next_done() == (copy, Outcome.DONE)


def test_the_share_counts_what_is_not_equivalent(capsys: pytest.CaptureFixture[str]) -> None:
    results = {one.key: {"result": "killed"} for one in KEY_RING}
    assert report(results, KEY_RING) == 0
    results[KEY_RING[0].key] = {"result": "survived"}
    assert report(results, KEY_RING) == 1, "no reason is listed"
    assert "NO REASON IS LISTED" in capsys.readouterr().out


def test_each_module_is_changed_in_one_area_and_each_pattern_names_files() -> None:
    every = [module for area in AREAS for module in modules(area)]
    assert len(every) == len(set(every))
    folders = (LIBRARY / "engine", LIBRARY / "services", SHARED / "a2a_serverless_frameworks")
    whole = {path for folder in folders for path in folder.glob("[!_]*.py")}
    assert whole <= {path for area in AREAS.values() for path in area.paths}
    for area in AREAS.values():
        assert [pattern for pattern in area.modules if not [*LIBRARY.glob(pattern), *SHARED.glob(pattern)]] == []
        assert [pattern for pattern in area.tests if not [*TESTS.glob(pattern)]] == []


def test_each_listed_survivor_can_be_made_and_has_one_reason() -> None:
    made = {one.key for module in {module for module, _, _ in known_survivors()} for one in mutants_of(module)}
    assert known_survivors().keys() <= made
    for one in known_survivors().values():
        assert len(one.keys() & {"equivalent", "unpromised"}) == 1
