"""Where dynoxide cannot run, its tests are skipped with the reason. Cargo is a script here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from tests.contract.dynoxide import NotInstalled, find, folder, install

if TYPE_CHECKING:
    from pathlib import Path

NEW: Final = "cargo 1.88.0 (873a06493 2025-05-10)"


@pytest.fixture(autouse=True)
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder of programs; the user's cache is empty."""
    programs = tmp_path / "programs"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return programs


def _write_cargo(path: Path, version: str, install: str) -> None:
    cargo = path / "cargo"
    cargo.write_text(f'#!/bin/sh\ncase $1 in --version) echo "{version}";; *) {install};; esac\n')
    cargo.chmod(0o755)


def test_dynoxide_is_installed_outside_of_the_checkout_in_a_folder_by_version(tmp_path: Path) -> None:
    assert folder().parent == tmp_path / "cache/a2a-serverless"
    assert folder().name.startswith("dynoxide-3.")


def test_a_machine_without_cargo_does_not_install_dynoxide() -> None:
    with pytest.raises(NotInstalled, match=r"^DYNOXIDE NOT RUN: it needs cargo 1\.88 or newer$"):
        install()
    with pytest.raises(NotInstalled, match=r"it needs cargo 1\.88 or newer"):
        find()


@pytest.mark.parametrize("version", ["cargo 0.66.0", "cargo 1.85.0", "cargo 1.87.0-nightly"])
def test_an_older_cargo_is_not_tried(path: Path, version: str) -> None:
    _write_cargo(path, version, "exit 0")
    with pytest.raises(NotInstalled, match=rf"it needs cargo 1\.88 or newer, not {version}"):
        install()


def test_a_cargo_that_does_not_say_its_version_is_not_tried(path: Path) -> None:
    _write_cargo(path, "", "exit 0")
    with pytest.raises(NotInstalled, match="`cargo --version` says: nothing"):
        install()


def test_with_cargo_it_needs_a_command_that_compiles_it(path: Path) -> None:
    _write_cargo(path, NEW, "exit 0")
    with pytest.raises(NotInstalled, match="it needs `make dynoxide`"):
        find()


def test_an_error_of_cargo_is_the_reason(path: Path) -> None:
    _write_cargo(path, NEW, "echo Updating >&2; echo 'error: no network' >&2; echo '  details' >&2; exit 101")
    with pytest.raises(NotInstalled, match=r"`cargo install` says: error: no network$"):
        install()


def test_an_installed_dynoxide_is_found_and_not_compiled_again(path: Path) -> None:
    program = folder() / "bin/dynoxide"
    _write_cargo(path, NEW, f'/bin/mkdir -p {program.parent}; echo "$@" >> {program}')
    install()
    install()
    assert find() == program
    options = "--version =3.2.0 --locked --no-default-features --features native-sqlite,http-server,cli"
    assert program.read_text() == f"install dynoxide-rs {options} --root {folder()}\n"
