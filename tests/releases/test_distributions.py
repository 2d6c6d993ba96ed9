"""What is in the archives: the files of their packages and no others, and the metadata that an index shows."""

from __future__ import annotations

import re
import tarfile
import zipfile
from typing import TYPE_CHECKING, get_args

import pytest
from packaging.metadata import Metadata
from packaging.version import Version

from a2a_serverless_tools.cli.stack import FrameworkName
from a2a_serverless_tools.hatch_build import ASSETS
from a2a_serverless_tools.stack.library import CHECKOUT
from a2a_serverless_tools.stack.wheels import SOURCES
from tests.stack.wheels import dist, source, wheels_in

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["dist", "source"]
pytestmark = pytest.mark.integration

NOT_INSTALLED = {"LICENSE", "README.md", "hatch_build.py", "pyproject.toml"}
EACH = pytest.mark.parametrize("name", SOURCES)


def files(folder: Path) -> dict[str, bytes]:
    """The files of a folder or the one file, by their place in it; a checkout's caches aside."""
    found = [path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def package(name: str, source: Path) -> dict[str, bytes]:
    """The files of a distribution's package, as they are installed."""
    folder = next(source.glob(f"shared/{name.replace('-', '_')}"), source / "webhook_receiver/a2a_webhook_receiver")
    found = {place: content for place, content in files(folder).items() if place not in NOT_INSTALLED}
    if name == "a2a-serverless-tools":
        for asset in ASSETS:
            path = source / asset
            below = {f"{asset}/{place}": content for place, content in files(path).items()}
            found |= {f"assets/{place}": content for place, content in (below or {asset: path.read_bytes()}).items()}
    return {f"{folder.name}/{place}": content for place, content in found.items()}


def in_wheel(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def in_sdist(name: str, dist: Path) -> dict[str, bytes]:
    (path,) = dist.glob(f"{name.replace('-', '_')}-[0-9]*.tar.gz")
    with tarfile.open(path) as archive:
        members = archive.getmembers()
        assert all(member.isreg() for member in members)
        return {
            member.name.partition("/")[2]: content.read()
            for member in members
            if (content := archive.extractfile(member))
        }


def metadata(wheel: Path) -> Metadata:
    (text,) = [content for name, content in in_wheel(wheel).items() if name.endswith(".dist-info/METADATA")]
    return Metadata.from_email(text, validate=True)


@EACH
def test_a_wheel_has_the_files_of_its_package_and_no_others(name: str, dist: Path, source: Path) -> None:
    found = in_wheel(wheels_in(dist)[name])
    about = {place: content for place, content in found.items() if ".dist-info/" in place}
    expected = package(name, source)
    assert {place for place in found if place not in about} == expected.keys()
    assert all(found[place] == content for place, content in expected.items())
    assert f"{name.replace('-', '_')}/py.typed" in expected
    scripts = {"entry_points.txt"} if name == "a2a-serverless-tools" else set()
    assert {place.partition("/")[2] for place in about} == {"METADATA", "RECORD", "WHEEL", "licenses/LICENSE", *scripts}


@EACH
def test_a_source_archive_has_files_of_its_folder_and_no_others(name: str, dist: Path, source: Path) -> None:
    found, folder = in_sdist(name, dist), source / SOURCES[name].relative_to(CHECKOUT)
    assert found.keys() >= {"LICENSE", "PKG-INFO", "pyproject.toml"}
    for place, content in found.items():
        if place not in {"PKG-INFO", ".gitignore"}:
            origin = source if place.startswith("assets/") else folder
            assert (origin / place.removeprefix("assets/")).read_bytes() == content, place


def test_the_wheel_of_the_tools_has_the_example_of_each_framework() -> None:
    assert {f"examples/{name.replace('-', '_')}_agent.py" for name in get_args(FrameworkName)} <= {*ASSETS}


@EACH
def test_no_archive_has_a_sample_or_a_test(name: str, dist: Path) -> None:
    written = {*in_wheel(wheels_in(dist)[name]), *in_sdist(name, dist)}
    assert not [place for place in written if "sample_agents/" in place or place.startswith(("tests", "bench", ".a2a"))]


def test_the_extras_that_people_type_bring_the_other_distributions(dist: Path) -> None:
    needs = metadata(wheels_in(dist)["a2a-serverless"]).requires_dist or []
    brought = {
        extra: {one.name for one in needs if one.marker and one.marker.evaluate({"extra": extra})}
        for extra in ("cli", *get_args(FrameworkName))
    }
    assert brought.pop("cli") == {"a2a-serverless-tools"}
    assert {*map(frozenset, brought.values())} == {frozenset({"a2a-serverless-frameworks"})}


@EACH
def test_the_licence_is_in_both_archives(name: str, dist: Path) -> None:
    wheel = wheels_in(dist)[name]
    (installed,) = [content for place, content in in_wheel(wheel).items() if place.endswith("/licenses/LICENSE")]
    licence = (CHECKOUT / "LICENSE").read_bytes()
    assert installed == in_sdist(name, dist)["LICENSE"] == licence
    assert (metadata(wheel).license_expression, metadata(wheel).license_files) == ("Apache-2.0", ["LICENSE"])


@EACH
def test_no_file_of_a_distribution_names_this_machine(name: str, dist: Path, source: Path) -> None:
    written = {**in_wheel(wheels_in(dist)[name]), **in_sdist(name, dist)}
    places = {str(source).encode(), str(CHECKOUT).encode(), str(dist.parent).encode()}
    assert [file for file, content in written.items() if any(place in content for place in places)] == []


def test_distributions_have_equal_versions_and_need_each_other_below_the_next_minor_version(dist: Path) -> None:
    found = [metadata(wheel) for wheel in wheels_in(dist).values()]
    (version,) = {one.version for one in found}
    following = Version(f"{version.major}.{version.minor + 1}.0")
    needed = [requirement for one in found for requirement in one.requires_dist or () if requirement.name in SOURCES]
    assert {one.name for one in needed} == SOURCES.keys()
    for one in needed:
        assert (version in one.specifier, following in one.specifier) == (True, False), one


@EACH
def test_the_page_on_an_index_has_links_that_work_there(name: str, dist: Path) -> None:
    found = metadata(wheels_in(dist)[name])
    assert found.description_content_type == "text/markdown"
    assert found.description
    text = re.sub(r"^```.*?^```$", "", found.description, flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    anchors = {re.sub(r"[^\w\- ]", "", line.lower()).replace(" ", "-") for line in headings}
    for link in re.findall(r"\]\(([^)]+)\)", text):
        assert link.startswith("https://") or link.removeprefix("#") in anchors, link
