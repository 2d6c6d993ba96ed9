"""What code outside of steps may do while it is played for a look: import modules, and nothing to the world."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING

import pytest

from a2a_serverless.testing.effects import EffectRefused, refuse_effects

if TYPE_CHECKING:
    from pathlib import Path


def test_an_import_may_leave_its_compiled_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "imported_in_a_play.py").write_text("VALUE = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", None)
    with refuse_effects() as refusals:
        assert importlib.import_module("imported_in_a_play").VALUE == 1
    assert refusals == []
    assert [*(tmp_path / "__pycache__").iterdir()] != []


@pytest.mark.parametrize("name", ["__pycache__.txt", "my__pycache__/file", "__pycache__/deeper/file", "file"])
def test_a_file_whose_name_only_looks_like_a_compiled_module_is_not_written(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    with refuse_effects() as refusals, pytest.raises(EffectRefused):
        (tmp_path / name).open("w")
    assert refusals == ["open"]
    assert not (tmp_path / name).exists()


def test_a_compiled_module_is_not_moved_to_another_place(tmp_path: Path) -> None:
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "file").touch()
    with refuse_effects() as refusals, pytest.raises(EffectRefused):
        (tmp_path / "__pycache__" / "file").rename(tmp_path / "file")
    assert refusals == ["os.rename"]
