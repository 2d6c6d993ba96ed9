"""Asks the vulnerability database about locked packages: ``python -m tests.audit PIP-AUDIT requirements/a.txt ...``.

Known vulnerabilities are an error. A database that cannot be reached, or does not know a package, is none: then it says
loudly what was not audited.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import NamedTuple

UNREACHABLE = ("Could not connect", "ConnectionError", "HTTPSConnectionPool", "Max retries exceeded", "timed out")


class Verdict(NamedTuple):
    """The exit code, and what to print."""

    code: int
    text: str


def judge(name: str, output: str, errors: str) -> Verdict:
    """What pip-audit's output (JSON) and its errors mean for the packages of a lock file."""
    try:
        packages = json.loads(output)["dependencies"]
    except (ValueError, KeyError):
        reason = errors.strip().splitlines()[-1] if errors.strip() else "it said nothing"
        if any(one in errors for one in UNREACHABLE):
            return Verdict(0, f"!!! NOT AUDITED: {name}: the vulnerability database cannot be reached: {reason}")
        return Verdict(1, f"pip-audit failed for {name}: {reason}")
    found = [
        f"  {one['name']} {one['version']}: {flaw['id']}, fixed in {', '.join(flaw['fix_versions']) or 'no version'}"
        for one in packages
        for flaw in one.get("vulns", [])
    ]
    skipped = [one for one in packages if "skip_reason" in one]
    lines = [f"{name}: {len(packages) - len(skipped)} packages audited, {len(found)} known vulnerabilities", *found]
    if skipped or not packages:
        why = skipped[0]["skip_reason"] if skipped else "there are none"
        lines.append(f"!!! NOT AUDITED: {len(skipped)} of {len(packages)} packages of {name}: {why}")
    return Verdict(1 if found else 0, "\n".join(lines))


def main(pip_audit: str, *files: str) -> int:
    """Audits each file; returns the exit code."""
    options = ["--disable-pip", "--require-hashes", "--format", "json", "--progress-spinner", "off", "--timeout", "20"]
    verdicts = []
    for name in files:
        command = [pip_audit, *options, "-r", name]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
        verdicts.append(judge(name, done.stdout, done.stderr))
        sys.stdout.write(verdicts[-1].text + "\n")
    return max(verdict.code for verdict in verdicts)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
