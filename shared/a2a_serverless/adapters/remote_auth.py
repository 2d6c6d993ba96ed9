"""Authenticates requests to the remote agents of mirrors: by headers, OAuth client credentials, or AWS signatures.

A secret and a token are in memory only: never logged or stored, and removed from the texts of the remote agent.
"""

from __future__ import annotations

import base64
import time
from contextlib import contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlencode

from a2a_serverless.adapters.agent_credentials import Redactor
from a2a_serverless.client.errors import HttpError, retry_after_s
from a2a_serverless.domain.agent_errors import AgentCallFailed, SecretNotRead
from a2a_serverless.domain.errors import A2AError
from a2a_serverless.domain.remotes import OAuthClientCredentials, SecretHeaders, SigV4
from a2a_serverless.http_client.credentials import attach_credentials, is_header_value
from a2a_serverless.http_client.transport import ClientRequest
from a2a_serverless.ports.agents import AgentUnavailable
from a2a_serverless.protocol.strict_json import loads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from a2a_serverless.client import ClientResponse, Transport
    from a2a_serverless.domain.remotes import Auth

EARLY_S: Final = 60
"""A token is replaced this long before it expires."""
LIFE_S: Final = 300
"""The life of a token whose answer names none (RFC 6749, 5.1, recommends to name it)."""
MOST: Final = 64 * 1024
NO_HEADER_VALUE: Final = "has a line end, or another character that no header can have: store it without."


class RemoteAuth:
    """The authentication of one remote agent. ``read_secret`` returns a secret by its name; ``now`` is in seconds.

    ``credentials`` returns AWS credentials as botocore's; by default those of the process.
    """

    def __init__(
        self,
        auth: Auth | None,
        read_secret: Callable[[str], str],
        now: Callable[[], float] = time.time,
        credentials: Callable[[], Any] | None = None,
    ) -> None:
        self._auth, self._read_secret, self._now = auth, read_secret, now
        self._credentials = credentials or _process_credentials
        self._token, self._expires_at = "", 0.0
        self._secrets: set[str] = set()

    def wrap(self, transport: Transport, url: str) -> Transport:
        """A transport that authenticates its requests to the origin of ``url``, and no others.

        A token that is refused is replaced once.
        """

        def authenticate(call: ClientRequest) -> ClientRequest:
            return attach_credentials(call, url, lambda call: self._headers(call, transport))

        @contextmanager
        def send(call: ClientRequest) -> Iterator[ClientResponse]:
            token = self._token
            with transport(authenticate(call)) as answer:
                if answer.status != HTTPStatus.UNAUTHORIZED or not token or token != self._token:
                    yield answer
                    return
            self._token = ""
            with transport(authenticate(call)) as answer:
                yield answer

        return send

    @property
    def redactor(self) -> Redactor:
        """Removes the secrets that were sent."""
        return Redactor(self._secrets)

    def _headers(self, call: ClientRequest, transport: Transport) -> Mapping[str, str]:
        match self._auth:
            case SecretHeaders(secrets=names):
                return {name: self._secret(secret) for name, secret in names.items()}
            case OAuthClientCredentials():
                return {"Authorization": f"Bearer {self._bearer(self._auth, call, transport)}"}
            case SigV4():
                return self._signed(self._auth, call)
        return {}

    def _secret(self, name: str) -> str:
        from aws_lambda_powertools.utilities.parameters.exceptions import GetParameterError

        try:
            secret = self._read_secret(name)
        except SecretNotRead as missing:
            raise AgentCallFailed(str(missing)) from None
        except GetParameterError as error:
            raise AgentUnavailable(f"The secret {name!r} could not be read.") from error
        self._secrets.add(secret)
        if not is_header_value(secret):
            raise AgentCallFailed(f"The secret {name!r} {NO_HEADER_VALUE}")
        return secret

    def _bearer(self, auth: OAuthClientCredentials, call: ClientRequest, transport: Transport) -> str:
        if not self._token or self._now() >= self._expires_at:
            secret = self._secret(auth.secret)
            client = base64.b64encode(f"{quote(auth.client_id)}:{quote(secret)}".encode()).decode()
            form = {"grant_type": "client_credentials", "scope": auth.scope, "audience": auth.audience}
            body = urlencode({name: value for name, value in form.items() if value}).encode()
            headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
            headers |= {"Authorization": f"Basic {client}"}
            request = ClientRequest(auth.token_url, headers, body, goes_on=call.goes_on)
            with transport(request) as answer:
                self._token, life_s = _token_in(answer)
            self._secrets.add(self._token)
            self._expires_at = self._now() + max(0.0, life_s - EARLY_S)
        return self._token

    def _signed(self, auth: SigV4, call: ClientRequest) -> Mapping[str, str]:
        from botocore.auth import SigV4Auth
        from botocore.awsrequest import AWSRequest

        credentials = self._credentials()
        self._secrets.update(filter(None, (credentials.secret_key, credentials.token)))
        request = AWSRequest(method=call.verb, url=call.url, data=call.body, headers=dict(call.headers))
        SigV4Auth(credentials, auth.service, auth.region).add_auth(request)
        return dict(request.headers.items())


def _token_in(answer: ClientResponse) -> tuple[str, float]:
    """The token in the answer of a token endpoint, and its life in seconds."""
    body = answer.body.read(MOST)
    if answer.status != HTTPStatus.OK:
        raise HttpError(answer.status, "no token from the token endpoint", retry_after_s(answer.headers))
    try:
        document = loads(body)
    except A2AError:
        document = None
    members = document if isinstance(document, dict) else {}
    token, life_s = members.get("access_token"), str(members.get("expires_in"))
    if not isinstance(token, str) or not token:
        raise AgentCallFailed("The token endpoint gave an answer without a token.")
    if not is_header_value(token):
        raise AgentCallFailed(f"The token of the token endpoint {NO_HEADER_VALUE}")
    return token, float(life_s) if life_s.isdecimal() else LIFE_S


def _process_credentials() -> Any:  # noqa: ANN401 - botocore has no types
    from botocore.session import get_session

    credentials = get_session().get_credentials()
    if credentials is None:
        raise AgentCallFailed("There are no AWS credentials to sign the request with.")
    return credentials.get_frozen_credentials()
