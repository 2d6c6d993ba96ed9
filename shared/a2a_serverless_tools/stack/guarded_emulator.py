"""The emulator, closed to web pages: `<the emulator's Python> -P guarded_emulator.py`, with its own settings.

The emulator accepts any credentials and lets every origin read its answers, so a page in the developer's browser could
read secrets and change everything. A browser sends the page's origin (`Origin`) and site (`Sec-Fetch-Site`); no AWS SDK
does. A page whose host name resolves to 127.0.0.1 (DNS rebinding) still sends that name as `Host`.

A browser may only open a stored file, by a presigned link, in a tab of its own: from the console, a terminal or another
program. Many operations of AWS change something by a GET, so a browser may make no other request, also where no page
sends it (`Sec-Fetch-Site: none`). The file's scripts do not run, because the emulator would serve them.

This file runs in the emulator's environment, so it imports nothing of the project.
"""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qsl

App = Callable[[MutableMapping[str, Any], Callable[[], Awaitable[Any]], Callable[[Any], Awaitable[None]]], Any]

OK = 200
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
OBJECT = re.compile("/[^/_][^/]*/.+")
SIGNED_BY = ("Algorithm", "Credential", "Date", "Expires", "SignedHeaders", "Signature")
PRESIGNED = {f"X-Amz-{name}" for name in SIGNED_BY}
OPTIONAL = {"X-Amz-Security-Token", "response-content-disposition", "response-content-type"}
SANDBOX = [
    (b"content-security-policy", b"sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:"),
    (b"x-content-type-options", b"nosniff"),
]
FORBIDDEN = b"The emulator answers programs on this machine only, no web pages.\n"


def refused(scope: MutableMapping[str, Any], port: int) -> bool:
    """Return whether a request comes from a browser and opens no file, or names another host than this machine."""
    headers = [(name.lower(), value.lower().decode("latin-1")) for name, value in scope["headers"]]
    hosts = [value for name, value in headers if name == b"host"]
    ours = len(hosts) == 1 and hosts[0] in {f"{name}:{port}" for name in LOOPBACK}
    return not ours or any(name == b"origin" for name, _ in headers) or (from_browser(scope) and not opens_file(scope))


def from_browser(scope: MutableMapping[str, Any]) -> bool:
    """Return whether a browser makes the request: no page and no program can set or leave out these headers there."""
    return any(name.lower().startswith(b"sec-fetch-") for name, _ in scope["headers"])


def opens_file(scope: MutableMapping[str, Any]) -> bool:
    """Return whether a browser opens an object of a bucket by a presigned link, in a tab of its own."""
    headers = {name.lower(): value.lower() for name, value in scope["headers"]}
    names = {name for name, _ in parse_qsl(scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True)}
    in_tab = (headers.get(b"sec-fetch-mode"), headers.get(b"sec-fetch-dest")) == (b"navigate", b"document")
    is_object = scope["type"] == "http" and OBJECT.fullmatch(scope["path"]) is not None
    return in_tab and is_object and scope["method"] in {"GET", "HEAD"} and PRESIGNED <= names <= PRESIGNED | OPTIONAL


def guarded(app: App, port: int) -> App:
    """Wrap an ASGI application so that requests that are `refused` get status 403."""

    async def answer(scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401 - as ASGI has them
        if scope["type"] == "lifespan" or not refused(scope, port):
            browser = scope["type"] == "http" and from_browser(scope)
            await app(scope, receive, sandboxed(send) if browser else send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008})
        else:
            about = [(b"content-type", b"text/plain"), (b"content-length", str(len(FORBIDDEN)).encode())]
            await send({"type": "http.response.start", "status": 403, "headers": about})
            await send({"type": "http.response.body", "body": FORBIDDEN})

    return answer


def sandboxed(send: Callable[[Any], Awaitable[None]]) -> Callable[[Any], Awaitable[None]]:
    """Wrap ASGI's `send` so that a browser runs nothing of the answer."""

    async def sending(message: Any) -> None:  # noqa: ANN401
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], *SANDBOX]}
        await send(message)

    return sending


def without_keywords(send: Callable[..., None]) -> Callable[..., None]:
    """Wrap what sends an event, so that it sends none whose input has keywords of EventBridge Scheduler.

    The emulator does not replace them, and evaluates schedules in UTC. `scheduler.py` sends these events.
    """

    def sending(target: Any, *about: Any) -> None:  # noqa: ANN401
        if "<aws.scheduler." not in target.get("Input", ""):
            send(target, *about)

    return sending


def without_metric_math(record: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap what makes an alarm, so that one on several metrics is made on the first of them.

    The emulator refuses their sum, and refuses the whole stack with it.
    """

    def making(name: str, properties: Any) -> Any:  # noqa: ANN401
        metrics = [one["MetricStat"] for one in properties.get("Metrics") or [] if "MetricStat" in one]
        if metrics:
            first = {"Statistic": metrics[0]["Stat"], "Period": metrics[0]["Period"], **metrics[0]["Metric"]}
            properties = {name: value for name, value in properties.items() if name != "Metrics"} | first
        return record(name, properties)

    return making


def with_sources(
    restore: Callable[..., Any], describe: Callable[..., Any], tables: MutableMapping[str, Any]
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Wrap what restores a table to a point in time and what describes tables, so that a copy names its source.

    DynamoDB notes the source at the new table; the emulator does not.
    """
    sources: dict[str, str] = {}

    def restoring(request: Any) -> Any:  # noqa: ANN401
        answer = restore(request)
        if answer[0] == OK:
            sources[request["TargetTableName"]] = tables[request["SourceTableName"]]["TableArn"]
        return answer

    def describing(name: str) -> Any:  # noqa: ANN401
        summary = {"SourceTableArn": sources.get(name), "RestoreDateTime": 0, "RestoreInProgress": False}
        return describe(name) | ({"RestoreSummary": summary} if name in sources else {})

    return restoring, describing


def main() -> None:
    """Start the emulator as its own command does, wrapped in `guarded`."""
    import ministack.app as emulator
    from ministack.services import dynamodb, eventbridge
    from ministack.services.cloudformation import provisioners

    eventbridge._invoke_target = without_keywords(eventbridge._invoke_target)  # noqa: SLF001
    provisioners._cw_metric_alarm_record = without_metric_math(provisioners._cw_metric_alarm_record)  # noqa: SLF001
    dynamodb._restore_table_to_point_in_time, dynamodb._table_description = with_sources(  # noqa: SLF001
        dynamodb._restore_table_to_point_in_time,  # noqa: SLF001
        dynamodb._table_description,  # noqa: SLF001
        dynamodb._tables,  # noqa: SLF001
    )
    emulator.app = guarded(emulator.app, int(os.environ["GATEWAY_PORT"]))
    emulator.main()


if __name__ == "__main__":
    main()
