"""The foreign clients that call our agents: what each sees of every flow, and what it loses.

The tests compare it with what the programs in ``callers`` print; the table of docs/call-from.md is drawn from it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[2]
HERE: Final = Path(__file__).parent / "callers"

FLOWS: Final = {
    "answer": "answer",
    "message": "message without a task",
    "artifacts": "several artifacts, one of them in chunks",
    "artifact and message": "artifact and message",
    "stream": "stream",
    "question": "question",
    "answered": "answer to the question",
    "context": "second turn",
    "failure": "failed task",
    "refused": "wrong key",
    "cancel": "cancel",
    "file in": "file to the agent",
    "file out": "file from the agent",
    "data out": "data",
    "long work": "long work",
}
"""The columns of the table."""


@dataclass(frozen=True)
class Seen:
    """What a program prints for a flow; ``loss`` says what its user does not get, "" if nothing is lost."""

    value: Any
    loss: str = ""


@dataclass(frozen=True)
class Caller:
    """A client of a ``package``, and the version of the protocol that it speaks.

    ``without`` says why a flow is not run; ``more`` has flows that are in no column.
    """

    title: str
    package: str
    protocol: str
    seen: dict[str, Seen]
    without: dict[str, str] = field(default_factory=dict)
    more: dict[str, Any] = field(default_factory=dict)
    environment: str = ""

    def loss(self, flow: str) -> str:
        """The reason why a flow is not whole; "" if it is."""
        return self.without.get(flow) or self.seen[flow].loss


def locked(package: str, environment: str) -> str:
    """The version of a package in an environment's lock file."""
    text = (ROOT / "requirements" / f"caller-{environment}.txt").read_text()
    (version,) = re.findall(rf"^{re.escape(package)}==(\S+)", text, re.MULTILINE)
    return str(version)


STORY: Final = "Once upon a time there was a clerk. It answered."
CHUNKS: Final = ["Once upon a time ", "there was a clerk. ", "It answered."]
NO_PAPER: Final = "The printer is out of paper."
RECEIVED: Final = "text - -; raw application/octet-stream -; 3 bytes"
NO_CANCEL: Final = "it has no function that cancels a task"
STREAM_ENDS: Final = "the stream ends before the work has ended: set `STREAM_SECONDS`"
NO_IDS: Final = "it sends neither a context nor a task: each message starts a task in a context of its own"
TEXT_ONLY: Final = "it passes text only"
SIGN_IN: Final = (
    '{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"Sign in to call this agent.","data":'
    '[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"UNAUTHENTICATED","domain":"a2a-protocol.org"}]}}'
)


def unauthorized(error: str) -> str:
    """What clients of the Python SDK say of a wrong key."""
    return f"{error}HTTP Error 401: Client error '401 Unauthorized' for url '/clerk'"


ENDS_UNSEEN: Final = "it shows questions only, neither the result nor the end of a task"


CALLERS: Final = {
    "adk": Caller(
        "Google ADK, `RemoteA2aAgent`",
        "google-adk",
        "1.0",
        {
            "answer": Seen(["The door is open."]),
            "message": Seen(["Good morning."]),
            "artifacts": Seen(
                ["It answered.", "The Clerk"],
                "the last chunk of an artifact counts as the whole: set `whole_last_chunk`",
            ),
            "artifact and message": Seen(["All doors are open.", "I have written a report."]),
            "stream": Seen("first second"),
            "question": Seen([{"input_required": "Which colour?"}]),
            "answered": Seen(["You chose blue."]),
            "context": Seen(["It was door."]),
            "failure": Seen(
                [NO_PAPER, None, "TASK_STATE_FAILED"],
                'the reason comes like an answer, without an error: see `custom_metadata["a2a:response"]["status"]`',
            ),
            "refused": Seen([unauthorized("A2A request failed: ")]),
            "file in": Seen([RECEIVED]),
            "file out": Seen(["image/png"]),
            "data out": Seen(['<a2a_datapart_json>{"doors": 3.0}</a2a_datapart_json>']),
            "long work": Seen(
                [None, "A2A response stream ended before task TASK reached a terminal state."],
                f"{STREAM_ENDS}. The last event has an error, which names the task",
            ),
        },
        without={"cancel": NO_CANCEL},
        more={"whole artifacts": [STORY, "The Clerk"], "work within a stream": ["It took a while."]},
    ),
    "adk-tool": Caller(
        "Google ADK, `AgentTool`",
        "google-adk",
        "1.0",
        {
            "answer": Seen("The door is open."),
            "message": Seen("Good morning."),
            "artifacts": Seen("The Clerk", "the last chunk of the last artifact only: set `whole_last_chunk`"),
            "artifact and message": Seen("I have written a report.", "the message replaces the artifacts"),
            "question": Seen(
                "Error: agent 'clerk' stopped waiting on unresolved long-running tool call(s) "
                "(pending call ids: ['ID']), which AgentTool cannot resume.",
                "the model gets an error in the place of the question: use the agent as one of `sub_agents`",
            ),
            "context": Seen("I remember nothing.", "each call of the tool is a context of its own"),
            "failure": Seen(
                NO_PAPER, "the reason looks like a normal answer: the client cannot see that the task failed"
            ),
            "refused": Seen(unauthorized("A2A request failed: ")),
            "file out": Seen("", TEXT_ONLY),
            "data out": Seen("", TEXT_ONLY),
            "long work": Seen(
                "A2A response stream ended before task ID reached a terminal state.",
                f"{STREAM_ENDS}. The result is an error, which names the task",
            ),
        },
        without={
            "stream": "a tool returns its result at the end",
            "answered": "the model gets an error in the place of the question: use the agent as one of `sub_agents`",
            "cancel": NO_CANCEL,
            "file in": TEXT_ONLY,
        },
        more={"work within a stream": "It took a while."},
        environment="adk",
    ),
    "strands": Caller(
        "Strands, `A2AAgent`",
        "strands-agents",
        "0.3",
        {
            "answer": Seen(["The door is open.", "end_turn", "completed"]),
            "message": Seen(["Good morning.", "end_turn", None]),
            "artifacts": Seen(
                [*CHUNKS, "The Clerk", "end_turn", "completed"],
                "each chunk is a block, and `str(result)` breaks the line after each: set `whole_last_chunk`",
            ),
            "artifact and message": Seen(
                ["I have written a report.", "end_turn", "completed"], "the message replaces the artifacts"
            ),
            "stream": Seen("first second"),
            "question": Seen(["Which colour?", "interrupt", "input-required"]),
            "answered": Seen(["What shall I do?", "interrupt", "input-required"], NO_IDS),
            "context": Seen(["I remember nothing.", "end_turn", "completed"], NO_IDS),
            "failure": Seen(
                [NO_PAPER, "end_turn", "failed"],
                'the reason comes like an answer, without an error: see `state["a2a_task_state"]`',
            ),
            "refused": Seen(unauthorized("A2AClientHTTPError: ")),
            "file in": Seen(["text - -", "end_turn", "completed"], TEXT_ONLY),
            "file out": Seen(["end_turn", "completed"], f"{TEXT_ONLY}; the events of `stream_async` have the rest"),
            "data out": Seen(["end_turn", "completed"], f"{TEXT_ONLY}; the events of `stream_async` have the rest"),
            "long work": Seen(
                ["end_turn", None], f"{STREAM_ENDS}. The result is empty, and its `state` has no `a2a_task_state`"
            ),
        },
        without={"cancel": NO_CANCEL},
        more={
            "whole artifacts": [STORY, "The Clerk", "end_turn", "completed"],
            "work within a stream": ["It took a while.", "end_turn", "completed"],
        },
    ),
    "agent-framework": Caller(
        "Microsoft Agent Framework, `A2AAgent`",
        "agent-framework-a2a",
        "1.0",
        {
            "answer": Seen(["The door is open.", 3]),
            "message": Seen(["Good morning.", None]),
            "artifacts": Seen([STORY, "The Clerk", 3]),
            "artifact and message": Seen(["All doors are open.", "I have written a report.", 3]),
            "stream": Seen("first second"),
            "question": Seen([True, "Which colour?"]),
            "answered": Seen(["You chose blue.", 3]),
            "context": Seen(["It was door.", 3]),
            "failure": Seen(
                [NO_PAPER, 4],
                'the reason comes like an answer, without an error: see `session.service_session_id["task_state"]`',
            ),
            "refused": Seen(unauthorized("A2AClientError: ")),
            "cancel": Seen(5),
            "file in": Seen([RECEIVED, 3]),
            "file out": Seen([["data", "image/png", "data:image/png;base64,YSBwaWN0dXJl"]]),
            "data out": Seen([["text", None, '{\n  "doors": 3.0\n}']]),
            "long work": Seen(
                [2],
                f"{STREAM_ENDS}. The response is empty. Or use `background=True` and `poll_task`, which return "
                "the artifacts but not the agent's message",
            ),
        },
        more={
            "answer without a stream": ["answer", 3],
            "artifacts without a stream": [STORY, "The Clerk", 3],
            "failure without a stream": ["fail", 4],
            "whole artifacts": [STORY, "The Clerk", 3],
            "work within a stream": ["It took a while.", 3],
            "long work in the background": ["slow"],
            "as a tool": ["The door is open."],
        },
    ),
    "crewai": Caller(
        "CrewAI, `A2AClientConfig`",
        "crewai",
        "0.3",
        {
            "answer": Seen("The door is open."),
            "message": Seen("Good morning."),
            "artifacts": Seen(
                "I am writing. Once upon a time  there was a clerk.  It answered. The Clerk",
                "progress, chunks and artifacts become one text with spaces between: use `PollingConfig`, and an "
                "agent that reports no progress and does not set `whole_last_chunk`",
            ),
            "artifact and message": Seen("All doors are open. I have written a report."),
            "stream": Seen("first  second"),
            "question": Seen("the model is told: Which colour?"),
            "answered": Seen("You chose blue."),
            "context": Seen("the model is told: It was door."),
            "failure": Seen(f"the model is told: {NO_PAPER}"),
            "refused": Seen("the model is told: HTTP Error 401"),
            "file out": Seen(
                "ValueError: No valid task outputs available to create crew output.",
                f"{TEXT_ONLY}; an answer without text is an error of the crew",
            ),
            "data out": Seen(
                "ValueError: No valid task outputs available to create crew output.",
                f"{TEXT_ONLY}; an answer without text is an error of the crew",
            ),
            "long work": Seen(
                "ValueError: No valid task outputs available to create crew output.",
                f"{STREAM_ENDS}. The crew fails. Or use `PollingConfig`",
            ),
        },
        without={"cancel": NO_CANCEL, "file in": TEXT_ONLY},
        more={
            "artifacts by polling": f"I am writing. {STORY} The Clerk",
            "whole artifacts": f"I am writing. Once upon a time  there was a clerk.  {STORY} The Clerk",
            "work within a stream": "It took a while.",
            "long work by polling": "It took a while.",
        },
    ),
    "beeai": Caller(
        "BeeAI, `A2AAgent`",
        "beeai-framework",
        "0.3",
        {
            "answer": Seen(["The door is open.", "completed"]),
            "message": Seen(["Good morning.", None]),
            "artifacts": Seen(
                ["The Clerk", "completed"], "the last artifact only; `output.event[0]` is the whole task"
            ),
            "artifact and message": Seen(
                ["All doors are open.", "completed"],
                "the artifact replaces the message; `output.event[0]` is the whole task",
            ),
            "stream": Seen("first second"),
            "question": Seen(["Which colour?", "input-required"]),
            "answered": Seen(["You chose blue.", "completed"]),
            "context": Seen(["It was door.", "completed"]),
            "failure": Seen(
                [NO_PAPER, "failed"], "the reason comes like an answer, without an error: see `output.event[0].status`"
            ),
            "refused": Seen("AgentError: Client error '401 Unauthorized' for url '/clerk'"),
            "file in": Seen([RECEIVED, "completed"]),
            "file out": Seen(
                [
                    {
                        "type": "file",
                        "file": {"file_data": "YSBwaWN0dXJl", "format": "image/png", "filename": None},
                    }
                ]
            ),
            "data out": Seen([{"type": "text", "text": '{\n  "doors": 3\n}'}]),
            "long work": Seen(
                ["No response from agent.", "working"],
                f"{STREAM_ENDS}. The text is `No response from agent.`, the task in `output.event[0]` is working",
            ),
        },
        without={"cancel": NO_CANCEL},
        more={"whole artifacts": ["The Clerk", "completed"], "work within a stream": ["It took a while.", "completed"]},
    ),
    "litellm": Caller(
        "LiteLLM, `asend_message`",
        "litellm",
        "1.0",
        {
            "answer": Seen(["The door is open.", "completed"]),
            "message": Seen(["Good morning.", None]),
            "artifacts": Seen([STORY, "The Clerk", "completed"]),
            "artifact and message": Seen(["All doors are open.", "I have written a report.", "completed"]),
            "stream": Seen("first second"),
            "question": Seen(["Which colour?", "input-required"]),
            "answered": Seen(["You chose blue.", "completed"]),
            "context": Seen(["It was door.", "completed"]),
            "failure": Seen([NO_PAPER, "failed"]),
            "refused": Seen(unauthorized("A2AError: litellm.A2AError: ")),
            "cancel": Seen(5),
            "file in": Seen([RECEIVED, "completed"]),
            "file out": Seen([{"kind": "file", "file": {"bytes": "YSBwaWN0dXJl", "mimeType": "image/png"}}]),
            "data out": Seen([{"kind": "data", "data": {"doors": 3.0}}]),
            "long work": Seen(
                ["working", "It took a while."],
                "the request is answered before the work ends: the client's `get_task` reads the rest",
            ),
        },
    ),
    "litellm-chat": Caller(
        "LiteLLM, `acompletion`",
        "litellm",
        "0.3",
        {
            "answer": Seen(["The door is open.", "stop"]),
            "message": Seen(["Good morning.", "stop"]),
            "artifacts": Seen([STORY, "stop"], "the first artifact only"),
            "artifact and message": Seen(["I have written a report.", "stop"], "the message replaces the artifacts"),
            "stream": Seen("first second"),
            "question": Seen(["Which colour?", "stop"]),
            "answered": Seen(["Which colour?", "stop"], NO_IDS),
            "context": Seen(
                ["I remember nothing.", "stop"], f"{NO_IDS}; its text has the conversation, which a model can read"
            ),
            "failure": Seen(
                [NO_PAPER, "stop"], "the reason looks like a normal answer: the client cannot see that the task failed"
            ),
            "refused": Seen([f"AuthenticationError: litellm.AuthenticationError: A2aException - {SIGN_IN}"]),
            "file out": Seen(["", "stop"], TEXT_ONLY),
            "data out": Seen(["", "stop"], TEXT_ONLY),
            "long work": Seen(["", "stop"], "the request is answered before the work ends, with an empty text"),
        },
        without={"cancel": NO_CANCEL, "file in": TEXT_ONLY},
        environment="litellm",
    ),
    "mcp": Caller(
        "MCP, by a bridge",
        "a2a-mcp-connector",
        "1.0",
        {
            "answer": Seen(["What shall I do?", "The session is over."], ENDS_UNSEEN),
            "message": Seen(["The session is over."], ENDS_UNSEEN),
            "artifacts": Seen(["What shall I do?", "The session is over."], ENDS_UNSEEN),
            "question": Seen(["What shall I do?", "Which colour?"]),
            "answered": Seen(
                ["Which colour?", "The session is over."],
                "the answer arrives; what the agent says then is not shown, unless it is a question",
            ),
            "failure": Seen(["What shall I do?", "The session is over."], ENDS_UNSEEN),
            "refused": Seen([unauthorized("Error: A2AClientError: ")]),
            "long work": Seen(
                ["What shall I do?", "The session is over."],
                "the session is over when the request is answered, before the work ends",
            ),
        },
        without={
            "artifact and message": ENDS_UNSEEN,
            "stream": "it does not stream",
            "context": "a session has one task only",
            "cancel": NO_CANCEL,
            "file in": TEXT_ONLY,
            "file out": TEXT_ONLY,
            "data out": TEXT_ONLY,
        },
    ),
}


def program_of(name: str) -> Path:
    """The program of a client."""
    return HERE / f"from_{name.replace('-', '_')}.py"


def table() -> str:
    """The table of docs/call-from.md, and the reasons below it."""
    reasons: list[str] = []
    lines = [f"| client | package | A2A | {' | '.join(FLOWS.values())} |", f"|---|---|---|{':---:|' * len(FLOWS)}"]
    for name, caller in CALLERS.items():
        version = locked(caller.package, caller.environment or name)
        cells = [_cell(caller.loss(flow), reasons) for flow in FLOWS]
        lines.append(f"| {caller.title} | {caller.package} {version} | {caller.protocol} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", *(f"{number}. {reason}" for number, reason in enumerate(reasons, 1))])


def _cell(loss: str, reasons: list[str]) -> str:
    if not loss:
        return "✓"
    if loss not in reasons:
        reasons.append(loss)
    return f"({reasons.index(loss) + 1})"
