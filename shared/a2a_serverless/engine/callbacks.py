"""Addresses at which others tell a task that something happened, and the wait for a request to such an address."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from a2a_serverless.domain.agent_errors import RunDiffers
from a2a_serverless.domain.outside_events import check_secret, event_digest, load_event, parse_signed_with
from a2a_serverless.domain.record_names import EVENT, GOT, SIGNED
from a2a_serverless.domain.step_results import StepResult
from a2a_serverless.engine.observer import Act, ActKind

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from a2a_serverless.domain.model import Json
    from a2a_serverless.domain.task_context import CallbackRequest
    from a2a_serverless.engine.execution import Execution
    from a2a_serverless.engine.waits import Waits
    from a2a_serverless.ports.system import Sealer


class Callbacks:
    """The addresses of an execution, below ``base_url``. ``secret`` reads a secret; ``sealer`` seals it for the api."""

    def __init__(
        self,
        execution: Execution,
        waits: Waits,
        base_url: str,
        secret: Callable[[str], Awaitable[str]],
        sealer: Sealer,
    ) -> None:
        self._execution, self._waits = execution, waits
        self._base_url, self._secret, self._sealer = base_url, secret, sealer
        self._new_paths = set[str]()

    async def open(self, name: str, signed_with: str | None) -> tuple[str, str]:
        """The path and the URL of the address of this name, the same in every run. See ``TaskContext.callback``."""
        execution = self._execution
        signature = None if signed_with is None else parse_signed_with(signed_with)
        path = execution.open_scope().place("callback", name)
        address = execution.journal.get(EVENT + path)
        if address is None:
            url = f"{self._base_url}/events/{execution.session.new_secret()}"
            address, digest = StepResult(signed_with or "", url), event_digest(url)
            record, records = EVENT + path, [(EVENT + path, address)]
            if signature:
                secret = await self._secret(signature.secret)
                check_secret(signature, secret)
                execution.check_open()
                sealed_secret: Json = {"scheme": signature.scheme, "sealed": self._sealer.seal(secret, digest)}
                record = SIGNED + path
                records.append((record, StepResult("", sealed_secret)))
            self._new_paths.add(path)
            execution.journal.note(EVENT + path, address)
            execution.session.store_callback(digest, record, *records)
        if address.arguments != (signed_with or ""):
            what = f"The callback {name!r} was made with another signed_with."
            raise RunDiffers(what, path, address.arguments or "none", signed_with or "none")
        return path, str(address.value)

    async def receive(self, name: str, path: str, timeout_s: float | None) -> CallbackRequest:
        """The request to the address of this path, once it has come. See ``Callback.received``."""
        scope = self._execution.open_scope()
        async with self._waits.timeout(name, timeout_s):
            received, is_open = scope.place("received", name), GOT + path not in self._execution.journal
            act = Act(ActKind.EVENT, received, path in self._new_paths, is_open=is_open)
            if stand_in := self._execution.session.observer.stand_in(act):
                return cast("CallbackRequest", await stand_in)
            request = await self._execution.receive(GOT + path, received, scope)
        return load_event(request)
