"""The commands for API keys of a deployed stack. Tokens of the issuer in the template are accepted besides them."""

import os
import re
import time
from typing import TYPE_CHECKING, Annotated

import typer

from a2a_serverless.domain.access import ENTROPY_BYTES, FULL_SCOPE, SCOPE_FORM, ApiKey, digest_of, encode_key
from a2a_serverless.domain.model import Principal
from a2a_serverless_tools.cli.options import StackContext
from a2a_serverless_tools.cli.terminal import one_line

if TYPE_CHECKING:
    from a2a_serverless.domain.model import JsonObject

SHOWN = 16
SHORTEST = 8

Owner = Annotated[
    str, typer.Argument(help="The owner that the key authenticates.", metavar="OWNER", show_default=False)
]
Tenant = Annotated[str, typer.Option(help="The tenant that the owner belongs to.")]
Note = Annotated[str, typer.Option(help="What the key is for.", metavar="TEXT")]
Scopes = Annotated[
    list[str],
    typer.Option("--scope", help="What the key may do: a2a, a2a:AGENT, a2a:read, a2a:AGENT:read. Repeatable."),
]
KeyId = Annotated[
    str, typer.Argument(help="The key's id, as `callers list` shows it.", metavar="ID", show_default=False)
]


def add_caller(
    stack: StackContext,
    owner: Owner,
    *,
    tenant: Tenant = "default",
    note: Note = "",
    scope: Scopes = [FULL_SCOPE],  # noqa: B006 - Typer copies it
) -> None:
    """Create an API key. Save it now: only a hash is stored."""
    wrong = [one for one in scope if not re.fullmatch(SCOPE_FORM, one)]
    if wrong:
        raise typer.BadParameter(f"{wrong[0]!r} is no scope: a2a, a2a:AGENT, a2a:read or a2a:AGENT:read")
    key = encode_key(os.urandom(ENTROPY_BYTES))
    made_at = time.time_ns() // 1_000_000
    api_key = ApiKey(digest_of(key), Principal(tenant, owner), note, made_at, frozenset(scope))
    stack.cli.api_keys(stack.name).add(api_key)
    stack.terminal.result({"key": key, **_printed(api_key)}, f"{key}\n")
    stack.terminal.note('Send it as X-API-Key, or as "Authorization: Bearer ...". It is not shown again.')


def list_callers(stack: StackContext) -> None:
    """List the API keys with owner and scopes; the keys themselves are not stored."""
    keys = stack.cli.api_keys(stack.name).list_all()
    head = ("ID", "TENANT", "OWNER", "MAY", "NOTE")
    stack.terminal.table([_printed(key) for key in keys], head, [*map(_cells, keys)])
    if not keys:
        stack.terminal.note("There are no API keys. `callers add` creates one.")


def remove_caller(stack: StackContext, key: KeyId) -> None:
    """Revoke an API key. It stops working within a minute."""
    keys = stack.cli.api_keys(stack.name)
    matches = [one for one in keys.list_all() if len(key) >= SHORTEST and one.digest.startswith(key)]
    if len(matches) != 1:
        raise typer.BadParameter(f"{len(matches)} keys have an id that begins with {key!r}: see `callers list`")
    keys.revoke(matches[0].digest)
    stack.terminal.result(_printed(matches[0]), "")
    stack.terminal.note(f"Revoked {matches[0].digest[:SHOWN]} of {matches[0].principal.owner}.")


def _cells(key: ApiKey) -> list[str]:
    words = (key.digest[:SHOWN], key.principal.tenant, key.principal.owner, ",".join(sorted(key.scopes)), key.note)
    return [one_line(word, 60) for word in words]


def _printed(key: ApiKey) -> "JsonObject":
    principal = key.principal
    return {
        "id": key.digest,
        "tenant": principal.tenant,
        "owner": principal.owner,
        "scopes": [*sorted(key.scopes)],
        "note": key.note,
        "madeAt": key.made_at,
    }
