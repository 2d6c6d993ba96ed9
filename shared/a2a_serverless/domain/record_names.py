"""The names under which the engine stores the records of a task: results of steps, waits, calls.

No step's name begins with @, so the other records do. The path of a step or scope is the names of the scopes around it
and its own, joined by ``SEPARATOR``. ``CallName`` names the records of a call to another agent.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import quote, unquote

if TYPE_CHECKING:
    from collections.abc import Mapping

SEPARATOR: Final = " > "
LIMIT: Final = 256
CUT: Final = 100
_OUTER: Final = 16
_CUT: Final = re.compile(rf".{{{CUT}}}:([0-9a-f]{{{_OUTER}}}):[0-9a-f]{{64}}", re.DOTALL)
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
_ACTS: Final = frozenset({"ask", "sleep", "timeout", "remind", "now", "callback", "received", "retry"}) | {
    f"{place}.{method}" for place in ("store", "conversation") for method in ("get", "list", "put", "delete")
}
_OPTIONAL: Final = (CARD, FAILED, GOT, LEFT, OUTSIDE, OVER, RAW, SIGNED, SPENT, TAGS, UNFINISHED, f"{WAIT}{CALL}")


def join_path(path: str, name: str) -> str:
    """The path of ``name`` in the scope ``path``; of a long one the beginning, and the digests of scope and path."""
    joined = f"{path}{SEPARATOR}{name}" if path else name
    if len(joined) <= LIMIT:
        return joined
    return f"{joined[:CUT]}:{_digest(path)[:_OUTER]}:{_digest(joined)}"


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def fit_name(text: str) -> str:
    """A step's name made of any text, such as a tool's name: without ``SEPARATOR``, and with a digest if it is long."""
    name = text.encode(errors="replace").decode().replace(SEPARATOR, ">").lstrip("@") or "unnamed"
    return name if len(name) <= LIMIT else f"{name[:CUT]}:{_digest(name)}"


def raised_name(path: str, attempt: int | str) -> str:
    """The name of the error of the step's ``attempt``, a number from 1 or another id without a slash."""
    return f"{RAISED}{path}/{attempt}"


def unfinished_name(path: str, times: int) -> str:
    """The name of the note that a time limit has interrupted the step for the ``times``-th time."""
    return f"{UNFINISHED}{path}/{times}"


def is_try(name: str) -> bool:
    """Whether this is the name of a step's result, or of an error that a step has raised."""
    return name.startswith(RAISED) or not name.startswith("@")


def is_optional(name: str) -> bool:
    """Whether a later run need not come to this record: it tells of an act, or was read for a step that has ended."""
    call = call_of(name)
    return name.startswith(_OPTIONAL) or (call is not None and name != call.opened)


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


def act_path(name: str) -> str:
    """The path of the act that a record belongs to."""
    if call := call_of(name):
        return call.path
    if name.startswith((RAISED, UNFINISHED)):
        return name.partition("/")[2].rpartition("/")[0]
    return act_path(name.partition("/")[2]) if name.startswith("@") else name


def ended_steps(moments: Mapping[str, int]) -> dict[str, int]:
    """The paths of the steps of which a record says that their code does not run again; the last moment of each.

    ``moments`` are those of all records (``StepResult.moment``), by name.
    """
    ended = dict[str, int]()
    for name, moment in moments.items():
        if not name.startswith("@") or name.startswith((RAISED, RAW)):
            path = act_path(name)
            ended[path] = max(moment, ended.get(path, 0))
    return ended


def names_inside(moments: Mapping[str, int], ended: Mapping[str, int]) -> set[str]:
    """The names of the records that lie in one of the steps that ended after them: no later run comes to them."""
    paths = {name: act_path(name) for name in moments}
    by_digest = {_digest(path)[:_OUTER]: path for path in ended} if any(map(_CUT.match, paths.values())) else {}

    def last_end(path: str) -> int:
        """The last moment at which a step around the path ended."""
        parts = path.split(SEPARATOR)
        around = [SEPARATOR.join(parts[:number]) for number in range(1, len(parts))]
        last = max((ended.get(one, 0) for one in around), default=0)
        cut = _CUT.match(path)
        outer = by_digest.get(cut[1]) if cut else None
        return last if outer is None else max(last, ended[outer], last_end(outer))

    return {name for name, path in paths.items() if moments[name] < last_end(path)}


def place_name(act: str, name: str, number: int) -> str:
    """The name of the ``number``-th use of a ``name`` by acts of a kind. Another name may end with any number."""
    return f"{act}#{number}:{name}" if number > 1 else f"{act}:{name}"


def act_of(place: str) -> tuple[str, str]:
    """The kind of act of a ``place_name``, and the name with its number as people know it; ("", itself) for others."""
    kind, _, name = place.partition(":")
    act, is_numbered, number = kind.partition("#")
    return (act, f"{name}#{number}" if is_numbered else name) if act in _ACTS else ("", place)
