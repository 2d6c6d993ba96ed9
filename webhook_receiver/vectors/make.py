"""Writes ``vectors.json``: run ``python -m vectors.make`` in ``webhook_receiver/``. The output is deterministic."""

import base64
import json
from pathlib import Path

from vectors.cases import AUDIENCE, ISSUER, KEY_SET, Case, all_cases

PATH = Path(__file__).with_name("vectors.json")


def render() -> str:
    """The file: one case on each line."""
    head = {"version": 1, "issuer": ISSUER, "audience": AUDIENCE, "keys": KEY_SET}
    lines = ",\n".join(json.dumps(_to_json(case)) for case in all_cases())
    return f'{json.dumps(head)[:-1]}, "cases": [\n{lines}\n]}}\n'


def _to_json(case: Case) -> dict[str, object]:
    return {
        "name": case.name,
        "code": case.code,
        "challenge": case.challenge,
        "now": case.now,
        "expectations": case.expectations,
        "headers": case.headers,
        "body": base64.b64encode(case.body).decode(),
    }


if __name__ == "__main__":
    PATH.write_text(render())
