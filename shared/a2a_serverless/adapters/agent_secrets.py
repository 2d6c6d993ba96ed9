"""The secrets of agents by name: from AWS in a function, from the environment on a developer's machine."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from a2a_serverless.domain.agent_errors import SecretNotRead

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PARAMETER: Final = "ssm:"
KEPT_S: Final = 300


def secrets_in_aws(places_json: str) -> Callable[[str], str]:
    """Reads secrets by name: ``places_json`` is a JSON object of the places of ``secret_at``.

    Raises SecretNotRead for a name that is not listed, else as ``secret_at`` does.
    """
    places: dict[str, str] = json.loads(places_json or "{}")

    def read(name: str) -> str:
        if name not in places:
            raise SecretNotRead(f"The secret {name!r} is not in [tool.a2a-serverless] secrets of pyproject.toml.")
        return secret_at(places[name])

    return read


def secret_at(place: str) -> str:
    """The secret with an id of Secrets Manager, or in a parameter (``ssm:/parameter``).

    Powertools keeps it for ``KEPT_S`` seconds. Raises Powertools' GetParameterError when AWS refuses.
    """
    from aws_lambda_powertools.utilities import parameters

    if place.startswith(PARAMETER):
        return str(parameters.get_parameter(place.removeprefix(PARAMETER), decrypt=True, max_age=KEPT_S))
    return str(parameters.get_secret(place, max_age=KEPT_S))


def secrets_in_environment(environment: Mapping[str, str]) -> Callable[[str], str]:
    """Reads secrets from variables such as ``A2A_SECRET_WEATHER``. Raises SecretNotRead, which names the variable."""

    def read(name: str) -> str:
        if value := environment.get(variable_of(name)):
            return value
        raise SecretNotRead(f"The secret {name!r} is not set: give it in the variable {variable_of(name)}.")

    return read


def variable_of(name: str) -> str:
    """The environment variable with a secret on a developer's machine."""
    return f"A2A_SECRET_{name.upper().replace('-', '_')}"
