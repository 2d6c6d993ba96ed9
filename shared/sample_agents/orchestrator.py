"""The orchestrator: lets other agents write a document: outline, then document, then summary.

Every step calls another A2A agent in the same conversation; while those work, this one is suspended. The agents are
found by their skills, and an agent's card is read before the agent is called. Each result is passed to the next agent,
as data if its card accepts data. If a picture is wanted, it is made in parallel. A failed step affects only steps that
need its result: the task then completes with the results that there are, and says what is missing and why.

The document is the last artifact and there is no message after it, because many clients keep only the last of these.
What is missing is said in the progress before it; without a document, in the final message.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pydantic import BaseModel, Field

from a2a_serverless import AgentCallFailed, Artifact, Message, Part, Skill, TaskContext, TaskFailed, TaskState, agent
from a2a_serverless.protocol.protojson import read_model
from sample_agents.writing import EXAMPLES, language_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from a2a_serverless import Task
    from a2a_serverless.domain.model import Json, JsonObject
    from a2a_serverless.protocol.v1_card import AgentCard

DEADLINE_S: Final = 3600.0
JSON: Final = "application/json"
MARKDOWN: Final = "text/markdown"
OUTLINE: Final = "outline.json"
DOCUMENT: Final = "document.md"
SUMMARY: Final = "summary.md"
REPORT: Final = "report.json"
SKILLS: Final = {
    "outline": "generate-outline",
    "document": "write-document",
    "summary": "summarise",
    "picture": "generate-image",
}
"""The skill that each step needs, in the order of the report. Any agent that has it will do."""
_SAYS: Final = {
    "en": {
        "what": "What should the document be about? Send a text or a topic.",
        "partial": "A partial result: {}. Missing: {}.",
        "nothing": "There is no result. {}",
        "and": "; ",
    },
    "zh": {
        "what": "文档要写什么？请发送文本或主题。",
        "partial": "部分结果：{}。缺少：{}。",
        "nothing": "没有结果。{}",
        "and": "；",
    },
}


@agent(
    id="orchestrator",
    name="Orchestrator",
    description="Lets other A2A agents outline, write and summarise a document, with a picture if wanted, "
    "and passes on what each of them made. English and Chinese.",
    skills=[
        Skill(
            id="write-with-agents",
            name="Have a document written by a chain of agents",
            description="Outline, document, summary. A data part may say more: "
            '{"picture": "what to draw", "deadlineSeconds": 3600}.',
            tags=("orchestration", "writing", "long-running"),
            examples=EXAMPLES,
        )
    ],
    input_modes=("text/plain", MARKDOWN, JSON),
    output_modes=(MARKDOWN, JSON, "image/png"),
)
async def orchestrator(task: TaskContext) -> str | None:
    """Emits the called agents' artifacts, and ``report.json``. The document comes last."""
    source = task.text()
    if not source.strip():
        source = (await task.ask(" ".join(says["what"] for says in _SAYS.values()))).text()
    options = read_model(Options, task.data() or {})
    chain = Chain(task, source, options.deadline_s)
    await chain.discover([step for step in SKILLS if step != "picture" or options.picture])
    await asyncio.gather(
        chain.write(), *([chain.call("picture", [Part(text=options.picture)], None)] if options.picture else [])
    )
    return await chain.report()


class Options(BaseModel, frozen=True):
    """The data part of the request."""

    picture: str | None = None
    deadline_s: float = Field(DEADLINE_S, gt=0, le=DEADLINE_S, alias="deadlineSeconds")


@dataclass
class Chain:
    """One run of the plan: the agents, their cards, and the result of each step, in the order of the plan."""

    task: TaskContext
    source: str
    deadline_s: float
    agents: dict[str, tuple[str, AgentCard]] = field(default_factory=dict)
    given: dict[str, list[str]] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    document: list[tuple[str, list[Part], str | None]] = field(default_factory=list)

    async def discover(self, steps: Sequence[str]) -> None:
        """Finds an agent for each step, by its skill, and reads its card. An agent without a card is not called."""
        for step in steps:
            try:
                names = await self.task.find_agents(SKILLS[step])
                if names:
                    self.agents[step] = names[0], await self.task.get_card(names[0])
                else:
                    self.missing[step] = f"no agent has the skill {SKILLS[step]}"
            except AgentCallFailed as failed:
                self.missing[step] = str(failed)
        await self.task.report_progress(" → ".join(card.name for _, card in self.agents.values()))

    async def write(self) -> None:
        """Runs outline, document and summary in sequence. Without an outline, the document is written anyway."""
        outline = await self.call("outline", [Part(text=self.source)], OUTLINE)
        document = await self.call("document", [Part(text=self.source), *outline], DOCUMENT)
        if document:
            await self.call("summary", document, SUMMARY)
        else:
            self.missing["summary"] = "there is no document"

    async def report(self) -> str | None:
        """Emits the result of each step, and the document; without one, returns the result in words.

        Raises TaskFailed when no step has a result.
        """
        says = _SAYS[language_of(self.source)]
        steps = sorted([*self.given, *self.missing], key=list(SKILLS).index)
        rows: list[Json] = [self._told(step) for step in steps]
        await self.task.emit(REPORT, {"steps": rows}, last=True, media_type=JSON)
        missing = says["and"].join(f"{step} ({self.missing[step]})" for step in steps if step in self.missing)
        names = ", ".join(name for step in steps for name in self.given.get(step, []))
        if not names:
            raise TaskFailed(says["nothing"].format(missing))
        partial = says["partial"].format(names, missing)
        if not self.document:
            return partial
        if missing:
            await self.task.report_progress(partial)
        for name, parts, description in self.document:
            await self.task.emit(name, parts, last=True, description=description)
        return None

    def _told(self, step: str) -> JsonObject:
        if step in self.missing:
            return {"step": step, "state": "missing", "reason": self.missing[step]}
        return {"step": step, "state": "done", "artifacts": [*self.given[step]]}

    async def call(self, step: str, parts: list[Part], name: str | None) -> list[Part]:
        """Calls an agent and emits its artifacts; returns their parts for the next one, none when the step failed."""
        if step not in self.agents:
            return []
        agent_name, card = self.agents[step]
        try:
            answer = await self.task.call(step, agent_name, _fitting(parts, card), deadline_s=self.deadline_s)
        except AgentCallFailed as failed:
            self.missing[step] = str(failed)
            return []
        artifacts = _made(answer)
        if not artifacts:
            self.missing[step] = _reason(answer)
        for number, artifact in enumerate(artifacts):
            own = artifact.name or f"{step}-{number}"
            await self._pass_on(step, artifact, name if name and number == 0 else own, answer)
        return [part.model_copy(update={"metadata": None}) for artifact in artifacts for part in artifact.parts]

    async def _pass_on(self, step: str, artifact: Artifact, name: str, answer: Task | Message) -> None:
        """Emits an agent's artifact as our own, with a reference to the original; the document's at the end."""
        origin: JsonObject = {}
        if not isinstance(answer, Message) and artifact.artifact_id:
            origin = {"taskId": answer.id, "artifactId": artifact.artifact_id}
        parts = [
            part.model_copy(update={"metadata": {**(part.metadata or {}), **origin} or None}) for part in artifact.parts
        ]
        if step == "document":
            self.document.append((name, parts, artifact.description))
        else:
            await self.task.emit(name, parts, last=True, description=artifact.description)
        self.given.setdefault(step, []).append(name)


def _fitting(parts: list[Part], card: AgentCard) -> list[Part]:
    """The parts in a form that the agent accepts: data becomes text unless its card accepts data."""
    modes = card.default_input_modes
    if not modes or any(mode in {JSON, "*/*", "application/*"} for mode in modes):
        return parts
    return [_as_text(part) if part.kind == "data" else part for part in parts]


def _as_text(part: Part) -> Part:
    return Part(text=json.dumps(part.value, ensure_ascii=False, indent=2), media_type="text/plain")


def _made(answer: Task | Message) -> list[Artifact]:
    """An agent's artifacts; if there are none, its message as one."""
    if isinstance(answer, Message):
        return [Artifact(artifact_id="", parts=answer.parts)]
    if answer.status.state is not TaskState.COMPLETED:
        return []
    message = answer.status.message
    return list(answer.artifacts) or ([Artifact(artifact_id="", parts=message.parts)] if message else [])


def _reason(answer: Task | Message) -> str:
    if isinstance(answer, Message):
        return "an empty answer"
    text = answer.status.message.text() if answer.status.message else ""
    return f"{answer.status.state}: {text}" if text else f"{answer.status.state} without a result"
