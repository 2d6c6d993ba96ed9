"""Calls the clerk from CrewAI, and prints what comes back. The model says what a list tells it."""

import json
import sys
from pathlib import Path

from crewai import Agent, BaseLLM, Crew, Task
from crewai.a2a import A2AClientConfig
from crewai.a2a.auth.client_schemes import APIKeyAuth
from crewai.a2a.updates import PollingConfig, StreamingConfig
from crewai.events import crewai_event_bus
from crewai.events.types.a2a_events import A2AArtifactReceivedEvent


def crew_of(url: str, key: str, llm: BaseLLM, *, trust: bool = True, updates=None) -> Crew:
    clerk = A2AClientConfig(
        endpoint=f"{url}/.well-known/agent-card.json",
        auth=APIKeyAuth(api_key=key, name="X-API-Key"),
        trust_remote_completion_status=trust,  # the clerk's answer is that of the crew, without another model call
        updates=updates or StreamingConfig(),
    )
    visitor = Agent(role="visitor", goal="Ask the clerk.", backstory="You know the clerk.", llm=llm, a2a=clerk)
    task = Task(description="Ask the clerk.", expected_output="Its answer.", agent=visitor)
    return Crew(agents=[visitor], tasks=[task])


class Script(BaseLLM):
    """Sends each text to the clerk, then ends with what it was told last."""

    url: str
    texts: list[str]
    told: list[str]

    def call(self, messages, *_, **__) -> str:
        self.told.append(json.dumps(messages))
        if not self.texts:
            return json.dumps({"a2a_ids": [], "message": "That is all.", "is_a2a": False})
        endpoint = f"{self.url}/.well-known/agent-card.json"
        return json.dumps({"a2a_ids": [endpoint], "message": self.texts.pop(0), "is_a2a": True})

    def supports_function_calling(self) -> bool:
        return False


def main(url: str, slow_url: str, key: str, seen: str) -> None:
    def converse(agent: str, *texts: str, url: str = url, key: str = key, **options) -> tuple[str, str]:
        """The output of the crew, and what its model was told last."""
        script = Script(model="script", url=f"{url}/{agent}", texts=list(texts), told=[])
        try:
            output = crew_of(f"{url}/{agent}", key, script, **options).kickoff().raw
        except Exception as error:
            output = f"{type(error).__name__}: {error}"
        return output, script.told[-1]

    def hear(_, __) -> None:
        Path(seen).touch()

    crewai_event_bus.on(A2AArtifactReceivedEvent)(hear)

    print(
        json.dumps(
            {
                "answer": converse("clerk", "answer")[0],
                "message": converse("greeter", "hello")[0],
                "artifacts": converse("clerk", "write")[0],
                "artifacts by polling": converse("clerk", "write", updates=PollingConfig(interval=0.1))[0],
                "whole artifacts": converse("whole-clerk", "write")[0],
                "artifact and message": converse("clerk", "report")[0],
                "stream": converse("clerk", f"stream {seen}")[0],
                "question": told_of("Which colour?", *converse("clerk", "ask")),
                "answered": converse("clerk", "ask", "blue")[0],
                "context": told_of("It was door.", *converse("clerk", "remember door", "recall", trust=False)),
                "failure": told_of("The printer is out of paper.", *converse("clerk", "fail")),
                "refused": told_of("HTTP Error 401", *converse("clerk", "answer", key="wrong")),
                "file out": converse("clerk", "draw")[0],
                "data out": converse("clerk", "count")[0],
                "work within a stream": converse("clerk", "slow")[0],
                "long work": converse("clerk", "slow", url=slow_url)[0],
                "long work by polling": converse("clerk", "slow", url=slow_url, updates=PollingConfig(interval=0.1))[0],
            }
        )
    )


def told_of(text: str, output: str, told: str) -> str:
    return f"the model is told: {text}" if text in told else output


main(*sys.argv[1:])
