"""What tools change in the object that their framework gives them: a context, dependencies, a state.

A tool gets a copy of the object, as it was when the tool was called. What it changes in the copy is stored with the
tool's step, by paths. When the step has ended, each run makes these changes in the object, also the first one, from
what is stored. So tools that run at the same time do not see each other's changes, and a change has one tool.

Fields of dataclasses and pydantic models, members of dicts and items of lists are compared. Any other object is not
copied. If it changes, that is refused, unless it is a client of something (what can be closed, or entered by ``with``)
or an object of Python's own library. Names that begin with an underscore and are no fields do not count.
"""

from __future__ import annotations

import copy
import sys
from collections import deque
from dataclasses import dataclass, field, is_dataclass
from enum import Enum
from functools import cached_property, lru_cache
from types import SimpleNamespace, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Final, Union, cast, get_args, get_origin, get_type_hints

from pydantic import BaseModel

from a2a_serverless.domain.agent_errors import StepConflict
from a2a_serverless.domain.json_forms import SEQUENCES, is_of_fields, members_of
from a2a_serverless.engine.result_codecs import codec_of
from a2a_serverless.engine.value_comparison import find_change

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_serverless.domain.model import Json, JsonObject
    from a2a_serverless.domain.steps import Codec

OF_A_CLIENT: Final = ("close", "aclose", "__enter__", "__aenter__")
Path = tuple[Any, ...]


class ChangesCodec:
    """Stores a result, by its own codec if it has one, with the changes of its tool."""

    def __init__(self, codec: Codec[Any] | None) -> None:
        self._codec = codec

    def dump(self, value: tuple[Any, list[Any]]) -> Any:  # noqa: ANN401 - JSON
        """The result and the changes."""
        result, changes = value
        return [self._codec.dump(result) if self._codec else result, changes]

    def load(self, stored: Any) -> tuple[Any, list[Any]]:  # noqa: ANN401 - JSON
        """As ``dump`` got them."""
        result, changes = stored
        return self._codec.load(result) if self._codec else result, changes


@dataclass(slots=True)
class ToolStates:
    """The objects that the tools of an execution may change, by ``id()``."""

    _states: dict[int, _SharedState] = field(default_factory=dict)

    def copy_for(self, tool: str, root: object, name: str, kind: object) -> ToolCopy:
        """A copy of ``root`` for one call of a tool. ``name`` and ``kind`` are those of ``step_with_state``."""
        state = self._states.setdefault(id(root), _SharedState(root, name, kind))
        return ToolCopy(tool, state, len(state.changes))


@dataclass(slots=True)
class _SharedState:
    """An object with its name, its declared type, and the changes of the tools that have ended, in their order."""

    root: Any
    name: str
    kind: Any
    changes: list[JsonObject] = field(default_factory=list)

    def place(self, path: Path) -> str:
        """How the code of a tool names a part. A key that is no name may be content: it is left out."""
        text, part = self.name, self.root
        for key in path:
            if part is _NOTHING:
                break
            is_named = isinstance(key, str) and key.isidentifier()
            if is_of_fields(part) or not isinstance(part, (dict, *SEQUENCES)):
                text += f".{key}"
            else:
                text += f"[{key!r}]" if is_named or isinstance(part, SEQUENCES) else "[...]"
            part = _members(part, {}).get(key, _NOTHING)
        return text


@dataclass(slots=True)
class _Node:
    """A part that has parts: the original, its copy for the tool, its declared type, and its parts before the tool.

    A part is a ``_Node`` or a value. ``items`` are those of a set, which has no parts.
    """

    copy: Any
    kind: Any
    parts: dict[Any, Any] = field(default_factory=dict)
    items: frozenset[Any] | None = None


class ToolCopy:
    """The copy of a state for one call of a tool."""

    def __init__(self, tool: str, state: _SharedState, position: int) -> None:
        self._tool, self._state, self._position = tool, state, position
        self._nodes: dict[int, _Node] = {}
        self._watched: list[tuple[Path, Any, dict[str, Any]]] = []
        self._root = self._copy(state.root, state.kind, ())

    @property
    def value(self) -> Any:  # noqa: ANN401 - any object of the author
        """The copy; the object itself if it is none of those that can be copied."""
        return _copy_of(self._root)

    def changes(self) -> list[Json]:
        """What the tool has changed, as JSON values. Raises StepConflict for a change that cannot be stored."""
        for path, watched, before in self._watched:
            now = _data_in(watched)
            for name in [*before, *now]:
                if name not in now or name not in before or find_change(before[name], now[name]):
                    kind = type(watched).__name__
                    raise self._conflict(
                        f"changes {self._state.place((*path, name))}, and a later run of the task would not see it."
                        f" Make {kind} a dataclass, or keep the value in task.store."
                    )
        return [*self._differences(self._root, (), set())] if isinstance(self._root, _Node) else []

    def apply(self, changes: list[Any]) -> list[Any]:
        """Makes stored changes in the state. Returns the keys or attributes of the state that change.

        Raises StepConflict if a tool that ran at the same time has changed the same part.
        """
        for change in changes:
            path = change["path"]
            for other in cast("list[Any]", self._state.changes[self._position :]):
                shorter = min(len(path), len(other["path"]))
                if path[:shorter] == other["path"][:shorter] and change != other:
                    raise self._conflict(
                        f"and another tool that runs at the same time change {self._state.place(tuple(path))}."
                        " Give each tool a part of its own, or let the model call them one after the other."
                    )
        for change in changes:
            try:
                _make(self._state.root, self._state.kind, change)
            except (LookupError, AttributeError, TypeError, ValueError):
                place = self._state.place(tuple(change["path"]))
                raise self._conflict(f"has changed {place}, which the code does not have any more.") from None
        self._state.changes += changes
        return list(dict.fromkeys(change["path"][0] for change in changes if change["path"]))

    def _copy(self, value: Any, kind: Any, path: Path) -> Any:  # noqa: ANN401 - any value
        """The node of a value; the value itself if it is not copied."""
        if id(value) in self._nodes:
            return self._nodes[id(value)]
        parts = _members(value)
        try:
            own_copy = value if parts is None and not isinstance(value, set) else copy.copy(value)
        except Exception:  # noqa: BLE001 - any exception of the type's own code: it is as any other object
            own_copy, parts = value, None
        if own_copy is value and not isinstance(value, tuple):
            if _is_watched(value) and all(value is not one for _, one, _ in self._watched):
                self._watched.append((path, value, _data_in(value)))
            return value
        node = self._nodes[id(value)] = _Node(own_copy, kind)
        if isinstance(value, set):
            node.items = frozenset(value)
        for key, part in (parts or {}).items():
            inner = node.parts[key] = self._copy(part, _kind_of_part(value, kind, key), (*path, key))
            if isinstance(inner, _Node) and not isinstance(value, tuple):
                _put_unnoted(own_copy, key, inner.copy)
        if isinstance(value, tuple):
            copies = map(_copy_of, node.parts.values())
            node.copy = type(value)(*copies) if hasattr(value, "_fields") else tuple(copies)
        return node

    def _differences(self, node: _Node, path: Path, seen: set[int]) -> Iterator[Json]:
        if id(node) in seen:  # another name of the same part
            return
        seen.add(id(node))
        now = _members(node.copy, {})
        is_list = isinstance(node.copy, SEQUENCES) and len(now) != len(node.parts)
        if is_list or (node.items is not None and node.items != node.copy):
            yield {"path": [*path], "content": self._dump(node.copy, node.kind, path)}
            return
        for key in [*node.parts, *(key for key in now if key not in node.parts)]:
            part, place = node.parts.get(key, _NOTHING), (*path, key)
            if type(key) not in {str, int}:
                if key not in now or not _is_same(_copy_of(part), now[key]):
                    raise self._conflict(f"changes {self._state.place(place)}, whose key is neither a text nor an int.")
            elif key not in now:
                yield {"path": [*place]}
            elif isinstance(part, _Node) and now[key] is part.copy:
                yield from self._differences(part, place, seen)
            elif isinstance(part, _Node) or not _is_same(part, now[key]):
                kind = _kind_of_part(node.copy, node.kind, key)
                yield {"path": [*place], "value": self._dump(now[key], kind, place)}

    def _dump(self, value: Any, kind: Any, path: Path) -> Json:  # noqa: ANN401 - any value
        """The JSON form of a part, by its declared type."""
        codec = codec_of(kind)
        what = f"sets {self._state.place(path)} to a {type(value).__name__}, which"
        if codec is None:
            if not _is_json(value):
                raise self._conflict(f"{what} is no JSON value: annotate {_where(path)} with its type.")
            return cast("Json", value)
        try:
            if isinstance(codec, str):
                raise TypeError  # noqa: TRY301 - refused below
            stored = codec.dump(value)
            change = find_change(value, codec.load(stored))
        except Exception:  # noqa: BLE001 - any exception of the type's own code
            raise self._conflict(f"{what} cannot be stored. Set what the annotation says, or JSON values.") from None
        if change:
            raise self._conflict(f"{what} does not come back whole when it is read: {change}.")
        return stored

    def _conflict(self, text: str) -> StepConflict:
        return StepConflict(f"The tool {self._tool} {text}")


_NOTHING: Final = object()


def _copy_of(part: Any) -> Any:  # noqa: ANN401 - any value
    return part.copy if isinstance(part, _Node) else part


def _where(path: Path) -> str:
    name = next((key for key in reversed(path) if isinstance(key, str) and key.isidentifier()), "")
    return f"the attribute {name}" if name else "it"


def _members(value: object, default: Any = None) -> Any:  # noqa: ANN401 - a dict, or the default
    """The parts of a value by field, key or place; the default for a value without parts."""
    if isinstance(value, dict):
        return {**value}
    if isinstance(value, SEQUENCES):
        return dict(enumerate(value))
    members = members_of(value)
    return default if members is None else members


def _is_same(value: object, now: object) -> bool:
    return value is now or (type(value) is type(now) and _is_constant(value) and not find_change(value, now))


def _is_constant(value: object) -> bool:
    """Whether a value cannot change: it has an equality and a hash of its own, as texts, dates and UUIDs do."""
    kind: Any = type(value)
    return value is None or isinstance(value, Enum) or (kind.__eq__ is not object.__eq__ and kind.__hash__ is not None)


def _is_json(value: object) -> bool:
    if type(value) is dict:
        return all(type(key) is str and _is_json(inner) for key, inner in value.items())
    if type(value) in {list, tuple}:
        return all(map(_is_json, cast("list[Any]", value)))
    return value is None or type(value) in {str, int, float, bool}


def _is_watched(value: object) -> bool:
    """Whether an object that is not copied may have data of the author."""
    kind = type(value)
    if isinstance(value, SimpleNamespace):
        return True
    is_own = kind.__module__.partition(".")[0] not in sys.stdlib_module_names
    return is_own and hasattr(value, "__dict__") and not any(hasattr(kind, name) for name in OF_A_CLIENT)


def _data_in(value: object) -> dict[str, Any]:
    """A copy of the data in an object's public attributes."""
    return {
        name: copy.deepcopy(part)
        for name, part in vars(value).items()
        if not name.startswith("_")
        and not isinstance(getattr(type(value), name, None), cached_property)
        and _is_all_data(part, 0)
    }


def _is_all_data(value: object, level: int) -> bool:
    parts = value if isinstance(value, set | frozenset) else (_members(value) or {}).values()
    is_data = isinstance(value, set) or _members(value) is not None or _is_constant(value)
    return is_data and level < MOST_LEVELS and all(_is_all_data(part, level + 1) for part in parts)


MOST_LEVELS: Final = 50


def _kind_of_part(whole: Any, kind: Any, key: Any) -> Any:  # noqa: ANN401 - any value, any type
    """The declared type of a part of ``whole``, whose own declared type is ``kind``; None if there is none."""
    if is_of_fields(whole):
        return _annotations(cast("Any", type(whole))).get(key)
    if get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    if get_origin(kind) in {Union, UnionType}:
        kind, *others = [one for one in get_args(kind) if one is not type(None)] or [None]
        if others:
            return None
    if isinstance(kind, type) and hasattr(kind, "__total__"):  # a TypedDict
        return _annotations(kind).get(key)
    arguments = get_args(kind)
    if isinstance(whole, dict):
        return arguments[1] if len(arguments) == len(("key", "value")) else None
    if get_origin(kind) is tuple and arguments and arguments[-1] is not ...:
        return arguments[key] if key < len(arguments) else None
    return arguments[0] if arguments else None


@lru_cache(maxsize=512)
def _annotations(kind: type) -> dict[str, Any]:
    if issubclass(kind, BaseModel):
        return {
            name: Annotated[one.annotation, *one.metadata] if one.metadata else one.annotation
            for name, one in kind.model_fields.items()
        }
    try:
        return get_type_hints(kind, include_extras=is_dataclass(kind))
    except (NameError, TypeError):  # a name for the type checker only
        return {}


def _make(root: Any, kind: Any, change: dict[str, Any]) -> None:  # noqa: ANN401 - any object and type
    """Makes a stored change."""
    path = change["path"]
    if "content" in change:
        for key in path:
            root, kind = _members(root)[key], _kind_of_part(root, kind, key)
        content = _load(change["content"], kind)
        root.clear()
        root.update(content) if isinstance(root, set) else root.extend(content)
        return
    *places, last = path
    for key in places:
        root, kind = _members(root)[key], _kind_of_part(root, kind, key)
    if "value" in change:
        _put(root, last, _load(change["value"], _kind_of_part(root, kind, last)))
    elif isinstance(root, dict):
        del root[last]
    elif isinstance(root, BaseModel):
        del (root.__dict__ if last in root.__dict__ else root.__pydantic_extra__ or {})[last]
    else:
        object.__delattr__(root, last)


def _load(stored: Json, kind: Any) -> Any:  # noqa: ANN401 - any type and value
    codec = codec_of(kind)
    if isinstance(codec, str):
        raise TypeError(codec)
    return codec.load(stored) if codec else copy.deepcopy(stored)


def _put(whole: Any, key: Any, value: Any) -> None:  # noqa: ANN401 - any values
    if isinstance(whole, BaseModel):
        whole.__pydantic_fields_set__.add(key)
    _put_unnoted(whole, key, value)


def _put_unnoted(whole: Any, key: Any, value: Any) -> None:  # noqa: ANN401 - any values
    """Sets a part, without the type's own code: neither of a property nor of a validator."""
    if isinstance(whole, BaseModel):
        extra = whole.__pydantic_extra__
        (whole.__dict__ if extra is None or key in type(whole).model_fields else extra)[key] = value
    elif isinstance(whole, dict | list | deque):
        cast("Any", whole)[key] = value
    else:
        object.__setattr__(whole, key, value)
