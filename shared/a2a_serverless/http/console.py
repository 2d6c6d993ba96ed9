"""The console: a page at ``/`` that shows the agents and lets its user talk to them, and the files of the page.

The page itself holds only the public answer of ``/agents`` and the deployment's name. It fetches everything else like
any client, with the credentials that its user enters. Its policy allows no script but its own, and no request to
another host. ``/-/tasks`` lists the caller's tasks of all agents, ``/-/events`` the events of one as clients get them.
``/-/step`` shows what the task's log has of a step, of a call or of an event's address, and ``/-/log`` the lines that
its runs have logged. Both only with ``Console.internals``: an agent need not tell its clients what is in there.
"""

from __future__ import annotations

import json
import re
import secrets
from functools import partial
from html import escape
from importlib import resources
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import quote

from starlette.responses import Response

from a2a_serverless.domain.events import update_of
from a2a_serverless.domain.model import Principal
from a2a_serverless.domain.record_names import EVENT, LIMIT, SEPARATOR, call_name, raised_name
from a2a_serverless.http.api import no_such_path
from a2a_serverless.http.messages import json_answer
from a2a_serverless.protocol.protojson import timestamp_text
from a2a_serverless.protocol.strict_json import dumps
from a2a_serverless.protocol.v1 import stream_response
from a2a_serverless.services.briefs import BriefFilter, list_briefs
from a2a_serverless.services.content_links import resolve_contents
from a2a_serverless.services.task_changes import read_existing_head

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from a2a_serverless.domain.access import Access
    from a2a_serverless.domain.agent import Agent
    from a2a_serverless.domain.events import Event
    from a2a_serverless.domain.head import CurrentHead, Head
    from a2a_serverless.domain.model import Json, JsonObject, TaskKey
    from a2a_serverless.domain.step_results import StepResult
    from a2a_serverless.http.api import Api, Console
    from a2a_serverless.http.messages import HttpRequest
    from a2a_serverless.protocol.protojson import ProtoModel

    Read = Callable[[str], StepResult | None]

POLICY: Final = (
    "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
HEADERS: Final = {
    "cache-control": "no-cache",
    "cross-origin-opener-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
UNSEEN: Final = re.compile("[\x00-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
WEB: Final = re.compile("https?://")
LINK: Final = '<a href="{}" target="_blank" rel="noreferrer">{}</a>'
TYPES: Final = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}
_FOLDER: Final = resources.files("a2a_serverless.http").joinpath("pages")
# The page of the receiver's inbox uses these modules, too. The receiver stands alone, so it has them; every api has the
# receiver, which verifies callbacks.
_OF_RECEIVER: Final = frozenset({"dom.js", "markdown.js"})
EVENTS: Final = 100
EVENT_BYTES: Final = 1024 * 1024
LOG_LINES: Final = 500
OUTPUT_LIMIT: Final = 20_000
TRIES: Final = 20


def answer(api: Api, console: Console, request: HttpRequest) -> Response:
    """The page, one of its files, or JSON that it asks for. Raises MethodNotFound, TaskNotFound and other A2AErrors."""
    name = request.params.get("file")
    if name == "tasks":
        return _list_tasks(api, request)
    if name == "events":
        return _show_events(api, request)
    if name == "step" and console.internals:
        return _show_step(api, request)
    if name == "log" and console.internals and console.log_lines:
        return _show_log(api, console.log_lines, request)
    return _serve_file(name) if name else _show_page(api, console)


def _show_page(api: Api, console: Console) -> Response:
    nonce = secrets.token_urlsafe(16)
    links = {"Documents": console.documents, "Inbox": console.inbox}
    links = {name: escape(url) for name, url in links.items() if WEB.match(url)}
    values = {
        "nonce": nonce,
        "name": escape(UNSEEN.sub("", console.name)) or "Agents",
        "internals": str(console.internals).lower(),
        "log": str(console.internals and console.log_lines is not None).lower(),
        "inbox": links.get("Inbox", ""),
        "links": "".join(LINK.format(url, name) for name, url in links.items()),
        "agents": "\n".join(map(_entry, api.agents.values())),
    }
    page = re.sub(r"\{\{(\w+)\}\}", lambda match: values[match[1]], _read("page.html").decode())
    headers = HEADERS | {"content-security-policy": POLICY.format(nonce=nonce)}
    return Response(page, headers=headers, media_type="text/html; charset=utf-8")


def _list_tasks(api: Api, request: HttpRequest) -> Response:
    caller, query = api.sign_in(request), dict.fromkeys(("agent", "state", "text"), "") | dict(request.query)
    agents = {agent for agent in api.agents if caller.allows(agent, "read") and query["agent"] in {"", agent}}
    wanted = BriefFilter(agents, query["state"], query["text"].strip())
    return json_answer(dumps(list_briefs(api.service.lister(), caller.principal, wanted, query.get("after"))))


def _find_task(api: Api, request: HttpRequest, access: Access, query: Mapping[str, str]) -> tuple[TaskKey, CurrentHead]:
    """The task that a request names by ``agent`` and ``task``. Raises TaskNotFound and other A2AErrors."""
    caller = api.sign_in(request)
    if query["agent"] not in api.agents or max(map(len, query.values())) > LIMIT:
        raise no_such_path()
    caller.check(query["agent"], access)
    key = caller.principal.key(query["task"])
    return key, read_existing_head(api.service.log, key, query["agent"])


def _show_events(api: Api, request: HttpRequest) -> Response:
    """A page of a task's events, and the number after which the next page begins; null at the end."""
    query = dict.fromkeys(("agent", "task", "after"), "") | dict(request.query)
    key, current = _find_task(api, request, "read", query)
    after = min(int(query["after"]), current.last) if query["after"].isdecimal() else 0
    left = EVENT_BYTES

    def admit(size: int) -> bool:
        nonlocal left
        left -= size
        return left >= 0

    events, cut = api.service.log.read(key, after, EVENTS, admit), cast("JsonObject", {})
    if not events and after < current.last:  # the next event alone is too large for an answer
        event = api.service.log.read_outline(key, after + 1)
        events, cut = [event] if event else [], {"isCut": True}
    shown: list[Json] = [_event_shown(api, key, current.head, event) | cut for event in events]
    end = events[-1].n if events else after
    return json_answer(dumps({"events": shown, "after": end if end < current.last else None}))


def _event_shown(api: Api, key: TaskKey, head: Head, event: Event) -> JsonObject:
    """An event as streams and webhooks send it, and the client's message that it has ``received``."""
    resolve = partial(resolve_contents, api.service.contents, Principal(key.tenant, key.owner))
    sent, incoming = update_of(event, key.task, head.context_id), getattr(event, "incoming", None)
    shown: JsonObject = {"eventNumber": event.n, "at": timestamp_text(event.at), "run": event.fence or None}
    shown["sent"] = _json(stream_response(resolve(sent)))
    return shown | ({"received": _json(resolve(incoming.message))} if incoming else {})


def _json(message: ProtoModel) -> Json:
    return cast("Json", json.loads(message.json_bytes()))


def _show_log(api: Api, log_lines: Callable[[str], Sequence[JsonObject]], request: HttpRequest) -> Response:
    query = dict.fromkeys(("agent", "task"), "") | dict(request.query)
    key, _ = _find_task(api, request, "operate", query)
    lines = log_lines(key.task)
    return json_answer(dumps({"lines": [*lines[-LOG_LINES:]], "more": max(0, len(lines) - LOG_LINES)}))


def _show_step(api: Api, request: HttpRequest) -> Response:
    query = dict.fromkeys(("agent", "task", "kind", "name"), "") | dict(request.query)
    if query["kind"] not in _KINDS:
        raise no_such_path()
    key, _ = _find_task(api, request, "operate", query)
    return json_answer(dumps(_KINDS[query["kind"]](partial(api.service.log.read_step, key), query["name"])))


def _step(read: Read, name: str) -> JsonObject:
    """The result of a step, and the errors of its tries. Other records begin with @, and are not shown."""
    if name.startswith("@"):
        raise no_such_path()
    errors: list[Json] = []
    while len(errors) < TRIES and (error := read(raised_name(name, len(errors) + 1))):
        _, kind, arguments, *_ = cast("Any", error.value)
        errors.append(f"{kind}: {', '.join(map(str, arguments or ()))}"[:OUTPUT_LIMIT])
    return _output(read(name)) | {"errors": errors}


def _call(read: Read, name: str) -> JsonObject:
    call = call_name(name)
    request: Any = read(call.sent) or read(call.told)
    return _output(read(call.done) or read(call.failed) or read(call.canceled)) | (request.value if request else {})


def _event(read: Read, name: str) -> JsonObject:
    """The address of an event, and the scheme in which requests to it must be signed, if any."""
    scopes, separator, last = name.rpartition(SEPARATOR)
    callback = read(f"{EVENT}{scopes}{separator}callback:{last}")
    return {"address": callback.value, "scheme": callback.arguments.partition(":")[0]} if callback else {}


def _output(result: StepResult | None) -> JsonObject:
    if result is None:
        return {}
    text = result.value if isinstance(result.value, str) else dumps(result.value).decode()
    return {"output": text[:OUTPUT_LIMIT], "size": len(text)}


_KINDS: Final = {"step": _step, "call": _call, "event": _event}


def _serve_file(name: str) -> Response:
    media_type = TYPES.get(name[name.rfind(".") :])
    if media_type is None or name not in {*_OF_RECEIVER, *(file.name for file in _FOLDER.iterdir())}:
        raise no_such_path()
    return Response(_read(name), headers=HEADERS, media_type=media_type)


def _entry(agent: Agent) -> str:
    name, text = (escape(UNSEEN.sub("", value)) for value in (agent.name, agent.description))
    link = f'<a href="?agent={quote(agent.id, safe="")}" data-agent="{escape(agent.id)}" title="{text}">'
    return f'<li>{link}<bdi class="name">{name}</bdi><bdi class="about">{text}</bdi></a></li>'


def _read(name: str) -> bytes:
    folder = resources.files("a2a_webhook_receiver") if name in _OF_RECEIVER else _FOLDER
    return folder.joinpath(name).read_bytes()
