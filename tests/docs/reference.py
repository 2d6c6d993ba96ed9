"""The reference, from the code: the errors of the API, the public Python names, every option of every command."""

from __future__ import annotations

import inspect
import json
import re
from enum import EnumMeta
from typing import TYPE_CHECKING, Any, Final, get_args

import typer
from pydantic import BaseModel
from rich.markup import render as from_markup

import a2a_serverless
from a2a_serverless import testing
from a2a_serverless.domain import errors
from a2a_serverless.domain.errors import A2AError, FieldViolation, InvalidParams
from a2a_serverless.protocol.error_bodies import http_failure, json_rpc_failure
from a2a_serverless.protocol.error_codes import (
    CODES,
    BodyTooLarge,
    ContentEncodingNotSupported,
    EventAlreadyTaken,
    HttpMethodNotAllowed,
)
from a2a_serverless_tools.cli.app import COMMANDS, make_app
from a2a_serverless_tools.project_check import check_project

if TYPE_CHECKING:
    from collections.abc import Iterator

WIDTH: Final = 100
FIX: Final[dict[type[A2AError], str]] = {
    errors.ParseError: "Send valid JSON in UTF-8.",
    errors.InvalidRequest: 'Send one object with `"jsonrpc": "2.0"`, `method` and `params`; no batch.',
    ContentEncodingNotSupported: "Send the body as it is, without `Content-Encoding`.",
    EventAlreadyTaken: "Send one event to an address; the agent makes an address for each ([waiting](waiting.md)).",
    BodyTooLarge: "Send a smaller body. [Upload](content.md) big files, and data of many values as a file.",
    errors.MethodNotFound: "Compare the method or path with [api.md](api.md); `/agents` lists the agents.",
    HttpMethodNotAllowed: "Use a method that the header `Allow` lists.",
    errors.InvalidParams: "The message and `fieldViolations` name each wrong field. Correct them.",
    errors.InternalError: "Send the same request again, with the same `messageId`. If it stays, ask the operator.",
    errors.TaskNotFound: "Check the id, and sign in as the caller who started the task. Old tasks are deleted.",
    errors.TaskNotCancelable: "Nothing: the task has ended.",
    errors.PushNotSupported: "Poll or stream instead. Agents of this project all support webhooks.",
    errors.UnsupportedOperation: "The message says what. If the task has ended, send no `taskId`: a new task begins.",
    errors.ContentTypeNotSupported: "Send `Content-Type: application/json`, and parts of the media types on the card.",
    errors.InvalidAgentResponse: "Another agent answered against the protocol. Tell its owner.",
    errors.ExtendedCardNotConfigured: "Use the public card.",
    errors.ExtensionRequired: "Name the extension that the card requires in the header `A2A-Extensions`.",
    errors.VersionNotSupported: "Send the header `A2A-Version: 1.0` (or `0.3` with methods of 0.3).",
    errors.Overloaded: "Send the same request again after the seconds of `Retry-After`.",
    errors.Unauthenticated: "Send `Authorization: Bearer` with an API key or a valid token ([access.md](access.md)).",
    errors.InvalidSignature: "Sign the exact body with the secret that the agent uses ([waiting](waiting.md)).",
    errors.InsufficientScope: "Get a key or a token with the scope that the message names.",
    errors.TooManyRequests: "Send the same request again after the seconds of `Retry-After`.",
}
EXAMPLE: Final = InvalidParams(violations=(FieldViolation("message.parts", "must not be empty"),))


def error_table() -> str:
    """Every error of the API: codes, statuses, what it means, what to do. A class without advice fails here."""
    lines = ["| reason | JSON-RPC | HTTP | what it means | what to do |", "|---|---|---|---|---|"]
    for kind, code in CODES.items():
        rpc = _both(code.rpc_for("1.0"), code.rpc_for("0.3"))
        status = _both(code.http_for("1.0"), code.http_for("0.3"))
        means = re.sub(r" \([^)]*\d{3}\)|; `allowed`.*(?=\.)", "", _sentence(kind))
        lines.append(f"| `{code.reason}` | {rpc} | {status} | {means} | {FIX[kind]} |")
    return "\n".join(lines)


def error_examples() -> str:
    """The same error in both bindings."""
    rpc = json.loads(json_rpc_failure(1, EXAMPLE, "1.0"))
    status, body = http_failure(EXAMPLE, "1.0")
    shown = ((f"JSON-RPC, HTTP {200}:", rpc), (f"REST, HTTP {status}:", json.loads(body)))
    return "\n\n".join(f"{title}\n\n```json\n{json.dumps(said, indent=2)}\n```" for title, said in shown)


def python_api() -> str:
    """The public names: signature, docstring, members."""
    named = [(name, getattr(a2a_serverless, name)) for name in a2a_serverless.__all__]
    harness = [(name, getattr(testing, name)) for name in ("AgentTestHarness", "Reply")]
    parts = ["## a2a_serverless", *(_entry(*one) for one in named)]
    parts += ["## a2a_serverless.testing", *(_entry(*one) for one in harness)]
    return "\n\n".join([*parts, "## a2a_serverless_tools.project_check", _entry("check_project", check_project)])


def options() -> str:
    """Every command with its arguments and options."""
    group: Any = typer.main.get_command(make_app())
    parts = []
    for panel, commands in COMMANDS.items():
        parts.append(f"## {panel}")
        for name in commands:
            command = group
            for word in name.split():
                command = command.commands[word]
            parts.append(_command(name, command))
    return "\n\n".join(parts)


def _command(name: str, command: Any) -> str:
    shown = [one for one in command.params if one.name != "help" and not getattr(one, "hidden", False)]
    given = [_placeholder(one) for one in shown if one.param_type_name == "argument"]
    usage = " ".join(["a2a-serverless", name, *given, "[OPTIONS]"])
    about = " ".join(from_markup(command.help or "").plain.split())
    rows = [_option(one) for one in shown if one.name != "json"]
    table = ["", "| | | default | variable |", "|---|---|---|---|", *rows] if rows else []
    return "\n".join([f"### {name}", "", about, "", "```text", usage, "```", *table])


def _option(one: Any) -> str:
    names = " ".join(f"`{name}`" for name in (*one.opts, *one.secondary_opts))
    if one.param_type_name == "argument":
        names = f"`{_placeholder(one)}`"
    default = one.default() if callable(one.default) else one.default
    is_plain = default not in (None, "", False, ()) and not one.required
    shown = f"`{str(default).lower() if default is True else default}`" if is_plain else ""
    variable = f"`{one.envvar}`" if one.envvar else ""
    return f"| {names} | {_cell(one.help or '')} | {shown} | {variable} |"


def _placeholder(argument: Any) -> str:
    name = str(argument.metavar or argument.name.upper()).strip("[]")
    return name if argument.required else f"[{name}]"


def _entry(name: str, value: Any) -> str:
    if not callable(value):  # a type alias
        return f"### {name}\n\n```python\n{name} = {_annotation(value)}\n```"
    parts = [f"### {name}", f"```python\n{_head(name, value)}\n```", *_doc(value)]
    if isinstance(value, type):
        for line, text in _members(value):
            parts += [f"```python\n{line}\n```", *([text] if text else [])]
    return "\n\n".join(parts)


def _head(name: str, value: Any) -> str:
    if isinstance(value, EnumMeta):
        return f"class {name}(StrEnum):\n" + "\n".join(f'    {one.name} = "{one.value}"' for one in value)  # type: ignore[var-annotated]
    if isinstance(value, type) and issubclass(value, BaseModel):
        fields = [f"    {key}: {_annotation(one.annotation)}" for key, one in value.model_fields.items()]
        return "\n".join([f"class {name}:", *fields])
    if isinstance(value, type) and issubclass(value, Exception):
        return f"class {name}({value.__mro__[1].__name__})"
    if getattr(value, "_is_protocol", False):
        return f"class {name}"
    return _call(name, value, "class " if isinstance(value, type) else "def ")


def _members(kind: type) -> Iterator[tuple[str, str]]:
    if isinstance(kind, EnumMeta) or issubclass(kind, BaseException):
        return
    for name, value in vars(kind).items():
        if name.startswith("_") or name in {"model_config", "model_post_init"}:
            continue
        if isinstance(value, property):
            said = inspect.signature(value.fget).return_annotation if value.fget else ""
            yield f"{name}: {_annotation(said)}", _text(value)
        elif inspect.isfunction(value):
            yield _call(name, value, "async def " if inspect.iscoroutinefunction(value) else "def "), _text(value)


def _call(name: str, value: Any, before: str) -> str:
    """A signature, in one line or with a line for each parameter."""
    signature = inspect.signature(value)
    shown: list[str] = []
    is_marked = False
    for one in signature.parameters.values():
        if one.name == "self":
            continue
        if one.kind is one.KEYWORD_ONLY and not is_marked:
            shown += ["*"]
        is_marked = is_marked or one.kind in {one.KEYWORD_ONLY, one.VAR_POSITIONAL}
        shown.append(_parameter(one))
    back = signature.return_annotation
    after = "" if before == "class " or back is inspect.Signature.empty else f" -> {_annotation(back)}"
    line = f"{before}{name}({', '.join(shown)}){after}"
    if len(line) <= WIDTH:
        return line
    return f"{before}{name}(\n" + "".join(f"    {one},\n" for one in shown) + f"){after}"


def _parameter(one: inspect.Parameter) -> str:
    stars = "*" * (one.kind is one.VAR_POSITIONAL) + "**" * (one.kind is one.VAR_KEYWORD)
    kind = "" if one.annotation is one.empty else f": {_annotation(one.annotation)}"
    default = "" if one.default is one.empty else f" = {_default(one.default)}"
    return f"{stars}{one.name}{kind}{default}"


def _default(value: object) -> str:
    said = repr(value)
    return "..." if said.startswith("<") else said


def _annotation(kind: Any) -> str:
    said = kind.__name__ if isinstance(kind, type) and not get_args(kind) else kind
    said = re.sub(
        r"Annotated\[([\w.]+), .*\](?=, \.\.\.\])|Union\[(\w+), MISSING\]", r"\1\2", str(said).replace("typing.", "")
    )
    return re.sub(r"\b(?:collections\.abc|a2a_serverless(?:\.\w+)+)\.", "", said).replace("'", "")


def _doc(value: Any) -> list[str]:
    said = _text(value)
    return [said] if said else []


def _text(value: Any) -> str:
    """A docstring as Markdown, with one backtick around code."""
    said = inspect.getdoc(value) if getattr(value, "__doc__", None) else ""
    return (said or "").replace("``", "`")


def _sentence(kind: type) -> str:
    """The first sentence of a docstring."""
    return " ".join(_text(kind).split()).partition(". ")[0].rstrip(".") + "."


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", r"\|")


def _both(new: int, old: int) -> str:
    return f"{new}" if new == old else f"{new} (0.3: {old})"
