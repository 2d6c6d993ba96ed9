"""What ``make audit`` says of the packages: a vulnerability is an error, an absent database is not silent."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.audit import judge

ROOT = Path(__file__).parents[1]
CLEAN = {"name": "pyjwt", "version": "2.0", "vulns": []}
FLAWED = {"name": "idna", "version": "1.0", "vulns": [{"id": "PYSEC-1", "fix_versions": ["1.1"]}]}
SKIPPED = {"name": "six", "skip_reason": "Dependency not found on PyPI and could not be audited: six (1.17.0)"}


def output(*packages: object) -> str:
    return json.dumps({"dependencies": packages, "fixes": []})


def test_packages_without_a_known_vulnerability_pass() -> None:
    verdict = judge("a.txt", output(CLEAN), "")
    assert verdict == (0, "a.txt: 1 packages audited, 0 known vulnerabilities")


def test_a_known_vulnerability_is_an_error_that_names_the_fix_also_beside_packages_that_were_skipped() -> None:
    code, text = judge("a.txt", output(CLEAN, FLAWED, SKIPPED), "Found 1 known vulnerability")
    assert code == 1
    assert "idna 1.0: PYSEC-1, fixed in 1.1" in text
    assert "!!! NOT AUDITED: 1 of 3 packages of a.txt" in text


@pytest.mark.parametrize(
    ("said", "errors"),
    [
        ("", "ERROR:pip_audit._cli:Could not connect to PyPI's vulnerability feed"),
        ("", "requests.exceptions.ConnectionError: HTTPSConnectionPool(host='osv'): Max retries exceeded"),
        (output(SKIPPED, SKIPPED), ""),
        (output(), ""),
    ],
)
def test_a_database_that_cannot_be_reached_or_knows_nothing_is_no_error_and_is_said_loudly(
    said: str, errors: str
) -> None:
    code, text = judge("a.txt", said, errors)
    assert (code, "!!! NOT AUDITED" in text) == (0, True)


@pytest.mark.parametrize("errors", ["", "ERROR:pip_audit._cli:package idna is missing hashes"])
def test_a_failure_of_pip_audit_without_findings_is_an_error(errors: str) -> None:
    code, text = judge("a.txt", "", errors)
    assert (code, text.startswith("pip-audit failed for a.txt: ")) == (1, True)


SBOM = ROOT / ".a2a/venvs/audit/bin/cyclonedx-py"


@pytest.mark.skipif(not SBOM.exists(), reason="SBOM NOT CHECKED: make audit installs its tool")
def test_the_sbom_has_every_locked_package_of_the_functions_with_its_hashes(tmp_path: Path) -> None:
    made = tmp_path / "sbom.json"
    (command,) = [line for line in (ROOT / "Makefile").read_text().splitlines() if "cyclonedx-py" in line]
    words = command.partition("cyclonedx-py ")[2].split()
    subprocess.run([SBOM, *words[:-1], made], cwd=ROOT, check=True, capture_output=True)  # noqa: S603
    bom = json.loads(made.read_text())
    locked = re.findall(r"^([\w.-]+)==(\S+)", (ROOT / "requirements/functions.txt").read_text(), re.MULTILINE)
    assert bom["bomFormat"] == "CycloneDX"
    assert {(one["name"], one["version"]) for one in bom["components"]} == set(locked)
    assert all(one["purl"] and one["externalReferences"][0]["hashes"] for one in bom["components"])
