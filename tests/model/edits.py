"""Changes the code of functions that are loaded, by an edit of their module's source, and changes it back."""

from __future__ import annotations

import inspect
from contextlib import ExitStack, contextmanager
from importlib import import_module
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType


@contextmanager
def edited(module: str, source: str | CodeType) -> Iterator[list[str]]:
    """Runs the functions of ``module`` as they are in ``source``; yields the names of those that differ.

    Everything that has imported such a function runs the new code, too. What is outside of functions stays as it is.
    """
    loaded = import_module(module)
    path = str(loaded.__file__)
    old = compile(inspect.getsource(loaded), path, "exec", dont_inherit=True)
    new = compile(source, path, "exec", dont_inherit=True) if isinstance(source, str) else source
    with ExitStack() as restored:
        names = []
        for name, code in _changed(old, new):
            function = _function(loaded, name, code)
            restored.callback(setattr, function, "__code__", function.__code__)
            function.__code__ = code
            names.append(name)
        yield names


def _changed(old: CodeType, new: CodeType, prefix: str = "") -> Iterator[tuple[str, CodeType]]:
    """The outermost functions whose code differs, by qualified name."""
    before = {one.co_name: one for one in old.co_consts if isinstance(one, CodeType)}
    for code in new.co_consts:
        if isinstance(code, CodeType) and code not in old.co_consts:
            name = prefix + code.co_name
            is_class = not code.co_flags & inspect.CO_OPTIMIZED
            if is_class and code.co_name in before:
                yield from _changed(before[code.co_name], code, f"{name}.")
            else:
                yield name, code


def _function(module: ModuleType, name: str, code: CodeType) -> FunctionType:
    """The function of that name, without what decorates it."""
    found: Any = module
    for part in name.split("."):
        found = inspect.getattr_static(found, part)
    for inner in ("fget", "func", "__func__"):  # of a property, a cached property, a static or class method
        found = getattr(found, inner, found)
    found = inspect.unwrap(found)
    assert isinstance(found, FunctionType)
    assert found.__code__.co_freevars == code.co_freevars
    return found
