"""Credentials for remote agents: headers by origin, in one secret that the operator writes.

They are added to a request by the origin of its URL, so no card, redirect or agent name can send them to another
origin.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar, cast

from pydantic import BaseModel

from a2a_serverless.domain.agent_errors import AgentCallFailed
from a2a_serverless.domain.origins import origin_of
from a2a_serverless.http_client.credentials import attach_credentials, is_header_value
from a2a_serverless.http_client.transport import ClientRequest, ClientResponse, is_local
from a2a_serverless.ports.agents import AgentUnavailable
from a2a_serverless.protocol.v1 import Part

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from contextlib import AbstractContextManager

    from a2a_serverless.client import Transport

Headers: TypeAlias = Mapping[str, str]

M = TypeVar("M", bound=BaseModel)

HIDDEN: Final = "***"
SHORTEST: Final = 6  # characters; a shorter word is not redacted
_ORIGIN: Final = re.compile(r"https?://[^/?#@\\\s]+/?")
_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


class Redactor:
    """Removes secrets, and their words, from what another party may have repeated."""

    def __init__(self, secrets: Iterable[str]) -> None:
        words = {word for secret in secrets for word in (secret, *secret.split()) if len(word) >= SHORTEST}
        self._words = sorted(words, key=len, reverse=True)

    def text(self, text: str) -> str:
        """The text without them."""
        for word in self._words:
            text = text.replace(word, HIDDEN)
        return text

    def item(self, item: M) -> M:
        """The whole item without them: its texts, names, data, metadata and files."""
        return cast("M", self._value(item)) if self._words else item

    def _value(self, value: object) -> object:
        if type(value) is str:
            return self.text(value)
        if isinstance(value, Part):
            return self._part(value)
        if isinstance(value, BaseModel):
            return value.model_copy(update={name: self._value(member) for name, member in value.__dict__.items()})
        if isinstance(value, dict):
            return {self._value(name): self._value(member) for name, member in value.items()}
        return type(value)(map(self._value, value)) if isinstance(value, list | tuple) else value

    def _part(self, part: Part) -> Part:
        members = {name: self._value(member) for name, member in part.__dict__.items() if name != "raw"}
        if part.raw is not None:
            content = base64.b64decode(part.raw)
            bare = content
            for word in self._words:
                bare = bare.replace(word.encode(), HIDDEN.encode())
            members["raw"] = part.raw if bare == content else base64.b64encode(bare).decode()
        return part.model_copy(update=members)


class AgentCredentials:
    """``read`` returns the secret's text. With ``local`` (runs on a laptop), agents on this machine need no TLS."""

    def __init__(self, read: Callable[[], str], *, local: bool = False) -> None:
        self._read, self._local = read, local

    def wrap(self, transport: Transport) -> Transport:
        """A transport that adds the credentials of the request's origin to its headers."""

        def send(call: ClientRequest) -> AbstractContextManager[ClientResponse]:
            origin = origin_of(call.url)
            return transport(attach_credentials(call, origin, lambda _: self._load().get(origin, {})))

        return send

    @property
    def redactor(self) -> Redactor:
        """Removes the credentials of all origins."""
        return Redactor(value for headers in self._load().values() for value in headers.values())

    def _load(self) -> Mapping[str, Headers]:
        from aws_lambda_powertools.utilities.parameters.exceptions import GetParameterError

        try:
            text = self._read()
        except GetParameterError as error:
            raise AgentUnavailable("The credentials for remote agents could not be read.") from error
        try:
            return credentials_of(text, local=self._local)
        except ValueError as error:
            raise AgentCallFailed(f"The credentials for remote agents are invalid: {error}.") from None


def credentials_of(text: str, *, local: bool = False) -> dict[str, dict[str, str]]:
    """The headers by origin: ``{"https://agents.example.com": {"Authorization": "Bearer ..."}}``.

    Raises ValueError for anything else, and for http (except to this machine with ``local``). No error repeats a value.
    """
    try:
        body = json.loads(text)
    except ValueError:
        raise ValueError("not JSON") from None
    if not isinstance(body, dict):
        raise ValueError("not an object of headers by origin")  # noqa: TRY004 - of a wrong value
    for url, headers in body.items():
        _check(url, headers, local=local)
    return {origin_of(url): headers for url, headers in body.items()}


def _check(url: str, headers: object, *, local: bool) -> None:
    if not (_ORIGIN.fullmatch(url) and origin_of(url)):
        raise ValueError("a name is not an origin such as https://agents.example.com")
    if not url.startswith("https:") and not (local and is_local(url)):
        raise ValueError(f"credentials go over https only, not to {url}")
    if not (isinstance(headers, dict) and all(map(_is_header, headers, headers.values()))):
        raise ValueError(f"{url} needs an object of header names and values")


def _is_header(name: str, value: object) -> bool:
    return bool(_NAME.fullmatch(name) and isinstance(value, str) and is_header_value(value))
