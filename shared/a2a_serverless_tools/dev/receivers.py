"""Notices that a webhook receiver on this machine listens again, so that nothing waits for its next attempt."""

from __future__ import annotations

import socket
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from a2a_serverless.domain.loopback import LOOPBACK
from a2a_serverless_tools.operators.deliveries import DeliveryAdmin, redrive_host

if TYPE_CHECKING:
    from a2a_serverless_tools.local.deployment import LocalDeployment

CONNECT_S: Final = 0.5


class ReceiverWatch:
    """Redrives the webhooks of each receiver that was down and listens again. ``look`` is called again and again."""

    def __init__(self, deployment: LocalDeployment) -> None:
        self._deployment = deployment
        self._down: set[str] = set()

    def look(self) -> None:
        """Looks once at each host that has not answered its last webhook."""
        silent = self._deployment.post.breakers.list_silent()
        listening = {host for host in silent if _listens(host)}
        for host in listening & self._down:
            table = self._deployment.table
            redrive_host(DeliveryAdmin(table, table, self._deployment.queue, self._deployment.clock), table, host)
        self._down = set(silent) - listening


def _listens(host: str) -> bool:
    """Whether something on this machine accepts connections at ``host``, an address with a port."""
    name, _, port = host.rpartition(":")
    if name != LOOPBACK:
        return False
    with suppress(OSError, ValueError), socket.create_connection((name, int(port)), CONNECT_S):
        return True
    return False
