"""Takes the pictures of the documents (``make pictures``): console, inbox, and diagrams as GitHub draws them."""

from __future__ import annotations

import http.server
import json
import os
import re
import tempfile
import threading
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.request import urlopen
from xml.etree import ElementTree as ET

from PIL import Image

from a2a_serverless.client import open_request
from a2a_serverless.http.api import Console
from a2a_serverless_tools.cli.inbox import InboxClient
from a2a_serverless_tools.dev.server import make_receiver
from a2a_serverless_tools.local.server import listen
from sample_agents.document import document
from sample_agents.image import image
from sample_agents.orchestrator import orchestrator
from sample_agents.outline import outline
from sample_agents.summary import summary
from sample_agents.travel import travel
from tests.browser import Browser, started
from tests.conformance.live import serving
from tests.docs.documents import DOCUMENTS, ROOT, diagram_name
from tests.webhook_receiver.serving import serving as serving_receiver

if TYPE_CHECKING:
    from collections.abc import Iterator

PICTURES: Final = ROOT / "docs/pictures"
MERMAID: Final = ROOT / "tests/docs/diagrams/node_modules/mermaid/dist"
AGENTS: Final = (orchestrator, document, summary, outline, image, travel)
SIZE: Final = (1280, 860)
WIDEST: Final = 1600
LARGEST: Final = 150_000
STYLE: Final = {
    "startOnLoad": False,
    "theme": "neutral",
    "htmlLabels": False,
    "flowchart": {"htmlLabels": False},
    "sequence": {"wrap": True, "width": 130, "actorMargin": 40},  # else wider than a page
}
TEXT: Final = """# How a sail works

## Before the wind

The wind pushes the sail, and the boat goes where the wind goes. It is never faster than the wind.

## Across the wind

The sail is a wing. The air is faster on its outer side, and draws the boat forward. The keel holds it against drifting.
"""


def take(browser: Browser, taken: Path) -> None:
    """Sends a task in the console, with the receiver as its webhook, and takes a picture of both."""
    with ExitStack() as opened:
        console = Console("my-agents", "http://127.0.0.1:8010/", internals=True)
        url = opened.enter_context(serving(AGENTS, console=console))
        listener = opened.enter_context(listen(0))
        receiver = f"http://127.0.0.1:{listener.getsockname()[1]}"
        opened.enter_context(serving_receiver(make_receiver(url, receiver), listener))
        webhook = InboxClient(receiver, open_request).expect("orchestrator")
        for command in (
            f"open {url}/?agent=travel",
            "wait #card .example",
            "fill #text :: Book a flight to Oslo, if I approve.",
            "click #send",
            'wait #task .badge[data-state="input-required"]',
            "click [data-agent=orchestrator]",
            "wait [data-agent=orchestrator][aria-current]",
            "click #show-hook",
            f"fill #hook-url :: {webhook.url}",
            f"fill #hook-token :: {webhook.token}",
            "click #show-data",
            'fill #data :: {"picture": "a sailing boat at dusk"}',
            f"evaluate document.getElementById('text').value = {json.dumps(TEXT)}",
            "click #send",
            'wait #task .badge[data-state="completed"]',
            f"open {receiver}/",
            "wait .row",
            'until document.body.innerText.includes("completed")',
            "picture inbox",
        ):
            browser.do(command)
        (task,) = json.loads(urlopen(f"{receiver}/api/notifications").read())["tasks"]
        for command in (
            f"open {url}/?agent=orchestrator&task={task['taskId']}",
            'wait #task .badge[data-state="completed"]',
            "wait .waterfall .webhook",
            "wait figure img",
            "click .waterfall summary:has-text('document')",
            "wait .inside .output",
            "evaluate document.querySelector('figure img').scrollIntoView({ block: 'center' })",
            "picture console",
            "open about:blank",
        ):
            browser.do(command)
    for name in ("console", "inbox"):
        _save(taken / f"{name}.png", PICTURES / f"{name}.webp")


def _save(taken: Path, kept: Path) -> None:
    Image.open(taken).convert("RGB").crop((0, 0, *SIZE)).save(kept, quality=80, method=6)
    assert kept.stat().st_size < LARGEST, kept


def draw(browser: Browser) -> None:
    """Draws each diagram of the documents; a drawing that no document has is deleted."""
    names = set()
    handler = partial(_Quiet, directory=str(MERMAID))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        (MERMAID / "empty.html").write_text("<!doctype html><script src=mermaid.min.js></script>")
        browser.do(f"open http://127.0.0.1:{server.server_port}/empty.html")
        browser.do(f"evaluate mermaid.initialize({json.dumps(STYLE)})")
        for block, text in diagrams():
            name = diagram_name(block)
            drawn = browser.do(f"evaluate mermaid.render('drawn', {json.dumps(text)}).then((made) => made.svg)")
            ET.fromstring(drawn)  # noqa: S314 - made here; a browser shows no picture that is not XML
            size = re.search(r'viewBox="[-\d.]+ [-\d.]+ (\d+)', drawn)
            drawn = drawn.replace('width="100%"', f'width="{size[1] if size else WIDEST}"', 1)
            small = re.sub(r' data-points="[^"]*"', "", re.sub(r"(\d\.\d)\d+", r"\1", drawn))
            (PICTURES / name).write_text(small + "\n")
            names.add(name)
        server.shutdown()
    for old in PICTURES.glob("diagram-*.svg"):
        if old.name not in names:
            old.unlink()


def diagrams() -> Iterator[tuple[str, str]]:
    """The blocks with diagrams, and the text of each."""
    for path in DOCUMENTS:
        for found in re.finditer(r"^```mermaid\n(.*?)^```$", path.read_text(), re.MULTILINE | re.DOTALL):
            yield found[0], found[1]


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Logs nothing."""


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.environ["PICTURES"] = folder
        PICTURES.mkdir(exist_ok=True)
        with started(Path(folder) / "profile") as opened:
            take(opened, Path(folder))
            draw(opened)
