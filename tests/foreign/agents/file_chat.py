"""Answers about a file: after samples/python/agents/llama_index_file_chat of a2aproject/a2a-samples at 6603ba3f2c31.

As there: a workflow that routes a message, has a hosted service parse its file, numbers the lines for citations, keeps
the conversation in its context, and writes what it does to its stream. Changed: of a file without a text it says what
it is about, and asks what the user wants to know; the answer comes as a stream of text whose citations are numbers of
lines, in place of a schema; the parser is a service whose address is a variable. Rebuilt, because no package carries
the sample, and it calls ``ctx.get`` and ``ctx.set``, which workflows 2.26 does not have.
"""

import os
import re

import httpx
from llama_index.core.llms import ChatMessage
from llama_index.llms.google_genai import GoogleGenAI
from workflows import Context, Workflow, step
from workflows.events import Event, HumanResponseEvent, InputRequiredEvent, StartEvent, StopEvent

PROMPT = "You answer questions about a document. Cite its lines by their numbers, such as [3].\n{document}"
LINE = re.compile(r"<line idx='(\d+)'>(.*)</line>")


class LogEvent(Event):
    msg: str


class PieceEvent(Event):
    text: str


class InputEvent(StartEvent):
    msg: str
    attachment: str = ""
    file_name: str = ""


class ParseEvent(Event):
    msg: str
    attachment: str
    file_name: str


class ChatEvent(Event):
    msg: str


class ChatResponseEvent(StopEvent):
    citations: dict[str, str]


class ParseAndChat(Workflow):
    def __init__(self) -> None:
        super().__init__(timeout=None)
        # With its sizes given, the client asks no server for them.
        self._llm = GoogleGenAI("gemini-2.5-flash", max_tokens=8192, context_window=1_000_000)

    @step
    async def route(self, event: InputEvent) -> ParseEvent | ChatEvent:
        if event.attachment:
            return ParseEvent(msg=event.msg, attachment=event.attachment, file_name=event.file_name)
        return ChatEvent(msg=event.msg)

    @step
    async def parse(self, ctx: Context, event: ParseEvent) -> ChatEvent:
        ctx.write_event_to_stream(LogEvent(msg="Parsing the document."))
        async with httpx.AsyncClient() as client:
            file = {"name": event.file_name, "content": event.attachment}
            answer = await client.post(f"{os.environ['PARSER_URL']}/parse", json=file)
        lines = answer.raise_for_status().json()["markdown"].split("\n")
        numbered = [f"<line idx='{number}'>{line}</line>" for number, line in enumerate(lines)]
        await ctx.store.set("document", "\n".join(numbered))
        return ChatEvent(msg=event.msg)

    @step
    async def hear(self, event: HumanResponseEvent) -> ChatEvent:
        return ChatEvent(msg=event.response)

    @step
    async def chat(self, ctx: Context, event: ChatEvent) -> ChatResponseEvent | InputRequiredEvent:
        asked = ChatMessage(role="user", content=event.msg or "What is this document about?")
        messages = [*await ctx.store.get("messages", default=[]), asked]
        document = await ctx.store.get("document", default="")
        ctx.write_event_to_stream(LogEvent(msg=f"Chatting with {len(messages)} messages."))
        system = [ChatMessage(role="system", content=PROMPT.format(document=document))] if document else []
        text = ""
        async for piece in await self._llm.astream_chat([*system, *messages]):
            text += piece.delta or ""
            if event.msg:
                ctx.write_event_to_stream(PieceEvent(text=piece.delta or ""))
        await ctx.store.set("messages", [*messages, ChatMessage(role="assistant", content=text)])
        if not event.msg:
            return InputRequiredEvent(prefix=text)
        cited = set(re.findall(r"\[(\d+)\]", text))
        return ChatResponseEvent(citations={number: line for number, line in LINE.findall(document) if number in cited})
