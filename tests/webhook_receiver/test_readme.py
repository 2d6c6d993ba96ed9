"""What the README lists is what there is."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

import a2a_webhook_receiver
from a2a_webhook_receiver.errors import STEPS, Refused, Step
from a2a_webhook_receiver.settings import Settings
from vectors.cases import all_cases

README = (Path(a2a_webhook_receiver.__file__).parent.parent / "README.md").read_text()


def refusals(kind: type[Refused] = Refused) -> list[type[Refused]]:
    below = [each for child in kind.__subclasses__() for each in refusals(child)]
    return below if "code" not in vars(kind) or kind is Refused else [kind, *below]


def rules() -> list[tuple[str, str]]:
    """Pairs of step and code, as the table of rules has them."""
    table = README.partition("## Rules")[2].partition("## Vectors")[0]
    step, found = "", []
    for line in re.findall(r"^\| ([a-z ]*)\| ((?:`[a-z-]+` ?)+)\|", table, re.MULTILINE):
        step = line[0].strip() or step
        found += [(step, code) for code in re.findall(r"`([a-z-]+)`", line[1])]
    return found


def test_every_rule_is_listed_under_its_check() -> None:
    assert sorted(rules()) == sorted((kind.step, kind.code) for kind in refusals())


def test_the_rules_are_listed_in_the_order_of_the_checks() -> None:
    listed: list[Step] = [step for step in STEPS if step in dict(rules())]
    assert list(dict(rules())) == listed == list(STEPS)


def test_no_two_kinds_of_refusal_have_the_same_code() -> None:
    codes = [kind.code for kind in refusals()]
    assert len(codes) == len(set(codes))


def test_every_rule_that_the_verifier_knows_has_a_vector() -> None:
    of_a_server = {"too-large", "too-slow", "keys-unavailable", "still-working", "replayed"}
    assert {case.code for case in all_cases()} == {kind.code for kind in refusals()} - of_a_server | {None}


@pytest.mark.parametrize("kind", refusals(), ids=lambda kind: kind.__name__)
def test_every_refusal_has_a_remedy_of_one_or_two_sentences(kind: type[Refused]) -> None:
    assert re.fullmatch(r"[A-Z][^.]*\.( [A-Z][^.]*\.)?", kind.remedy)


def test_the_readme_lists_every_variable_of_the_settings() -> None:
    listed = set(re.findall(r"`([A-Z][A-Z0-9_]+)`", README.partition("| variable")[2].partition("\n## ")[0]))
    assert listed == {field.name.upper() for field in fields(Settings)} - {"LIVE"}
