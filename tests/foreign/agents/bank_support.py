"""Supports the customers of a bank: after examples/pydantic_ai_examples/bank_support.py of pydantic/pydantic-ai at
4fda38988f29.

As there: dependencies with a database, an answer in a schema, instructions that read the database, and a tool. Changed:
the database is a file that a variable names, in place of one in memory. Left out: the calls at the end.
"""

import os
import sqlite3
from dataclasses import dataclass

from pydantic import BaseModel
from pydantic_ai import Agent, RunContext


@dataclass
class DatabaseConn:
    """A connection to the bank's database."""

    sqlite_conn: sqlite3.Connection

    async def customer_name(self, *, id: int) -> str | None:
        """The name of a customer."""
        row = self.sqlite_conn.execute("SELECT name FROM customers WHERE id=?", (id,)).fetchone()
        return row[0] if row else None

    async def customer_balance(self, *, id: int) -> float:
        """The balance of a customer."""
        row = self.sqlite_conn.execute("SELECT balance FROM customers WHERE id=?", (id,)).fetchone()
        if not row:
            raise ValueError("there is no such customer")
        return row[0]


@dataclass
class SupportDependencies:
    """What a run needs."""

    customer_id: int
    db: DatabaseConn


class SupportOutput(BaseModel):
    """The answer."""

    support_advice: str
    """What the customer reads."""
    block_card: bool
    """Whether the card is blocked."""
    risk: int
    """How risky the request is."""


support_agent = Agent(
    "openai:gpt-5.2",
    deps_type=SupportDependencies,
    output_type=SupportOutput,
    instructions="You support the customers of our bank, by name, and judge the risk of what they ask.",
)


@support_agent.instructions
async def add_customer_name(ctx: RunContext[SupportDependencies]) -> str:
    """The customer's name, for the model."""
    return f"The customer's name is {await ctx.deps.db.customer_name(id=ctx.deps.customer_id)!r}"


@support_agent.tool
async def customer_balance(ctx: RunContext[SupportDependencies]) -> str:
    """Returns the customer's balance."""
    return f"${await ctx.deps.db.customer_balance(id=ctx.deps.customer_id):.2f}"


def connect() -> DatabaseConn:
    """A connection to the database, which is made if it is not there."""
    connection = sqlite3.connect(os.environ.get("BANK_DB", "bank.db"))
    connection.execute("CREATE TABLE IF NOT EXISTS customers(id PRIMARY KEY, name, balance)")
    connection.execute("INSERT OR IGNORE INTO customers VALUES (123, 'John', 123.45)")
    connection.commit()
    return DatabaseConn(connection)
