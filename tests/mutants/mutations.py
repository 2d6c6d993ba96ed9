"""Small wrong changes of the library's functions, one at a time: what ``make prove KIND=mutants`` chooses from.

Only what is inside functions is changed: it is swapped in functions that are loaded (``tests/model/edits.py``). Class
bodies, constants of modules, decorators, defaults of arguments and annotations stay as they are.
"""

from __future__ import annotations

import ast
from collections import Counter
from copy import copy
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from tests.model.edits import edited
from tests.mutants.areas import AREAS, name_of, path_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager

PACKAGE: Final = "a2a_serverless"
COMPARISONS: Final[dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
ARITHMETIC: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
# What can be called without its last argument.
SHORTER: Final = {"get", "getattr", "max", "min", "next", "pop", "range", "round", "split", "sum"}
NOT_RUN: Final = {"annotation", "decorator_list", "returns", "type_comment"}


@dataclass(frozen=True, eq=False)
class Mutant:
    """One wrong change. ``text``: what stood there and what stands there now; ``lines``: those that run the change."""

    module: str
    function: str
    text: str
    lines: range
    tree: ast.Module = field(repr=False)
    old: ast.AST = field(repr=False)
    new: ast.AST = field(repr=False)

    @property
    def key(self) -> tuple[str, str, str]:
        """What names the mutant, also after lines have moved."""
        return self.module, self.function, self.text

    def loaded(self) -> AbstractContextManager[list[str]]:
        """Runs the library with the change. AssertionError: the function cannot be swapped."""
        _swap(self.tree, self.old, self.new)
        try:
            code = compile(self.tree, str(path_of(self.module)), "exec", dont_inherit=True)
        finally:
            _swap(self.tree, self.new, self.old)
        package = "" if self.module.startswith(f"{PACKAGE}_") else f"{PACKAGE}."
        return edited(f"{package}{self.module}", code)

    def can_load(self) -> bool:
        """Whether the function can be swapped, and the change is one of what Python runs."""
        try:
            with self.loaded() as changed:
                return bool(changed)
        except AssertionError:
            return False


def modules(area: str = "") -> list[str]:
    """The modules whose functions are changed, of one area or of all, without the package's name."""
    paths = [path for one in ([AREAS[area]] if area else AREAS.values()) for path in one.paths]
    return [name_of(path) for path in paths]


def mutants_of(module: str) -> list[Mutant]:
    """Every mutant of a module, in the order of its source."""
    tree = ast.parse(path_of(module).read_text())
    found, seen = [], Counter[tuple[str, str]]()
    for function, node in _functions(tree):
        for statement, old, parent, new in _changes(node):
            text = _text(old, parent, new)
            seen[function, text] += 1
            if seen[function, text] > 1:
                text = f"{text} #{seen[function, text]}"
            found.append(Mutant(module, function, text, _lines(statement, old), tree, old, new))
    return found


def choose(mutants: Sequence[Mutant], seed: int, count: int) -> list[Mutant]:
    """As many of the mutants. A seed chooses the same ones also after other code has changed."""
    shuffled = sorted(mutants, key=lambda one: sha256(repr((seed, one.key)).encode()).digest())
    return [*islice((one for one in shuffled if one.can_load()), count)]


def _functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """The outermost functions, by qualified name."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef):
            yield from _functions(node, f"{prefix}{node.name}.")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield prefix + node.name, node


def _changes(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[tuple[ast.stmt, ast.AST, ast.AST, ast.AST]]:
    """Yields (statement, old node, its parent, new node)."""
    waiting: list[tuple[ast.stmt, ast.AST, ast.AST]] = [(one, function, one) for one in reversed(function.body)]
    while waiting:
        statement, parent, node = waiting.pop()
        for new in _instead_of(node, parent):
            yield statement, node, parent, ast.fix_missing_locations(ast.copy_location(new, node))
        if not _is_cast(node):
            inner = [
                (child if isinstance(child, ast.stmt) else statement, node, child)
                for name, value in ast.iter_fields(node)
                if name not in NOT_RUN
                for child in (value if isinstance(value, list) else [value])
                if isinstance(child, ast.AST)
            ]
            waiting += reversed(inner)


def _is_cast(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "cast"


def _instead_of(node: ast.AST, parent: ast.AST) -> Iterator[ast.AST]:  # noqa: C901, PLR0912 - one case for each kind
    match node:
        case ast.Compare(ops=ops):
            for place, op in enumerate(ops):
                for other in COMPARISONS[type(op)]:
                    yield _with(node, ops=[*ops[:place], other(), *ops[place + 1 :]])
        case ast.BoolOp(op=ast.And()):
            yield _with(node, op=ast.Or())
        case ast.BoolOp():
            yield _with(node, op=ast.And())
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield copy(operand)
        case ast.BinOp(op=op) if type(op) in ARITHMETIC:
            yield _with(node, op=ARITHMETIC[type(op)]())
        case ast.AugAssign(op=op):
            yield ast.Pass()
            if type(op) in ARITHMETIC:
                yield _with(node, op=ARITHMETIC[type(op)]())
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value) | float(value)):
            yield from (ast.Constant(value + 1), ast.Constant(value - 1))
        case ast.Return(value=ast.Constant(value=None | False)):
            return  # None is as false as False
        case ast.Return(value=ast.expr()):
            yield _with(node, value=ast.Constant(None))
        case ast.Call(args=args, keywords=keywords) if not _is_cast(node):
            yield from (_with(node, keywords=[one for one in keywords if one is not without]) for without in keywords)
            if len(args) > 1 and ast.unparse(node.func).rpartition(".")[2] in SHORTER:
                yield _with(node, args=args[:-1])
        case _ if _is_deletable(node):
            yield ast.Pass()
    if _is_condition(node, parent) and not isinstance(node, ast.Compare | ast.BoolOp | ast.UnaryOp | ast.Constant):
        yield ast.UnaryOp(ast.Not(), copy(node))  # type: ignore[arg-type]


def _is_deletable(node: ast.AST) -> bool:
    """Whether something else than a name that is missing comes of it. A docstring does nothing."""
    match node:
        case ast.Expr(value=ast.Constant()):
            return False
        case ast.Expr() | ast.Raise() | ast.Continue() | ast.Break():
            return True
        case ast.Assign(targets=[target]) | ast.AnnAssign(target=target) | ast.Delete(targets=[target]):
            return isinstance(target, ast.Attribute | ast.Subscript)
    return False


def _is_condition(node: ast.AST, parent: ast.AST) -> bool:
    match parent:
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            return node is test
        case ast.comprehension(ifs=tests) | ast.BoolOp(values=[*tests, _]):
            return node in tests
    return False


def _with(node: ast.AST, **changes: Any) -> ast.AST:
    new = copy(node)
    for name, value in changes.items():
        setattr(new, name, value)
    return new


def _lines(statement: ast.stmt, node: ast.AST) -> range:
    return range(statement.lineno, (getattr(node, "end_lineno", None) or statement.lineno) + 1)


def _text(old: ast.AST, parent: ast.AST, new: ast.AST) -> str:
    """An argument that is dropped is named; a constant is shown with what is around it."""
    if isinstance(old, ast.Call) and isinstance(new, ast.Call):
        (dropped,) = {*old.args, *old.keywords} - {*new.args, *new.keywords}
        return f"{ast.unparse(old.func)}(...) without {ast.unparse(dropped)}"
    if not isinstance(old, ast.Constant):
        return f"{ast.unparse(old)} -> {ast.unparse(new)}"
    before = ast.unparse(parent)
    _swap(parent, old, new)
    after = ast.unparse(parent)
    _swap(parent, new, old)
    return f"{before} -> {after}"


def _swap(tree: ast.AST, old: ast.AST, new: ast.AST) -> None:
    """Puts ``new`` into the tree where ``old`` is."""
    for node in ast.walk(tree):
        for name, value in ast.iter_fields(node):
            if value is old:
                setattr(node, name, new)
            elif isinstance(value, list):
                value[:] = [new if one is old else one for one in value]
