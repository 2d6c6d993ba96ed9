"""Builds the objects that functions share: AWS clients, tables, log, values, contents, agents, URL policy.

The module of a function builds the other stores.
"""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import TYPE_CHECKING

from a2a_serverless.adapters.clock import SystemClock
from a2a_serverless.settings import Settings, SettingsError
from a2a_serverless.store.dynamodb import DynamoTable, RetryPolicy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from a2a_serverless.adapters.aws import Aws
    from a2a_serverless.domain.agent import Agent
    from a2a_serverless.domain.outbound import EgressPolicy
    from a2a_serverless.ports.system import BlobStore
    from a2a_serverless.store.payloads import PayloadStore
    from a2a_serverless.store.stores import ContentStore
    from a2a_serverless.store.table import Table
    from a2a_serverless.store.task_log import TaskLog
    from a2a_serverless.store.value_store import ValueStore


def task_table(settings: Settings, aws: Aws) -> Table:
    """The table of tasks."""
    return table_named(settings.need("TABLE_NAME"), aws)


def public_table(settings: Settings, aws: Aws) -> Table:
    """The table of public documents. Only the rotator may write it."""
    return table_named(settings.need("PUBLIC_TABLE_NAME"), aws)


def access_table(settings: Settings, aws: Aws) -> Table:
    """The table of API keys. Only operators may write it."""
    return table_named(settings.need("ACCESS_TABLE_NAME"), aws)


def table_named(name: str, aws: Aws) -> Table:
    """A table, by its name."""
    return DynamoTable(aws.dynamodb, name, SystemClock().now, RetryPolicy(sleep=time.sleep, chance=random.random))


def task_log(table: Table, settings: Settings, aws: Aws) -> TaskLog:
    """The log of tasks. The sweeper has no bucket, and reads no payload."""
    from a2a_serverless.store.task_log import TaskLog

    return TaskLog(table, _payloads(settings, aws))


def value_store(table: Table, settings: Settings, aws: Aws) -> ValueStore:
    """The values of agents."""
    from a2a_serverless.store.value_store import ValueStore

    return ValueStore(table, _payloads(settings, aws))


def _payloads(settings: Settings, aws: Aws) -> PayloadStore:
    from a2a_serverless.store.payloads import PayloadStore

    return PayloadStore(_blobs(settings, aws))


def contents(settings: Settings, aws: Aws) -> ContentStore:
    """The store of files that are not in the log."""
    from a2a_serverless.store.stores import ContentStore

    return ContentStore(_blobs(settings, aws))


def _blobs(settings: Settings, aws: Aws) -> BlobStore:
    from a2a_serverless.adapters.s3 import S3BlobStore

    return S3BlobStore(lambda: aws.s3, settings.get("BLOBS_BUCKET"))


def egress_policy(settings: Settings) -> EgressPolicy:
    """Which URLs of clients are allowed."""
    from a2a_serverless.domain.outbound import EgressPolicy

    return EgressPolicy(
        allowed_domains=settings.webhook_allowed_domains,
        trusted_domains=settings.webhook_trusted_domains,
        local_allow=settings.webhook_local_allow,
    )


def own_urls(settings: Settings) -> tuple[str, ...]:
    """The base URLs of this deployment that the template can give to a function: its own, and API Gateway's."""
    return tuple(filter(None, (settings.get("PUBLIC_BASE_URL"), settings.get("GATEWAY_URL"))))


def deployed_agents(settings: Settings) -> Mapping[str, Agent]:
    """The agents of this deployment, by id; the first agent's card is also the card at the root."""
    from a2a_serverless.agent_loader import NotBuilt, by_id, load_agents

    try:
        return by_id(load_agents(_manifest(settings)))
    except NotBuilt as error:
        raise SettingsError(str(error)) from None


def deployed_code(settings: Settings) -> str:
    """The digest of the agents' code in this function; "" if it runs none."""
    from a2a_serverless.agent_loader import read_code

    return read_code(_manifest(settings))


def _manifest(settings: Settings) -> Path:
    from a2a_serverless.agent_loader import MANIFEST

    return Path(settings.get("AGENTS_FILE") or Path(__file__).parents[2] / MANIFEST)


def published_base_url(settings: Settings, aws: Aws) -> str:
    """The deployment's published base URL, which the template cannot give to the api; "" before the rotator has run."""
    from a2a_serverless.services.publish import base_url_in
    from a2a_serverless.store.stores import Publications

    return base_url_in(Publications(public_table(settings, aws)))
