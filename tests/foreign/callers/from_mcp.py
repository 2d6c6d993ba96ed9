"""Calls the clerk from a client of MCP, over the bridge a2a-mcp-connector, and prints what comes back."""

import asyncio
import json
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

BRIDGE = StdioServerParameters(command=sys.executable, args=["-m", "a2a_mcp_connector.server"])


async def main(url: str, slow_url: str, key: str, seen: str) -> None:
    async with stdio_client(BRIDGE) as (read, write), ClientSession(read, write) as session:
        await session.initialize()

        async def call(tool: str, **arguments: str) -> str:
            text = (await session.call_tool(tool, arguments)).content[0].text
            return text.partition("\n")[0].replace(url, "")

        async def converse(agent: str, *texts: str, url: str = url, key: str = key) -> list[str]:
            """What comes after each text."""
            card = f"{url}/{agent}/.well-known/agent-card.json"
            turns = [await call("a2a_connect", agent_card_url=card, bearer=key), await call("a2a_wait_turn")]
            for text in texts:
                turns += [await call("a2a_send", message=text), await call("a2a_wait_turn")]
            await call("a2a_leave")
            return turns[1::2]

        print(
            json.dumps(
                {
                    "answer": await converse("clerk", "answer"),
                    "message": await converse("greeter"),
                    "artifacts": await converse("clerk", "write"),
                    "question": await converse("clerk", "ask"),
                    "answered": await converse("clerk", "blue"),  # a session takes up the open question
                    "failure": await converse("clerk", "fail"),
                    "refused": await converse("clerk", key="wrong"),
                    "long work": await converse("clerk", "slow", url=slow_url),
                }
            )
        )


asyncio.run(main(*sys.argv[1:]))
