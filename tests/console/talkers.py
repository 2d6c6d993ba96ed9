"""Agents for the console's tests: one that does everything, one that asks, one that waits, one that means harm."""

from __future__ import annotations

import asyncio
import base64
import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from a2a_serverless import Agent, Budget, Part, Skill, TaskContext, TaskFailed
from a2a_serverless_frameworks.answers import ask_approval
from tests.browser import png

if TYPE_CHECKING:
    from a2a_serverless.domain.agent import Runs

logger = logging.getLogger(__name__)
EVIL = "<img src=x onerror=alert(1)><script>alert(2)</script>"
OVERRIDE = "\u202egpj.exe\u200b"
DOCUMENT = """# Sailing 风

Wind **moves** the boat, *water* carries it, and `keel` holds it. See [the source](https://example.com/sea).

| sail | area |
|---|---|
| jib | 12 m² |
| main | 21 m² |

2026. A year begins no list.

1. Hoist the *main*
   - check the halyard
2. Set sail ⛵

> 风从海上来。

```python
print("ahoy")
```

![the boat](boat.png)
"""
MANY = r"\*"
VECTOR = b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(7)'/>"
HOSTILE = f"""# {EVIL}

[click](javascript:alert(3)) [data](data:text/html,<script>alert(4)</script>) ![pixel](https://evil.example/p.png)

<iframe src="https://evil.example"></iframe> <a href="javascript:alert(5)" onclick="alert(6)">x</a>

{"[" * 5000}{"*" * 5000}{"`" * 4999}{"> " * 500}
{"x" * 20000}

{MANY * 60000}

שלום עולם, this is \u202eright to left\u202c and zero\u200bwidth.
"""


BROKEN: set[str] = set()
"""The texts on which the needle broke once."""


async def draw() -> str:
    await asyncio.sleep(0.05)
    return "drawn"


async def sailor(task: TaskContext) -> str:
    await task.report_progress("Two things are made: a document and a picture.")
    await task.step("outline", draw)
    for line in DOCUMENT.splitlines(keepends=True):
        await task.emit("document.md", line, append=True)
    await task.emit("document.md", "", append=True, last=True)
    await task.step("draw the boat", draw)
    await task.emit("boat.png", base64.b64decode(png(480, 300, level=0)), media_type="image/png")
    await task.emit("figures", {"sails": [{"name": "jib", "area": 12}, {"name": "main", "area": 21}], "crew": 3})
    return f"Done: {len(task.message.parts)} parts read. **Fair winds.**"


async def tailor(task: TaskContext) -> str:
    answer = await task.ask("Which colour? 什么颜色？")
    await task.emit("coat.txt", f"a {answer.text()} coat", last=True)
    return "It is ready."


async def hasty(task: TaskContext) -> str:
    try:
        return (await task.ask("Which colour?", timeout_s=1)).text()
    except TimeoutError:
        return "Too late."


async def sleeper(task: TaskContext) -> str:
    await task.report_progress("This takes a while.", percent=40)
    await task.step("sleep", asyncio.sleep, 600)
    return "never"


async def napper(task: TaskContext) -> str:
    await task.sleep("nap", 600)
    return "never"


def break_on(text: str) -> None:
    raise TaskFailed(f"The needle broke on {text!r}.")


async def courier(task: TaskContext) -> str:
    door = await task.callback("door opened")
    event = await door.received(timeout_s=3600)
    return f"Delivered: {event.json()}"


async def breaker(task: TaskContext) -> str:
    await task.emit("seam.md", await task.step("thread", draw), last=True)
    if task.text() not in BROKEN:
        BROKEN.add(task.text())
        await task.step("sew", break_on, task.text())
    return "The seam holds."


def tear(text: str) -> None:
    logger.warning("pulling at %s", text)
    raise ValueError(f"torn: {text}")


async def ripper(task: TaskContext) -> str:
    logger.warning("begins")
    await task.step("rip", tear, task.text())
    return "never"


async def booker(task: TaskContext) -> str:
    approval = await ask_approval(task, "May I book a flight to Oslo?", {"tool": "book"})
    return "Booked." if approval.decision == "approve" else f"Not booked: {approval.message}"


async def slow(task: TaskContext) -> str:
    await task.step("cut", draw)
    await task.step("sew", asyncio.sleep, 600)
    return "never"


async def mender(_: TaskContext) -> str:
    return "The seam holds."


async def master(task: TaskContext) -> str:
    await task.call("have it sewn", "mender", f"a seam for {task.text()}")
    return "It is sewn."


async def oracle(task: TaskContext) -> str:
    return f"You said: {task.text()}"


def show_evil() -> dict[str, str]:
    return {EVIL: OVERRIDE}


async def hostile(task: TaskContext) -> str:
    await task.step(EVIL, show_evil)
    await task.emit(EVIL, HOSTILE, media_type="text/markdown")
    await task.emit(OVERRIDE, b"\x00" * 300_000, media_type="image/png")
    await task.emit(
        "vector.svg", b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(7)'/>", media_type="image/svg+xml"
    )
    await task.emit("link", [Part(url="javascript:alert(8)")])
    await task.emit("big.txt", "line of text\n" * 80_000)
    await task.emit("data", {EVIL: EVIL, "__proto__": {"x": EVIL}})
    return HOSTILE


def agent(
    work: object, name: str, about: str, *examples: str, modes: tuple[str, ...] = ("text/plain",), runs: Runs = "queued"
) -> Agent:
    skill = Skill("skill", f"{name}'s skill", about, ("demo",), examples)
    return Agent(work.__name__, name, about, (skill,), work, input_modes=modes, runs=runs)  # type: ignore[attr-defined,arg-type]


AGENTS = (
    agent(
        sailor,
        "Sailor",
        "Writes about the sea and draws boats.",
        "Write about sailing.",
        "写一篇关于帆船的文章。",
        modes=("*/*",),
    ),
    replace(
        agent(tailor, "Tailor 裁缝", "Makes coats, and asks for their colour.", "A coat, please."), budget=Budget(usd=2)
    ),
    agent(hasty, "Hasty", "Waits for an answer for a second.", "A coat."),
    agent(sleeper, "Sleeper", "Takes its time.", "Sleep."),
    agent(napper, "Napper", "Waits without compute.", "Nap."),
    agent(courier, "Courier", "Waits until somebody opens the door.", "Deliver a parcel."),
    agent(breaker, "Breaker", "Fails at everything once.", "Sew."),
    agent(slow, "Slow", "Cuts, then takes its time.", "Sew slowly."),
    agent(ripper, "Ripper", "Tears cloth, and logs it.", "A sleeve."),
    agent(booker, "Booker", "Books a flight if it may.", "Book a flight."),
    agent(mender, "Mender", "Mends seams.", "Mend a seam."),
    agent(master, "Master", "Has the mender sew.", "A coat, please."),
    agent(oracle, "Oracle", "Answers with a message and makes no task.", "Hello", runs="inline"),
    agent(hostile, f"Hostile {EVIL}", f"{OVERRIDE} {EVIL}", EVIL),
)
