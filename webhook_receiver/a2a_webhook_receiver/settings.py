"""The receiver's settings, from a mapping of environment variables, all checked at once."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from a2a_webhook_receiver.outbound import is_loopback, require_safe_url

DAY = 86_400
_OPTIONAL_URLS = ("JWKS_URL", "DOCUMENTS_URL")


class BadSettings(ValueError):
    """Invalid settings; the message names every wrong variable and the problem."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The receiver's settings, by environment variable.

    ==================== ==================================================================================
    ISSUER               base URL of the deployment that signs; required
    AUDIENCE             our own webhook URL, exactly as clients register it; required
    JWKS_URL             the issuer's keys; ``{ISSUER}/.well-known/jwks.json``
    WEBHOOK_TOKEN        a token that is valid for every task; without it each token is registered first
    REPLAY_DB            SQLite file for expectations and replay memory; ``receiver.db``
    REPLAY_TABLE         DynamoDB table for the same, instead
    ADMIN_TOKEN_SHA256   hex SHA-256 of the password of the inbox; without it only this machine sees the inbox
    OPEN_REGISTRATION    ``true``: anybody who reaches us is an admin; only when AUDIENCE is on this machine
    EXPECTATION_SECONDS  how long a registered token or task is valid; 7 days
    MAX_BODY_BYTES       longest body that is read; 1 MiB
    BODY_SECONDS         longest time for a body to arrive; 10
    AGENT_AUTHORIZATION  ``Authorization`` for fetching tasks from the issuer's agents
    RELAY_TOPIC_ARN      SNS topic to which every notification is published
    DOCUMENTS_URL        the folder of this project's documents as a site, to which the inbox links
    ==================== ==================================================================================

    ``live`` is False on Lambda, where an answer cannot stream.
    """

    issuer: str
    audience: str
    jwks_url: str
    webhook_token: str | None = field(repr=False)
    replay_db: str
    replay_table: str | None
    admin_token_sha256: str | None
    open_registration: bool
    expectation_seconds: int
    max_body_bytes: int
    body_seconds: int
    agent_authorization: str | None = field(repr=False)
    relay_topic_arn: str | None
    documents_url: str | None
    live: bool

    @property
    def is_local(self) -> bool:
        """Whether only this machine can send webhooks here: AUDIENCE is a loopback URL."""
        return is_loopback(require_safe_url(self.audience).hostname or "")


def read_settings(environment: Mapping[str, str]) -> Settings:
    """The settings from environment variables. Raises BadSettings."""
    problems = [problem for check in _CHECKS if (problem := check(environment))]
    if problems:
        raise BadSettings("; ".join(problems))
    issuer = environment["ISSUER"]
    return Settings(
        issuer=issuer,
        audience=environment["AUDIENCE"],
        jwks_url=environment.get("JWKS_URL") or f"{issuer.rstrip('/')}/.well-known/jwks.json",
        webhook_token=environment.get("WEBHOOK_TOKEN") or None,
        replay_db=environment.get("REPLAY_DB") or "receiver.db",
        replay_table=environment.get("REPLAY_TABLE") or None,
        admin_token_sha256=environment.get("ADMIN_TOKEN_SHA256") or None,
        open_registration=environment.get("OPEN_REGISTRATION") == "true",
        expectation_seconds=int(environment.get("EXPECTATION_SECONDS") or 7 * DAY),
        max_body_bytes=int(environment.get("MAX_BODY_BYTES") or 1024 * 1024),
        body_seconds=int(environment.get("BODY_SECONDS") or 10),
        agent_authorization=environment.get("AGENT_AUTHORIZATION") or None,
        relay_topic_arn=environment.get("RELAY_TOPIC_ARN") or None,
        documents_url=environment.get("DOCUMENTS_URL") or None,
        live="AWS_LAMBDA_FUNCTION_NAME" not in environment,
    )


def _check_urls(environment: Mapping[str, str]) -> str:
    problems = [_url_problem(environment, name) for name in ("ISSUER", "AUDIENCE", *_OPTIONAL_URLS)]
    return "; ".join(problem for problem in problems if problem)


def _url_problem(environment: Mapping[str, str], name: str) -> str:
    url = environment.get(name, "")
    if not url:
        return "" if name in _OPTIONAL_URLS else f"{name} is missing"
    try:
        require_safe_url(url)
    except ValueError as error:
        return f"{name}: {error}"
    return ""


def _check_numbers(environment: Mapping[str, str]) -> str:
    names = ("EXPECTATION_SECONDS", "MAX_BODY_BYTES", "BODY_SECONDS")
    wrong = [name for name in names if not re.fullmatch(r"|[1-9][0-9]{0,9}", environment.get(name, ""))]
    return "; ".join(f"{name} is not a number from 1" for name in wrong)


def _check_token(environment: Mapping[str, str]) -> str:
    token = environment.get("WEBHOOK_TOKEN", "")
    return "" if re.fullmatch(r"|[!-~]{16,256}", token) else "WEBHOOK_TOKEN is not 16 to 256 visible ASCII characters"


def _check_admin(environment: Mapping[str, str]) -> str:
    digest = environment.get("ADMIN_TOKEN_SHA256", "")
    return "" if re.fullmatch(r"|[0-9a-f]{64}", digest) else "ADMIN_TOKEN_SHA256 is not 64 lower-case hex digits"


def _check_open_registration(environment: Mapping[str, str]) -> str:
    value = environment.get("OPEN_REGISTRATION", "")
    if value not in ("", "true", "false"):
        return "OPEN_REGISTRATION is neither true nor false"
    if value == "true" and not _is_local(environment.get("AUDIENCE", "")):
        return "OPEN_REGISTRATION needs an AUDIENCE on this machine"
    return ""


def _check_store(environment: Mapping[str, str]) -> str:
    if environment.get("REPLAY_DB") and environment.get("REPLAY_TABLE"):
        return "REPLAY_DB and REPLAY_TABLE exclude each other"
    if "AWS_LAMBDA_FUNCTION_NAME" in environment and not environment.get("REPLAY_TABLE"):
        return "REPLAY_TABLE is missing: instances of a function share no file"
    return ""


def _is_local(url: str) -> bool:
    try:
        return is_loopback(require_safe_url(url).hostname or "")
    except ValueError:
        return False


_CHECKS = (_check_urls, _check_numbers, _check_token, _check_admin, _check_open_registration, _check_store)
