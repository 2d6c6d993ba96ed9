"""Creates the receiver's objects from its settings."""

import time
from typing import Protocol

from a2a_webhook_receiver import outbound
from a2a_webhook_receiver.expectations import Expectations, WithStaticToken
from a2a_webhook_receiver.inbox import Inbox
from a2a_webhook_receiver.jwks import Fetch, JwksCache
from a2a_webhook_receiver.keys import MAX_BYTES
from a2a_webhook_receiver.receive import Receiver
from a2a_webhook_receiver.relay_inbox import InboxRelay
from a2a_webhook_receiver.relay_sns import SnsRelay
from a2a_webhook_receiver.replay import ReplayStore
from a2a_webhook_receiver.settings import Settings
from a2a_webhook_receiver.store_sqlite import SqliteStore
from a2a_webhook_receiver.tasks import JsonRpcTasks, Relay

JWKS_SECONDS = 3.0


def build_receiver(settings: Settings, fetch_keys: Fetch | None = None) -> Receiver:
    """Creates everything that the receiver needs. Opens its store; makes no connection.

    ``fetch_keys`` returns the issuer's key set; by default it is fetched from ``settings.jwks_url``.
    """
    fetch = fetch_keys or (lambda: outbound.get(settings.jwks_url, seconds=JWKS_SECONDS, limit=MAX_BYTES))
    store = open_store(settings)
    inbox = Inbox(first=tell_time())
    return Receiver(
        issuer=settings.issuer,
        audience=settings.audience,
        keys=JwksCache(fetch),
        expectations=WithStaticToken(store, settings.webhook_token) if settings.webhook_token else store,
        replays=store,
        tasks=JsonRpcTasks(settings.issuer, settings.agent_authorization),
        relays=(*_relays(settings), InboxRelay(inbox)),
        inbox=inbox,
        clock=tell_time,
        expectation_seconds=settings.expectation_seconds,
    )


class Store(Expectations, ReplayStore, Protocol):
    """A store of both expectations and replay memory."""


def open_store(settings: Settings) -> Store:
    """The DynamoDB table if one is configured, otherwise the SQLite file."""
    if settings.replay_table is None:
        return SqliteStore(settings.replay_db)
    import boto3

    from a2a_webhook_receiver.store_dynamodb import DynamoStore

    return DynamoStore(boto3.client("dynamodb"), settings.replay_table)


def tell_time() -> int:
    """Milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


def _relays(settings: Settings) -> tuple[Relay, ...]:
    if settings.relay_topic_arn is None:
        return ()
    import boto3

    return (SnsRelay(boto3.client("sns"), settings.relay_topic_arn),)
