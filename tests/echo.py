"""Agents for tests."""

from __future__ import annotations

import asyncio

from a2a_serverless import Agent, Skill, TaskContext

SKILL = Skill("s", "s", "s", ("s",))


def agent_of(work: object, name: str = "echo") -> Agent:
    """Makes an agent of an async function."""
    return Agent(name, name, name, (SKILL,), work)  # type: ignore[arg-type]


class Writer:
    """An agent that writes three sections, each a slow step, and counts how often each step ran."""

    def __init__(self, seconds: float = 1.5) -> None:
        self.ran: list[str] = []
        self.seconds = seconds
        self.agent = agent_of(self.work)

    async def work(self, task: TaskContext) -> None:
        await task.report_progress("three sections")
        for name in ("one", "two", "three"):
            text = await task.step(name, self.write, name, task.text())
            await task.emit("document.md", text, append=True, last=name == "three")

    async def write(self, name: str, text: str) -> str:
        await asyncio.sleep(self.seconds)
        self.ran.append(name)
        return f"{name}: {text}. "


class Asker:
    """An agent that asks for a colour, and paints after the answer."""

    def __init__(self) -> None:
        self.agent = agent_of(self.work)

    async def work(self, task: TaskContext) -> None:
        text = await task.step("read", self.read, task.text())
        answer = await task.ask("Which colour?")
        await task.emit("picture", f"{text} in {answer.parts[0].value}", last=True)

    async def read(self, text: str) -> str:
        await asyncio.sleep(1.5)
        return text
