"""The names under which the engine stores the records of a task: results of steps, waits, calls.

No step's name begins with @, so the other records do. The path of a step or scope is the names of the scopes around it
and its own, joined by ``SEPARATOR``. ``CallName`` names the records of a call to another agent.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Final, NamedTuple
from urllib.parse import quote, unquote

SEPARATOR: Final = " > "
LIMIT: Final = 256
RAISED: Final = "@raised/"
FAILED: Final = "@failed/"
RAW: Final = "@raw/"
UNFINISHED: Final = "@running/"
OUTSIDE: Final = "@outside/"
USAGE: Final = "@usage/"
SPENT: Final = "@spent/"
WAIT: Final = "@wait/"
TIMER: Final = "@timer/"
OVER: Final = "@over/"
NOW: Final = "@now/"
LEFT: Final = "@left/"
VALUE: Final = "@value/"
EVENT: Final = "@event/"
GOT: Final = "@got/"
SIGNED: Final = "@signed/"
CALL: Final = "@call/"
CARD: Final = "@card/"
TAGS: Final = "@agents"


def join_path(path: str, name: str) -> str:
    """The path of ``name`` in the scope ``path``; of a long one the beginning, and its digest."""
    joined = f"{path}{SEPARATOR}{name}" if path else name
    return joined if len(joined) <= LIMIT else f"{joined[:100]}:{sha256(joined.encode()).hexdigest()}"


def fit_name(text: str) -> str:
    """A step's name made of any text, such as a tool's name: without ``SEPARATOR``, and with a digest if it is long."""
    name = text.encode(errors="replace").decode().replace(SEPARATOR, ">").lstrip("@") or "unnamed"
    return name if len(name) <= LIMIT else f"{name[:100]}:{sha256(name.encode()).hexdigest()}"


def raised_name(path: str, attempt: int | str) -> str:
    """The name of the error of the step's ``attempt``, a number from 1 or another id without a slash."""
    return f"{RAISED}{path}/{attempt}"


def unfinished_name(path: str, times: int) -> str:
    """The name of the note that a time limit has interrupted the step for the ``times``-th time."""
    return f"{UNFINISHED}{path}/{times}"


def is_try(name: str) -> bool:
    """Whether this is the name of a step's result, or of an error that a step has raised."""
    return name.startswith(RAISED) or not name.startswith("@")


def wait_name(path: str) -> str:
    """The name of the ending of a wait."""
    return f"{WAIT}{path}"


class CallName(NamedTuple):
    """The name of a call's first record, and those of its other records (``domain/call_records.py``).

    ``opened`` has an ``OpenedCall``. ``sent`` has a ``SentCall``, also ``told``, if a callback named the task first.
    ``done`` has the agent's answer, ``failed`` the reason why there is none, ``canceled`` that the caller wants none.
    A canceled call has ``done``, without an answer, once the agent has canceled its task.
    """

    opened: str

    @property
    def sent(self) -> str:
        """The name of the record of the task that the agent made."""
        return f"{self.opened}/sent"

    @property
    def told(self) -> str:
        """The name of the record of the task that a callback named."""
        return f"{self.opened}/told"

    @property
    def done(self) -> str:
        """The name of the agent's stored answer."""
        return f"{self.opened}/done"

    @property
    def failed(self) -> str:
        """The name of the stored reason of a call without an answer."""
        return f"{self.opened}/failed"

    @property
    def canceled(self) -> str:
        """The name of the record that the caller's code has cancelled the call."""
        return f"{self.opened}/canceled"

    def question(self, number: int) -> str:
        """The name of the record of the agent's question of this number, from 1: an ``AskedQuestion``."""
        return f"{self.opened}/question/{number}"

    def answer(self, number: int) -> str:
        """The name of the record that this question was answered: an ``AnsweredQuestion``."""
        return f"{self.opened}/answer/{number}"

    def answer_id(self, number: int) -> str:
        """The name of the message id under which the question is answered."""
        return f"{self.answer(number)}/id"

    def left(self, number: int) -> str:
        """The name of the record that the agent's task has gone on after the answer to this question."""
        return f"{self.answer(number)}/left"

    @property
    def path(self) -> str:
        """The path of the call."""
        return unquote(self.opened.removeprefix(CALL))


def call_name(path: str) -> CallName:
    """The name of the call of this path."""
    return CallName(CALL + quote(path, safe=" :#>@"))


def call_of(record: str) -> CallName | None:
    """The name of the call to which the record of this name belongs; None for any other record."""
    return CallName(CALL + record.removeprefix(CALL).partition("/")[0]) if record.startswith(CALL) else None


def path_of(name: str) -> str:
    """The path of the step, call or wait that a stored ending belongs to."""
    if name.startswith(RAISED):
        return name.removeprefix(RAISED).rpartition("/")[0]
    if call := call_of(name):
        return call.path
    return name.removeprefix(WAIT)
