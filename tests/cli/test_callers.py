import json

import pytest

from a2a_serverless.domain.access import digest_of
from a2a_serverless_tools.operators.deployed import StackName, StackNotFound
from tests.cli.shell import Shell
from tests.client.deployment import Deployment
from tests.doubles import MemoryApiKeyStore


def shell() -> tuple[Shell, MemoryApiKeyStore]:
    at, keys = Shell(Deployment()), MemoryApiKeyStore()
    at.callers = lambda _: keys
    return at, keys


def test_a_key_is_shown_once_and_kept_as_its_digest() -> None:
    at, keys = shell()
    done = at.run("callers", "add", "alice", "--tenant", "acme", "--note", "laptop")
    (kept,) = keys.list_all()
    assert (kept.digest, kept.principal.tenant, kept.principal.owner) == (digest_of(done.out.strip()), "acme", "alice")
    assert "not shown again" in done.err
    listed = at.run("callers", "list").out
    assert listed == f"{kept.digest[:16]}  acme  alice  a2a  laptop\n"
    assert done.out.strip() not in listed + repr(kept)


def test_a_key_as_json_has_its_id() -> None:
    at, keys = shell()
    made = json.loads(at.run("callers", "add", "alice", "--json").out)
    assert (made["id"], made["owner"], digest_of(made["key"])) == (keys.list_all()[0].digest, "alice", made["id"])
    assert [one["id"] for one in json.loads(at.run("callers", "list", "--json").out)] == [made["id"]]


def test_without_keys_the_list_says_how_to_make_one() -> None:
    assert "`callers add` creates one" in shell()[0].run("callers", "list").err


@pytest.mark.parametrize("json_too", [(), ("--json",)])
def test_a_key_is_revoked_by_the_id_that_the_list_shows(json_too: tuple[str, ...]) -> None:
    at, keys = shell()
    at.run("callers", "add", "alice")
    shown = at.run("callers", "list").out.split()[0]
    done = at.run("callers", "remove", shown, *json_too)
    assert shown in done.out + done.err
    assert keys.list_all() == []


@pytest.mark.parametrize("key", ["", "0", "no-such-key"])
def test_removing_an_ambiguous_or_unknown_key_revokes_no_key(key: str) -> None:
    at, keys = shell()
    at.run("callers", "add", "alice")
    assert at.run("callers", "remove", key).code == 2
    assert len(keys.list_all()) == 1


def test_a_stack_that_is_not_there_says_where_to_look() -> None:
    at, _ = shell()

    def missing(stack: StackName) -> MemoryApiKeyStore:
        raise StackNotFound(f"the stack {stack.name} cannot be read")

    at.callers = missing
    done = at.run("callers", "list", "--stack", "elsewhere")
    assert (done.code, "elsewhere" in done.err, "AWS_PROFILE" in done.err) == (1, True, True)
