from base64 import b64encode
from typing import Any

from workflows import Context
from workflows.events import HumanResponseEvent, InputRequiredEvent

from a2a_serverless import Step, TaskContext, agent, current_task
from tests.foreign.agents.file_chat import InputEvent, LogEvent, ParseAndChat, PieceEvent


async def play(state: Any, message: dict[str, str]) -> dict[str, Any]:
    workflow, task = ParseAndChat(), current_task()
    ctx = Context.from_dict(workflow, state) if state else None
    handler = workflow.run(ctx=ctx, start_event=None if "answer" in message else InputEvent(**message))
    if "answer" in message:
        handler.ctx.send_event(HumanResponseEvent(response=message["answer"]))
    async for event in handler.stream_events():
        match event:
            case LogEvent():
                await task.report_progress(event.msg)
            case PieceEvent():
                await task.emit("answer", event.text, append=True)
            case InputRequiredEvent():
                stored = handler.ctx.to_dict()
                await handler.cancel_run()
                return {"state": stored, "question": event.prefix}
    await task.emit("answer", "", append=True, last=True)
    return {"state": handler.ctx.to_dict(), "citations": (await handler).citations}


@agent(id="file_chat", name="File chat", description="Answers questions about a file.", skills=[])
async def file_chat(task: TaskContext) -> dict[str, Any]:
    before = await task.conversation.get("file_chat")
    message = {"msg": "".join(part.text or "" for part in task.message.parts if not part.filename)}
    for part in task.message.parts:
        if part.filename:  # a client sends a file of text as text or as bytes
            attachment = part.raw or b64encode((part.text or "").encode()).decode()
            message |= {"attachment": attachment, "file_name": part.filename}
    played = await task.step(Step("play", repeat=True), play, before.value if before else {}, message)
    while "question" in played:
        answer = await task.ask(played["question"])
        played = await task.step(Step("play", repeat=True), play, played["state"], {"answer": answer.text()})
    await task.conversation.put("file_chat", played["state"])
    return played["citations"]
