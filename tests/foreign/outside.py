"""What stands outside of an agent's process: its models and the services that it calls. Here effects are counted.

A process that dies cannot count. So the servers note each request, with the number of results that the task has stored
by then. Three things are wrong: a request that was answered and whose result was stored comes again; a conversation
with a model goes back to a turn before one that was asked for already; a request that comes again differs.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from tests.foreign.model_apis import ToolCall, calls_in
from tests.foreign.model_server import CUT

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.foreign.model_server import ModelRequest, Said, Say

Fault = Literal["repeated ids", "parallel calls", "an empty answer", "status 429", "a cut stream"]
FAULTS: Final[tuple[Fault, ...]] = (
    "repeated ids",
    "parallel calls",
    "an empty answer",
    "status 429",
    "a cut stream",
)


@dataclass(frozen=True)
class _Seen:
    content: Any
    stored: int


@dataclass
class Outside:
    """The servers of one conversation of a client. ``stored`` returns the names of what its task has stored.

    With ``by_turn`` only whole turns are stored, in which everything may happen again.
    """

    say: Say
    serve: Callable[[str], Any]
    by_turn: bool = False
    stored: Callable[[], Sequence[str]] = tuple
    fault: Fault | None = None
    effects: Counter[str] = field(default_factory=Counter)
    requests: list[ModelRequest] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    _seen: dict[str, _Seen] = field(default_factory=dict)
    _latest: dict[str, int] = field(default_factory=dict)

    def answer(self, request: ModelRequest) -> Said | int:
        """What the model says."""
        turn = sum(one.role == "model" for one in request.turns)
        first = next((one.text for one in request.turns if one.role == "user"), "")
        conversation = f"{request.system[:60]!r} {first!r}"
        if turn < self._latest.get(conversation, 0) and not self.by_turn:
            self.wrong.append(f"turn {turn} of {conversation} comes after turn {self._latest[conversation]}")
        self._latest[conversation] = max(turn, self._latest.get(conversation, 0))
        self._note(f"model {turn} of {conversation}", request.turns)
        self.requests.append(request)
        said = self.say(request)
        return said if isinstance(said, int) else self._spoil(said)

    def serve_path(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        """The answer of a service to a request of a tool."""
        self._note(f"{method} {path} {body or ''}".strip(), None)
        return 200, self.serve(path)

    def count(self, effect: str) -> int:
        """How often a request came that begins so."""
        return sum(number for name, number in self.effects.items() if effect and name.startswith(effect))

    def _note(self, effect: str, content: Any) -> None:
        stored, before = len(self.stored()), self._seen.get(effect)
        self.effects[effect] += 1
        if before and before.stored != stored:
            self.wrong.append(f"{effect} was stored and comes again")
        if before and before.content != content and not self.by_turn:
            self.wrong.append(f"{effect} comes again with another content")
        self._seen[effect] = _Seen(content, stored)

    def _spoil(self, said: Said) -> Said | int:
        """The answer, as the fault makes it. What breaks is the first answer only."""
        match self.fault:
            case "repeated ids":
                return [replace(piece, id="call_1") if isinstance(piece, ToolCall) else piece for piece in said]
            case "parallel calls":
                return [*said, *calls_in(said)]
            case "an empty answer" if len(self.requests) == 1:
                return []
            case "status 429" if len(self.requests) == 1:
                return 429
            case "a cut stream" if len(self.requests) == 1:
                return [*said, CUT]
        return said
