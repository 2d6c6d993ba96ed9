"""What the emulator's evaluator of policies, which is not ours, says about calls."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any, Final

from tests.functions.transformed import PATHS, python_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.roles.powers import Ask

PROGRAM: Final = """
import json, sys
from ministack.core.iam_evaluator import EvalContext, evaluate, parse_policy_document
policy, calls = json.load(sys.stdin)
statements = [parse_policy_document(policy)]
who = "arn:aws:iam::123456789012:role/role", "AssumedRole", "123456789012"
asked = [EvalContext(*who, action, resource, "us-east-1", service_context=more) for action, resource, more in calls]
print(json.dumps([evaluate(one, statements).decision for one in asked]))
"""


def emulated(statements: Sequence[Mapping[str, Any]], asks: Sequence[Ask]) -> list[str]:
    """Allow, ExplicitDeny or ImplicitDeny for each call."""
    calls = [[one.action, one.resource, {key.lower(): value for key, value in one.context.items()}] for one in asks]
    given = json.dumps([{"Version": "2012-10-17", "Statement": statements}, calls])
    done = subprocess.run(  # noqa: S603 - the emulator's own Python
        [python_of(PATHS.emulator), "-c", PROGRAM], input=given, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout))
