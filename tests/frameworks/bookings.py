"""The context of a customer service agent: tools change it, and instructions read it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel
from typing_extensions import TypedDict

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass
class Passenger:
    """Somebody who flies."""

    name: str
    seat: str | None = None


@dataclass
class DataclassBooking:
    """A booking as a dataclass."""

    flight: str | None = "F1"
    passengers: list[Passenger] = field(default_factory=list)
    notes: dict[str, Any] = field(default_factory=lambda: {"wish": "any"})
    asked: int = 0


class ModelBooking(BaseModel):
    """A booking as a model."""

    flight: str | None = "F1"
    passengers: list[Passenger] = []
    notes: dict[str, Any] = {"wish": "any"}
    asked: int = 0


class DictBooking(TypedDict):
    """A booking as a dict."""

    flight: str | None
    passengers: list[Passenger]
    notes: dict[str, Any]
    asked: int


def make_dict() -> DictBooking:
    """A booking as a dict."""
    return {"flight": "F1", "passengers": [], "notes": {"wish": "any"}, "asked": 0}


class _Attributes:
    """The members of a dict as attributes."""

    def __init__(self, members: dict[str, Any]) -> None:
        self.__dict__ = members


def _booking(context: Any) -> Any:
    return _Attributes(context) if isinstance(context, dict) else context


def find(context: Any, passenger: type = Passenger) -> str:
    """Finds the passengers."""
    booking = _booking(context)
    booking.passengers += [passenger(name="Ann", seat=None), passenger(name="Bob", seat="9c")]
    booking.notes["found"] = {"at": [1, None]}
    del booking.notes["wish"]
    return "found"


def choose(context: Any, place: int, seat: str | None) -> str:
    """Chooses a passenger's seat."""
    _booking(_booking(context).passengers[place]).seat = seat
    return "chosen"


def rebook(context: Any) -> str:
    """Changes the flight."""
    _booking(context).flight = None
    return "rebooked"


def pay(context: Any) -> str:
    """Pays for the seats."""
    booking = _booking(context)
    booking.asked += 1
    booking.notes["found"]["at"].append(booking.asked)
    return f"paid for {[_booking(passenger).seat for passenger in booking.passengers]}"


def text_of(context: Any) -> str:
    """What instructions say of the booking."""
    booking = _booking(context)
    return f"{booking.flight} {booking.passengers} {booking.notes} {booking.asked}"


def text_at_the_end(make: Callable[[], Any], passenger: type = Passenger) -> str:
    """The same after all tools."""
    context = make()
    find(context, passenger)
    choose(context, 0, "1a")
    choose(context, 1, None)
    rebook(context)
    pay(context)
    return text_of(context)


TURNS: Final[list[list[Any]]] = [
    [("find", "f1", {})],
    [("choose", "c1", {"place": 0, "seat": "1a"}), ("choose", "c2", {"place": 1, "seat": None}), ("rebook", "r1", {})],
    [("pay", "p1", {})],
]
"""The model's tool calls, as (name, id, arguments)."""
PAID: Final = "paid for ['1a', None]"
