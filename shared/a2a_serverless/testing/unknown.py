"""The result of an act that has not happened: code may pass it on, but not look at it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NoReturn

from a2a_serverless.domain.json_forms import SEQUENCES, SETS, members_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

SECRET: Final = "\u2063secret\u2063"  # noqa: S105 - none
"""The beginning of the text in the place of a secret."""
DEEPEST: Final = 8


class UnknownUsed(BaseException):
    """The code decides by a result that is unknown. ``source`` says of what."""

    def __init__(self, source: str) -> None:
        super().__init__(source)
        self.source = source


class Unknown:
    """The unknown result of ``source``. What is made of it is unknown, too; to look at it raises UnknownUsed.

    ``on_use`` is called before, because the code may catch the exception.
    """

    def __init__(self, source: str, on_use: Callable[[str], object]) -> None:
        object.__setattr__(self, "_source", source)
        object.__setattr__(self, "_on_use", on_use)

    def _derive(self, *_: object, **__: object) -> Unknown:
        return Unknown(_part(self, "_source"), _part(self, "_on_use"))

    def _stop(self, *_: object) -> NoReturn:
        _part(self, "_on_use")(_part(self, "_source"))
        raise UnknownUsed(_part(self, "_source"))

    def __getattr__(self, name: str) -> Unknown:
        if name.startswith("__"):
            self._stop()
        return self._derive()

    # ``isinstance`` looks at it, and would say no.
    __class__ = property(_stop)
    __call__ = __getitem__ = __add__ = __radd__ = __mul__ = __sub__ = __mod__ = __truediv__ = __neg__ = _derive
    __str__ = __repr__ = __format__ = __bool__ = __iter__ = __len__ = __eq__ = __ne__ = __hash__ = _stop
    __contains__ = __int__ = __float__ = __index__ = __lt__ = __gt__ = __le__ = __ge__ = __await__ = _stop
    __enter__ = __aenter__ = __aiter__ = __fspath__ = __bytes__ = __setattr__ = __delattr__ = __reduce_ex__ = _stop


def _part(value: Unknown, name: str) -> Any:  # noqa: ANN401 - the part's own
    return object.__getattribute__(value, name)


def find_unknown(value: object, depth: int = 0) -> str:
    """The source of an unknown in a value, "a secret" for the text in a secret's place; "" without any."""
    if type(value) is Unknown:
        return str(_part(value, "_source"))
    if isinstance(value, str):
        return "a secret" if SECRET in value else ""
    if depth > DEEPEST:
        return ""
    inner: Iterable[object] = ()
    if isinstance(value, dict):
        inner = [*value.keys(), *value.values()]
    elif isinstance(value, (*SEQUENCES, *SETS)):
        inner = value
    elif hasattr(type(value), "__dict__"):
        inner = (members_of(value) or {}).values()
    return next((source for one in inner if (source := find_unknown(one, depth + 1))), "")
