"""Gives everything in this repository the names of ``map.txt``: ``python tests/renames/rename.py`` in a clean tree.

Identifiers are found by syntax and resolved by mypy's types, so that a short name is renamed only where it means the
thing that the map says. What cannot be resolved, a mapped name that is not there, and a new name that is there already
end the run before anything is written. ``--check`` writes nothing.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

from mypy import build, nodes, types
from mypy.fscache import FileSystemCache
from mypy.main import process_options
from mypy.state import state
from mypy.subtypes import is_subtype
from mypy.typevars import fill_typevars

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
SOURCES = {
    "shared": "shared",
    "webhook_receiver": "webhook_receiver",
    "bench": "bench",
    "bench/candidates": "bench/candidates",
}
WORD = re.compile(r"[A-Za-z_]\w*")


class Map:
    """What ``map.txt`` says."""

    def __init__(self, text: str) -> None:
        self.files: dict[str, str] = {}
        self.names: dict[str, dict[str, str]] = defaultdict(dict)  # module -> name -> new
        self.members: dict[str, dict[str, str]] = defaultdict(dict)  # class -> member -> new
        self.every: dict[str, str] = {}  # member of any class of ours -> new
        self.keep: set[tuple[str, str]] = set()  # (class, member) that stays
        self.locals: dict[str, dict[str, str]] = defaultdict(dict)  # module or "*" -> local -> new
        self.strings: dict[str, dict[str, str]] = defaultdict(dict)  # path prefix -> whole literal -> new
        self.text: list[tuple[str, str, str]] = []  # (path prefix, old text, new text), for what is no Python
        self.loose: dict[str, dict[str, str]] = defaultdict(dict)  # path prefix -> attribute of unknown type -> new
        self.receivers: dict[str, str] = {}  # how a value of unknown type is called -> its class
        self.starred: dict[tuple[str, str], str] = {}  # (path, keyword that goes into ** of a function) -> new
        self.fakes: dict[tuple[str, str], str] = {}  # (path, class.member of what stands in for a port) -> new
        self.allowed: set[str] = set()
        section = ""
        for line in text.splitlines():
            stripped = line.strip()
            if not stripped or stripped.startswith("# "):
                continue
            if stripped.startswith("["):
                section = stripped.strip("[]")
                continue
            self._take(section, stripped)

    def locals_of(self, module: str) -> dict[str, str]:
        """The new names of locals in a module: of two rules the narrower one counts."""
        out = dict(self.locals["*"])
        for prefix in sorted(self.locals, key=len):
            if prefix.endswith("*") and prefix != "*" and module.startswith(prefix[:-1]):
                out |= self.locals[prefix]
        return out | self.locals.get(module, {})

    def _take(self, section: str, line: str) -> None:
        kind, _, name = section.partition(" ")
        if section == "allowed":
            self.allowed.add(line)
            return
        if section == "keep":
            owner, _, member = line.rpartition(".")
            self.keep.add((owner, member))
            return
        old, new = (part.strip() for part in line.split(" => " if " => " in line else " -> "))
        if section in {"starred", "fakes"}:
            path, _, name = old.partition(" ")
            getattr(self, section)[path, name] = new
        elif section == "receivers":
            self.receivers[old] = new
        elif section == "files":
            self.files[old] = new
        elif kind == "strings":
            self.strings[name][old] = new
        elif kind == "loose":
            self.loose[name][old] = new
        elif kind == "text":
            self.text.append((name, old.replace("\\n", "\n"), new.replace("\\n", "\n")))
        elif old.startswith("local "):
            self.locals[section][old.removeprefix("local ")] = new
        elif section == "*":
            self.every[old.removeprefix("member ")] = new
        elif "." in old:
            owner, _, member = old.rpartition(".")
            self.members[f"{section}.{owner}"][member] = new
        else:
            self.names[section][old] = new


class Edit(NamedTuple):
    start: int
    end: int
    new: str


class Problem(Exception):
    pass


PROBLEMS: list[str] = []


def problem(text: str) -> None:
    if text not in PROBLEMS:
        PROBLEMS.append(text)


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def module_of(path: str) -> str:
    """The module that a file is, as it is imported."""
    parts = Path(path).with_suffix("").parts
    for prefix in (("shared",), ("webhook_receiver",), ("bench", "candidates"), ("bench",)):
        if parts[: len(prefix)] == prefix and len(parts) > len(prefix):
            parts = parts[len(prefix) :]
            break
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


# --- what mypy knows -------------------------------------------------------------------------------------------------


def snippets(path: str) -> str:
    """The Python in a document, everything else as blanks, so that every byte stays at its place."""
    out, inside = [], False
    for line in (ROOT / path).read_bytes().splitlines(keepends=True):
        mark = re.match(rb"\s*(?:```|~~~)(\w*)", line)
        keep = inside and not mark
        if mark:
            inside = mark[1] == b"python" and not inside
        out.append(line if keep else b" " * (len(line) - 1) + b"\n")
    return b"".join(out).decode()


def snippet_module(path: str) -> str:
    return "snippets_of_" + re.sub(r"\W", "_", path)


def checked(documents: list[str]) -> build.BuildResult:
    sources, options = process_options([], fscache=FileSystemCache(), stdout=io.StringIO(), stderr=io.StringIO())
    sources += [build.BuildSource(None, snippet_module(path), snippets(path)) for path in documents]
    options.export_types = True
    options.preserve_asts = True
    options.incremental = False
    options.cache_dir = "/dev/null"
    options.warn_unused_ignores = False
    found = build.build(sources, options, fscache=FileSystemCache())
    errors = [line for line in found.errors if ": error:" in line and not line.startswith("<string>")]
    if errors:
        print("\n".join(errors))
        raise SystemExit("mypy refuses the tree")
    return found


SKIPPED = {
    "node",
    "info",
    "type",
    "fullname",
    "unanalyzed_type",
    "names",
    "original_first_arg",
    "def_frame",
    "_fullname",
    "tvar_scope",
    "typeddict_type",
    "imports",
    "plugin_deps",
    "future_import_flags",
}
_FIELDS: dict[type, list[str]] = {}


def fields_of(kind: type) -> list[str]:
    if kind not in _FIELDS:
        _FIELDS[kind] = [
            n for n in dir(kind) if not n.startswith("__") and n not in SKIPPED and not callable(getattr(kind, n, None))
        ]
    return _FIELDS[kind]


def walk(tree: nodes.MypyFile) -> list[nodes.Node]:
    """Every expression and definition of a module."""
    stack: list[Any] = list(tree.defs)
    seen: set[int] = set()
    out: list[nodes.Node] = []
    while stack:
        item = stack.pop()
        if isinstance(item, (list, tuple)):
            stack.extend(item)
            continue
        if (
            not isinstance(item, nodes.Node)
            or isinstance(item, (nodes.TypeInfo, nodes.MypyFile, nodes.Var))
            or id(item) in seen
        ):
            continue
        seen.add(id(item))
        out.append(item)
        for name in fields_of(type(item)):
            try:
                value = getattr(item, name)
            except Exception:  # noqa: BLE001 - what a node does not have yet
                continue
            if isinstance(value, (nodes.Node, list, tuple)):
                stack.append(value)
    return out


class World:
    """The checked tree: modules by path, expressions by place, classes by name."""

    def __init__(self, files: list[str], documents: list[str]) -> None:
        result = checked(documents)
        self.types = result.types
        self.trees: dict[str, nodes.MypyFile] = {}
        for path in documents:
            tree = result.graph[snippet_module(path)].tree
            if tree is not None:
                self.trees[path] = tree
        for module in result.graph.values():
            if module.tree is not None and module.path and str(module.path).startswith("./"):
                self.trees[str(module.path)[2:]] = module.tree
            elif module.tree is not None and module.path and Path(module.path).is_relative_to(ROOT):
                self.trees[str(Path(module.path).relative_to(ROOT))] = module.tree
        self.expressions: dict[str, dict[tuple[int, int, int, int], list[nodes.Expression]]] = {}
        self.class_at: dict[tuple[str, int], nodes.TypeInfo] = {}
        self.infos: dict[str, nodes.TypeInfo] = {}
        for path in [*files, *documents]:
            tree = self.trees.get(path)
            if tree is None:
                problem(f"{path}: not checked by mypy")
                continue
            places: dict[tuple[int, int, int, int], list[nodes.Expression]] = defaultdict(list)
            for node in walk(tree):
                if isinstance(node, nodes.ClassDef):
                    self.class_at[path, node.line] = node.info
                    self.infos[node.info.fullname] = node.info
                elif isinstance(node, nodes.Expression):
                    places[node.line, node.column, node.end_line or 0, node.end_column or 0].append(node)
            self.expressions[path] = places

    def at(self, path: str, node: ast.expr) -> list[nodes.Expression]:
        place = (node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0)
        return self.expressions.get(path, {}).get(place, [])

    def type_of(self, path: str, node: ast.expr) -> types.Type | None:
        for found in self.at(path, node):
            if (kind := self.types.get(found)) is not None:
                return kind
        return None


def infos_of(kind: types.Type | None) -> list[nodes.TypeInfo] | None:
    """The classes whose members an attribute of a value of that type may be; None when it may be anything."""
    if kind is None:
        return None
    kind = types.get_proper_type(kind)
    if isinstance(kind, types.Instance):
        return [kind.type]
    if isinstance(kind, types.AnyType):
        return None
    if isinstance(kind, types.UnionType):
        out: list[nodes.TypeInfo] = []
        for item in kind.items:
            if isinstance(types.get_proper_type(item), types.NoneType):
                continue
            found = infos_of(item)
            if found is None:
                return None
            out += found
        return out
    if isinstance(kind, types.TypeVarType):
        return infos_of(kind.upper_bound)
    if isinstance(kind, types.TupleType):
        return [kind.partial_fallback.type]
    if isinstance(kind, types.LiteralType):
        return [kind.fallback.type]
    if isinstance(kind, types.TypeType):
        return infos_of(kind.item)
    if isinstance(kind, types.CallableType):
        return infos_of(kind.ret_type) if kind.is_type_obj() else [kind.fallback.type]
    if isinstance(kind, types.Overloaded):
        return infos_of(kind.items[0])
    if isinstance(kind, types.TypedDictType):
        return [kind.fallback.type]
    return []


class Members:
    """Which member of which class gets which name."""

    def __init__(self, names: Map, world: World) -> None:
        self._infos = world.infos
        self.table: dict[tuple[str, str], str] = {}
        self._ours = set(world.infos)
        for owner, renamed in names.members.items():
            info = self._infos.get(owner)
            if info is None:
                problem(f"map: there is no class {owner}")
                continue
            for old, new in renamed.items():
                self._rename(info, old, new)
        for (path, member), new in names.fakes.items():
            owner, _, old = member.partition(".")
            hits = [
                i for (where, _), i in world.class_at.items() if where == path and i.name.partition("@")[0] == owner
            ]
            if not hits or not any(old in i.names for i in hits):
                problem(f"map: {path} has no class {owner} with {old}")
            for info in hits:
                if old in info.names and old != new:
                    self._put(info, old, new)
        for old, new in names.every.items():
            hit = False
            for full, info in self._infos.items():
                if old in info.names and (full, old) not in names.keep and (full, old) not in self.table:
                    if self.inherited(info, old) or any((b.fullname, old) in names.keep for b in info.mro):
                        continue
                    self._put(info, old, new)
                    hit = True
            if not hit and f"member {old}" not in names.allowed:
                problem(f"map: no class has a member {old}")
        self._check(names)
        self._report(names, world)

    def _report(self, names: Map, world: World) -> None:
        """Classes of tests with a method that a port of ours has under another name now: do they stand in for it?"""
        ports = {
            old: new
            for owner, renamed in names.members.items()
            if owner.startswith(("a2a_serverless.ports", "a2a_serverless.handlers.gate"))
            for old, new in renamed.items()
        }
        for (path, line), info in world.class_at.items():
            if not path.startswith(("tests/", "bench/")):
                continue
            for old, new in ports.items():
                if (
                    old in info.names
                    and (info.fullname, old) not in self.table
                    and isinstance(info.names[old].node, (nodes.FuncDef, nodes.Decorator))
                ):
                    key = (path, f"{info.name.partition('@')[0]}.{old}")
                    if key not in names.fakes:
                        problem(f"{path}:{line}: fakes {path} {info.name.partition('@')[0]}.{old} -> {new}")

    def inherited(self, info: nodes.TypeInfo, name: str) -> bool:
        return any(name in base.names and base.fullname not in self._ours for base in info.mro[1:])

    def _put(self, info: nodes.TypeInfo, old: str, new: str) -> None:
        have = self.table.get((info.fullname, old))
        if have not in {None, new}:
            problem(f"map: {info.fullname}.{old} would be {have} and {new}")
        self.table[info.fullname, old] = new

    def _rename(self, info: nodes.TypeInfo, old: str, new: str) -> None:
        if old not in info.names:
            problem(f"map: {info.fullname} has no member {old}")
            return
        for other in self._infos.values():
            if info in other.mro or (info.is_protocol and self.implements(other, info)):
                for base in other.mro:
                    if base.fullname in self._ours and old in base.names:
                        self._put(base, old, new)

    def implements(self, one: nodes.TypeInfo, protocol: nodes.TypeInfo) -> bool:
        wanted = protocol.protocol_members
        if not all(any(name in base.names for base in one.mro) for name in wanted):
            return False
        with state.strict_optional_set(True):
            return is_subtype(fill_typevars(one), fill_typevars(protocol))

    def _check(self, names: Map) -> None:
        for (full, old), new in self.table.items():
            info = self._infos[full]
            for base in info.mro:
                if new in base.names and (base.fullname, new) not in self.table:
                    problem(f"map: {full}.{old} -> {new}: {base.fullname} has a {new} already")
            if self.inherited(info, old):
                problem(f"map: {full}.{old} is a foreign class's member")

    def new_name(self, infos: list[nodes.TypeInfo], name: str) -> str | None:
        """The new name of a member, None when it stays."""
        found = set()
        for info in infos:
            for base in info.mro:
                if name in base.names:
                    found.add(self.table.get((base.fullname, name)))
                    break
        if len(found) > 1:
            raise Problem(f"{name} means several things: {found} of {[i.fullname for i in infos]}")
        return found.pop() if found else None


# --- scopes ----------------------------------------------------------------------------------------------------------


class Scope:
    """What the names in one block mean: an imported thing, a definition of this module, or a local."""

    def __init__(self, kind: str, parent: Scope | None, full: str) -> None:
        self.kind, self.parent, self.full = kind, parent, full
        self.bound: dict[str, str] = {}  # name -> full name of what it means; "" for a local variable
        self.renamed: dict[str, str] = {}
        self.used: set[str] = set()

    def find(self, name: str) -> Scope | None:
        scope: Scope | None = self
        first = True
        while scope is not None:
            if name in scope.bound and (scope.kind != "class" or first):
                return scope
            first = first and scope.kind == "comprehension"
            scope = scope.parent
        return None


class Modules:
    """What each module of ours defines, so that a name can be followed through imports."""

    def __init__(self, files: list[str], documents: list[str]) -> None:
        self.trees = {path: ast.parse((ROOT / path).read_bytes()) for path in files}
        self.path = {module_of(path): path for path in files}
        for path in documents:
            self.trees[path] = ast.parse(snippets(path))
            self.path[snippet_module(path)] = path
        self.top: dict[str, dict[str, str]] = {}
        for module, path in self.path.items():
            self.top[module] = self._names(module, self.trees[path])

    def _names(self, module: str, tree: ast.Module) -> dict[str, str]:
        scope = Scope("module", None, module)
        bind_block(scope, tree.body, self)
        return scope.bound

    def origin(self, full: str) -> str:
        """Where the thing of that full name is defined, through what modules import from each other."""
        seen = set()
        while full not in seen:
            seen.add(full)
            module, _, name = full.rpartition(".")
            if full in self.path or module not in self.top or name not in self.top[module]:
                return full
            full = self.top[module][name] or full
        return full


def bind_target(scope: Scope, target: ast.AST) -> None:
    for node in ast.walk(target):
        if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
            scope.bound.setdefault(node.id, f"{scope.full}.{node.id}" if scope.kind in {"module", "class"} else "")


def bind_block(scope: Scope, body: list[ast.stmt], modules: Modules | None) -> None:
    """Binds what the statements of a block bind in it, without going into the blocks of others."""
    stack: list[ast.AST] = list(body)
    while stack:
        node = stack.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            scope.bound[node.name] = f"{scope.full}.{node.name}" if scope.kind in {"module", "class"} else ""
            for part in [*node.decorator_list]:
                stack.append(part)
            continue
        if isinstance(node, (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            for inner in ast.walk(node):  # a walrus binds outside
                if isinstance(inner, ast.NamedExpr):
                    bind_target(scope, inner.target)
            continue
        if isinstance(node, ast.Import):
            for alias in node.names:
                scope.bound[alias.asname or alias.name.split(".")[0]] = (
                    alias.name if alias.asname else alias.name.split(".")[0]
                )
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                scope.bound[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        elif isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
            bind_target(scope, node)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            scope.bound[node.name] = ""
        elif isinstance(node, (ast.MatchAs, ast.MatchStar)) and node.name:
            scope.bound[node.name] = ""
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            pass
        stack.extend(ast.iter_child_nodes(node))


# --- one file --------------------------------------------------------------------------------------------------------


class File(ast.NodeVisitor):
    """Collects the edits of one Python file."""

    def __init__(self, path: str, names: Map, world: World, modules: Modules, members: Members) -> None:
        self.path, self.names, self.world, self.modules, self.members = path, names, world, modules, members
        self.module = snippet_module(path) if path.endswith(".md") else module_of(path)
        self.source = (ROOT / path).read_bytes()
        self.lines = [0]
        for line in self.source.splitlines(keepends=True):
            self.lines.append(self.lines[-1] + len(line))
        self.edits: dict[tuple[int, int], str] = {}
        self.tree = modules.trees[path]
        self.scope = Scope("module", None, self.module)
        bind_block(self.scope, self.tree.body, modules)
        self.infos: list[nodes.TypeInfo | None] = []
        self.docs: set[int] = set()
        self.loose_hits: set[str] = set()
        self.local = names.locals_of(self.module)

    # places

    def offset(self, line: int, column: int) -> int:
        return self.lines[line - 1] + column

    def put(self, start: int, old: str, new: str) -> None:
        if old == new:
            return
        end = start + len(old.encode())
        if self.source[start:end].decode() != old:
            problem(f"{self.path}: {old!r} is not at {start}: {self.source[start:end]!r}")
            return
        self.edits[start, end] = new

    def where(self, node: ast.AST) -> str:
        return f"{self.path}:{getattr(node, 'lineno', 0)}"

    # names

    def new_top(self, full: str) -> str | None:
        """The new name of the module's member of that full name."""
        full = self.modules.origin(full)
        module, _, name = full.rpartition(".")
        return self.names.names.get(module, {}).get(name)

    def new_module(self, module: str) -> str:
        return NEW_MODULES.get(module, module)

    def name(self, node: ast.AST, name: str, start: int) -> None:
        scope = self.scope.find(name)
        if scope is None:
            return
        new = self.meaning(scope, name)
        if new is not None:
            self.put(start, name, new)

    def meaning(self, scope: Scope, name: str) -> str | None:
        full = scope.bound[name]
        if not full:
            new = self.local.get(f"{scope.full.rpartition('.')[2]}.{name}", self.local.get(name))
            if new == name:
                return None
            if (
                new is not None
                and new in scope.bound
                and not self.goes(scope, new)
                and f"{self.path}:{new}" not in self.names.allowed
            ):
                problem(f"{self.path}: local {name} -> {new}: {scope.full} has a {new} already")
            if new is not None:
                scope.renamed[name] = new
            return new
        if scope.kind == "class" and full == f"{scope.full}.{name}":
            info = self.infos_by_scope.get(id(scope))
            return self.members.table.get((info.fullname, name)) if info else None
        last = full.rpartition(".")[2]
        if full in NEW_MODULES and last == name:
            return NEW_MODULES[full].rpartition(".")[2] if "." in full else NEW_MODULES[full]
        if full != f"{self.module}.{name}" and last != name:
            # an alias of its own: it is renamed as a local is
            return self.local.get(name)
        return self.new_top(full)

    def goes(self, scope: Scope, name: str) -> bool:
        """Whether a local gets another name itself."""
        return (
            scope.bound.get(name) == ""
            and self.local.get(f"{scope.full.rpartition('.')[2]}.{name}", self.local.get(name, name)) != name
        )

    infos_by_scope: dict[int, nodes.TypeInfo]

    def run(self) -> bytes:
        self.infos_by_scope = {}
        self.collisions()
        for statement in self.tree.body:
            if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "__all__":
                for part in ast.walk(statement.value):
                    if (
                        isinstance(part, ast.Constant)
                        and isinstance(part.value, str)
                        and part.value in self.scope.bound
                    ):
                        new = self.meaning(self.scope, part.value)
                        if new is not None:
                            self.put(self.offset(part.lineno, part.col_offset) + 1, part.value, new)
        for statement in self.tree.body:
            self.visit(statement)
        for prefix, renamed in self.names.strings.items():
            if self.path.startswith(prefix):
                self.literals(renamed)
        out, last = [], 0
        for (start, end), new in sorted(self.edits.items()):
            out += [self.source[last:start], new.encode()]
            last = end
        return b"".join([*out, self.source[last:]])

    def collisions(self) -> None:
        """A name of the module must not become what another name of it is."""
        after: dict[str, str] = {}
        for name in self.scope.bound:
            new = self.meaning(self.scope, name) or name
            if new in after and f"{self.path}:{new}" not in self.names.allowed:
                problem(f"{self.path}: {after[new]} and {name} would both be {new}")
            after[new] = name

    def literals(self, renamed: dict[str, str]) -> None:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in renamed:
                start = self.offset(node.lineno, node.col_offset)
                end = self.offset(node.end_lineno or 0, node.end_col_offset or 0)
                text = self.source[start:end].decode()
                at = text.find(node.value)
                if at >= 0:
                    self.put(start + len(text[:at].encode()), node.value, renamed[node.value])
                    STRING_HITS.add(node.value)

    # visits

    def visit_Name(self, node: ast.Name) -> None:
        self.name(node, node.id, self.offset(node.lineno, node.col_offset))

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self.visit(node.value)
        start = self.offset(node.end_lineno or 0, node.end_col_offset or 0) - len(node.attr.encode())
        full = self.dotted(node)
        if full is not None:
            if full in NEW_MODULES and "." in full:
                self.put(start, node.attr, NEW_MODULES[full].rpartition(".")[2])
                return
            new = self.new_top(full)
            if new is not None:
                self.put(start, node.attr, new)
                return
        if node.attr not in OLD_MEMBERS:
            return
        if full is not None and full.rpartition(".")[0] in self.modules.path:
            return
        infos = self.receiver(node.value)
        if infos is None:
            self.unresolved(node, start)
            return
        try:
            new = self.members.new_name(infos, node.attr)
        except Problem as error:
            problem(f"{self.where(node)}: {error}")
            return
        if new is not None:
            self.put(start, node.attr, new)

    def receiver(self, node: ast.expr) -> list[nodes.TypeInfo] | None:
        if isinstance(node, ast.Call) and ast.unparse(node) == "super()":
            scope: Scope | None = self.scope
            while scope is not None and scope.kind != "class":
                scope = scope.parent
            info = self.infos_by_scope.get(id(scope))
            return [base.type for base in info.bases] if info is not None else None
        found = self.typed(node)
        if found is None:
            last = re.search(r"(\w+)$", ast.unparse(node))
            owner = self.names.receivers.get(last[1]) if last else None
            if owner is not None:
                return [self.members._infos[owner]]
        return found

    def typed(self, node: ast.expr) -> list[nodes.TypeInfo] | None:
        kind = self.world.type_of(self.path, node)
        if kind is None and (full := self.dotted(node)) is not None:
            info = self.members._infos.get(self.modules.origin(full))
            if info is not None:
                return [info]
            if full.split(".")[0] not in self.modules.path and full.split(".")[0] not in {"a2a_serverless", "tests"}:
                return []
        return infos_of(kind)

    def unresolved(self, node: ast.Attribute, start: int) -> None:
        for prefix, renamed in self.names.loose.items():
            if self.path.startswith(prefix) and node.attr in renamed:
                LOOSE_HITS.add((prefix, node.attr))
                self.put(start, node.attr, renamed[node.attr])
                return
        problem(f"{self.where(node)}: .{node.attr} of an unknown type: {ast.unparse(node)[:80]}")

    def dotted(self, node: ast.expr) -> str | None:
        """The full name of what a dotted expression of modules means, None when it does not begin with one."""
        parts = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return None
        scope = self.scope.find(node.id)
        if scope is None or not scope.bound[node.id]:
            return None
        full = scope.bound[node.id]
        return ".".join([full, *reversed(parts)])

    def visit_keyword(self, node: ast.keyword) -> None:
        self.visit(node.value)

    def visit_Call(self, node: ast.Call) -> None:
        self.visit(node.func)
        for argument in node.args:
            self.visit(argument)
        for keyword in node.keywords:
            if keyword.arg is not None:
                self.keyword(node, keyword)
            self.visit(keyword.value)
        name = ast.unparse(node.func)
        if name in {"cast", "TypeVar", "NewType"}:
            for argument in [*node.args[:1], *(k.value for k in node.keywords if k.arg == "bound")]:
                self.annotation(argument)

    def keyword(self, call: ast.Call, keyword: ast.keyword) -> None:
        name = keyword.arg or ""
        if name not in OLD_MEMBERS and name not in self.local:
            return
        start = self.offset(keyword.lineno, keyword.col_offset)
        new = self.parameter(call, name, keyword)
        if new is not None:
            self.put(start, name, new)

    def parameter(self, call: ast.Call, name: str, keyword: ast.keyword) -> str | None:
        called = ast.unparse(call.func)
        if called in {"replace", "dataclasses.replace"} and call.args:
            infos = self.receiver(call.args[0])
            if infos is None:
                problem(f"{self.where(keyword)}: replace({name}=) of an unknown type")
                return None
            return self.members.new_name(infos, name)
        target: ast.expr = call.func
        if called in {"partial", "functools.partial", "builds", "st.builds"} and call.args:
            target = call.args[0]
        for found in self.world.at(self.path, target):
            kind = self.world.types.get(found)
            if kind is not None:
                return self.of_callable(kind, name, keyword)
        full = self.dotted(target)
        if full and (info := self.members._infos.get(self.modules.origin(full))) is not None:
            return self.of_class(info, name)
        if full and full.split(".")[0] not in {"a2a_serverless", "tests", "receiver"}:
            return None
        problem(f"{self.where(keyword)}: {name}= of an unknown callable {called}")
        return None

    def of_class(self, info: nodes.TypeInfo, name: str) -> str | None:
        if info.fullname not in self.members._ours and not any(b.fullname in self.members._ours for b in info.mro):
            return None
        init = next(
            (base for base in info.mro if "__init__" in base.names and base.fullname != "builtins.object"), None
        )
        if init is not None and not init.names["__init__"].plugin_generated:
            return self.local_of(init.fullname, name) if init.fullname in self.members._ours else None
        return self.members.new_name([info], name)

    def local_of(self, full: str, name: str) -> str | None:
        """The new name of a parameter of a function that is defined in the module of ``full``."""
        module = full
        while module and module not in self.modules.path:
            module = module.rpartition(".")[0]
        if not module:
            return None
        local = self.names.locals_of(module)
        return local.get(f"{full.rpartition('.')[2]}.{name}", local.get(name))

    def of_callable(self, kind: types.Type, name: str, keyword: ast.keyword) -> str | None:
        kind = types.get_proper_type(kind)
        if isinstance(kind, types.Overloaded):
            kind = kind.items[0]
        if isinstance(kind, types.UnionType):
            kind = next(
                (
                    types.get_proper_type(i)
                    for i in kind.items
                    if isinstance(types.get_proper_type(i), types.CallableType)
                ),
                kind,
            )
        if isinstance(kind, types.TypeType):
            kind = types.get_proper_type(kind.item)
            if isinstance(kind, types.Instance):
                return self.of_class(kind.type, name)
        if isinstance(kind, types.CallableType):
            if kind.is_type_obj():
                out = types.get_proper_type(kind.ret_type)
                if isinstance(out, types.TupleType):
                    out = out.partial_fallback
                return self.of_class(out.type, name) if isinstance(out, types.Instance) else None
            if name not in kind.arg_names:
                return self.into_stars(kind, name, keyword)
            definition = kind.definition
            if definition is None or not definition.fullname:
                problem(f"{self.where(keyword)}: {name}= of a callable without a definition")
                return None
            if definition.fullname.split(".")[0] in {m.split(".")[0] for m in self.modules.path}:
                return self.local_of(definition.fullname, name)
            return None
        if isinstance(kind, types.Instance) and kind.type.fullname.split(".")[0] in {
            "a2a_serverless",
            "tests",
            "receiver",
        }:
            call = kind.type.get_method("__call__")
            return (
                self.local_of(call.fullname, name)
                if call is not None and call.fullname.split(".")[0] in {"a2a_serverless", "tests", "receiver"}
                else None
            )
        if isinstance(kind, types.AnyType):
            problem(f"{self.where(keyword)}: {name}= of a callable of unknown type")
        return None

    def into_stars(self, kind: types.CallableType, name: str, keyword: ast.keyword) -> str | None:
        """The new name of a keyword that goes into ``**`` of a function: the map has to say it."""
        definition = kind.definition
        full = definition.fullname if definition is not None else ""
        if full.split(".")[0] not in {"a2a_serverless", "tests", "receiver", ""} or full.endswith(
            (".count", ".measure")
        ):
            return None
        new = self.names.starred.get((self.path, name))
        if new is None and (name in self.local or name in self.names.every):
            problem(
                f"{self.where(keyword)}: starred {self.path} {name} -> {self.names.every.get(name) or self.local.get(name)}"
            )
        return None if new == name else new

    def function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for part in node.decorator_list:
            self.visit(part)
        self.named(node)
        arguments = node.args
        every = [
            *arguments.posonlyargs,
            *arguments.args,
            *arguments.kwonlyargs,
            *filter(None, (arguments.vararg, arguments.kwarg)),
        ]
        for default in [*arguments.defaults, *arguments.kw_defaults]:
            if default is not None:
                self.visit(default)
        for argument in every:
            if argument.annotation is not None:
                self.annotation(argument.annotation)
        if node.returns is not None:
            self.annotation(node.returns)
        scope = Scope("function", self.scope, f"{self.scope.full}.{node.name}")
        for argument in every:
            scope.bound[argument.arg] = ""
        outer = {n for s in ast.walk(node) if isinstance(s, (ast.Global, ast.Nonlocal)) for n in s.names}
        bind_block(scope, node.body, self.modules)
        for name in outer:
            scope.bound.pop(name, None)
        self.scope = scope
        for argument in every:
            new = self.meaning(scope, argument.arg)
            if new is not None:
                self.put(self.offset(argument.lineno, argument.col_offset), argument.arg, new)
        for statement in node.body:
            self.visit(statement)
        self.clash(scope, node)
        for part in node.decorator_list:
            self.parametrized(part, scope)
        if node.name.startswith("test_") or any("fixture" in ast.unparse(d) for d in node.decorator_list):
            for argument in every:
                same = self.names.names.get(self.module, {}).get(argument.arg)
                if argument.arg in scope.renamed and argument.arg in FIXTURES and same != scope.renamed[argument.arg]:
                    problem(f"{self.where(node)}: {argument.arg} is a fixture")
        self.scope = scope.parent or scope

    def parametrized(self, node: ast.expr, scope: Scope) -> None:
        """The parameters that a decorator of pytest names in a text."""
        if not isinstance(node, ast.Call) or not ast.unparse(node.func).endswith("parametrize") or not node.args:
            return
        for part in ast.walk(node.args[0]):
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                new = re.sub(r"\w+", lambda m: scope.renamed.get(m[0], m[0]), part.value)
                if new != part.value:
                    self.replace_text(part, part.value, new)

    def clash(self, scope: Scope, node: ast.AST) -> None:
        """A renamed local must not hide what the function uses by that very name."""
        used = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        for old, new in scope.renamed.items():
            if new in used and f"{self.path}:{new}" not in self.names.allowed:
                other = scope.find(new)
                later = self.meaning(other, new) if other is not None and other is not scope else None
                if (other is None or later is None) and not self.goes(scope, new):
                    problem(f"{self.where(node)}: local {old} -> {new} hides a {new} that is used in it")
        if scope.parent is not None and scope.kind == "function":
            for old, new in scope.renamed.items():
                for n in ast.walk(node):
                    if isinstance(n, ast.Name):
                        where = scope.find(n.id)
                        if (
                            where is not None
                            and where.kind == "module"
                            and n.id != old
                            and self.meaning(where, n.id) == new
                        ):
                            problem(f"{self.where(node)}: local {old} -> {new} hides module's {n.id} -> {new}")

    visit_FunctionDef = function
    visit_AsyncFunctionDef = function

    def named(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        new = self.meaning(self.scope, node.name)
        if new is None:
            return
        start = self.offset(node.lineno, node.col_offset)
        match = re.compile(rb"(?:async\s+)?(?:def|class)\s+").match(self.source, start)
        assert match is not None
        self.put(match.end(), node.name, new)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        scope = Scope("function", self.scope, f"{self.scope.full}.<lambda>")
        arguments = node.args
        every = [
            *arguments.posonlyargs,
            *arguments.args,
            *arguments.kwonlyargs,
            *filter(None, (arguments.vararg, arguments.kwarg)),
        ]
        for default in [*arguments.defaults, *arguments.kw_defaults]:
            if default is not None:
                self.visit(default)
        for argument in every:
            scope.bound[argument.arg] = ""
        self.scope = scope
        for argument in every:
            new = self.meaning(scope, argument.arg)
            if new is not None:
                self.put(self.offset(argument.lineno, argument.col_offset), argument.arg, new)
        self.visit(node.body)
        self.clash(scope, node)
        self.scope = scope.parent or scope

    def comprehension(self, node: Any) -> None:
        self.visit(node.generators[0].iter)
        scope = Scope("comprehension", self.scope, self.scope.full)
        for generator in node.generators:
            bound = Scope("function", None, "")
            bind_target(bound, generator.target)
            scope.bound.update(bound.bound)
        self.scope = scope
        for number, generator in enumerate(node.generators):
            if number:
                self.visit(generator.iter)
            self.visit(generator.target)
            for condition in generator.ifs:
                self.visit(condition)
        for part in ("elt", "key", "value"):
            if hasattr(node, part):
                self.visit(getattr(node, part))
        self.clash(scope, node)
        self.scope = scope.parent or scope

    visit_ListComp = comprehension
    visit_SetComp = comprehension
    visit_DictComp = comprehension
    visit_GeneratorExp = comprehension

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for part in [*node.decorator_list, *node.bases]:
            self.visit(part)
        for keyword in node.keywords:
            self.visit(keyword.value)
        self.named(node)
        info = self.world.class_at.get((self.path, node.lineno))
        if info is None:
            problem(f"{self.where(node)}: mypy does not know class {node.name}")
            return
        scope = Scope("class", self.scope, f"{self.scope.full}.{node.name}")
        bind_block(scope, node.body, self.modules)
        self.infos_by_scope[id(scope)] = info
        self.scope = scope
        for statement in node.body:
            if isinstance(statement, ast.Assign) and any(
                isinstance(t, ast.Name) and t.id in {"__slots__", "__match_args__"} for t in statement.targets
            ):
                self.member_strings(statement.value, info)
            self.visit(statement)
        self.scope = scope.parent or scope

    def member_strings(self, value: ast.expr, info: nodes.TypeInfo) -> None:
        for part in ast.walk(value):
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                new = self.members.new_name([info], part.value)
                if new is not None:
                    self.put(self.offset(part.lineno, part.col_offset) + 1, part.value, new)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self.visit(node.target)
        self.annotation(node.annotation)
        if node.value is not None:
            if "TypeAlias" in ast.unparse(node.annotation):
                self.annotation(node.value)
            else:
                self.visit(node.value)

    def annotation(self, node: ast.expr) -> None:
        """An annotation: texts in it are expressions too."""
        self.visit(node)
        for part in ast.walk(node):
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                self.quoted(part)
            if isinstance(part, ast.Subscript) and ast.unparse(part.value) == "Literal":
                return

    def quoted(self, node: ast.Constant) -> None:
        value = str(node.value)
        try:
            inner: ast.expr = ast.parse(value, mode="eval").body
        except SyntaxError:
            return
        start = self.offset(node.lineno, node.col_offset)
        text = self.source[start : self.offset(node.end_lineno or 0, node.end_col_offset or 0)].decode()
        at = text.find(value)
        if at < 0:
            return
        for part in ast.walk(inner):
            if isinstance(part, ast.Name):
                self.name(part, part.id, start + at + part.col_offset)
            elif isinstance(part, ast.Attribute):
                full = self.dotted(part)
                new = self.new_top(full) if full is not None else None
                if new is not None:
                    self.put(start + at + (part.end_col_offset or 0) - len(part.attr), part.attr, new)

    def visit_Constant(self, node: ast.Constant) -> None:
        value = node.value
        if not isinstance(value, str) or "\n" in value:
            return
        port, _, member = value.partition(".")
        if member in OLD_MEMBERS and port in self.names.receivers:
            new = self.members.new_name([self.members._infos[self.names.receivers[port]]], member)
            if new is not None:
                self.replace_text(node, value, f"{port}.{new}")
            return
        if re.fullmatch(r"[\w.]+(:\w+)?", value):
            module, _, rest = value.partition(":")
            new = self.new_path(module)
            if rest:
                new += ":" + (self.names.names.get(module, {}).get(rest) or rest)
            if new != value:
                self.replace_text(node, value, new)
                return
        elif re.fullmatch(r"['\w.\[\], |]+", value) and re.search(r"[|\[]", value):
            try:
                ast.parse(value, mode="eval")
            except SyntaxError:
                return
            self.quoted(node)
            return
        if "/" in value or value.endswith(".py") or "a2a_serverless." in value:
            new = dotted_text(new_paths(value))
            if new != value:
                self.replace_text(node, value, new)

    def replace_text(self, node: ast.Constant, old: str, new: str) -> None:
        start = self.offset(node.lineno, node.col_offset)
        end = self.offset(node.end_lineno or 0, node.end_col_offset or 0)
        text = self.source[start:end].decode()
        at = text.find(old)
        if at >= 0:
            self.put(start + len(text[:at].encode()), old, new)

    def new_path(self, dotted: str) -> str:
        """A dotted text with the new names of the module and of what it names in it."""
        parts = dotted.split(".")
        for size in range(len(parts), 0, -1):
            module = ".".join(parts[:size])
            if module in NEW_MODULES or (module in self.modules.path and size > 1):
                rest = parts[size:]
                if rest and rest[0] in self.names.names.get(module, {}):
                    rest[0] = self.names.names[module][rest[0]]
                if size == 1:
                    return dotted
                return ".".join([NEW_MODULES.get(module, module), *rest])
        return dotted

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            new = self.new_module(alias.name)
            self.put(self.offset(alias.lineno, alias.col_offset), alias.name, new)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        module = node.module or ""
        start = self.offset(node.lineno, node.col_offset)
        match = re.compile(rb"from\s+").match(self.source, start)
        assert match is not None
        new = self.new_module(module)
        self.put(match.end(), module, new)
        for alias in node.names:
            full = f"{module}.{alias.name}"
            if full in NEW_MODULES:
                to = NEW_MODULES[full]
                if to.rpartition(".")[0] != new:
                    problem(f"{self.where(node)}: {full} goes to another package")
                named: str | None = to.rpartition(".")[2]
            else:
                named = self.new_top(full)
            if named is not None:
                self.put(self.offset(alias.lineno, alias.col_offset), alias.name, named)
            if alias.asname and (short := self.local.get(alias.asname)) is not None:
                at = self.source.rfind(
                    alias.asname.encode(), 0, self.offset(alias.end_lineno or 0, alias.end_col_offset or 0)
                )
                self.put(at, alias.asname, short)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.type is not None:
            self.visit(node.type)
            if node.name and (new := self.local.get(node.name)) is not None:
                end = self.offset(node.type.end_lineno or 0, node.type.end_col_offset or 0)
                at = self.source.index(node.name.encode(), end)
                self.put(at, node.name, new)
        for statement in node.body:
            self.visit(statement)

    def visit_Nonlocal(self, node: ast.Nonlocal) -> None:
        for name in node.names:
            if name in self.local:
                at = self.source.index(name.encode(), self.offset(node.lineno, node.col_offset) + len("nonlocal"))
                self.put(at, name, self.local[name])

    def visit_MatchClass(self, node: ast.MatchClass) -> None:
        self.visit(node.cls)
        for name in node.kwd_attrs:
            if name in OLD_MEMBERS:
                problem(f"{self.where(node)}: a pattern with {name}=")
        for part in [*node.patterns, *node.kwd_patterns]:
            self.visit(part)

    def visit_MatchAs(self, node: ast.MatchAs) -> None:
        if node.pattern is not None:
            self.visit(node.pattern)
        if node.name and (new := self.local.get(node.name)) is not None:
            at = self.offset(node.end_lineno or 0, node.end_col_offset or 0) - len(node.name)
            self.put(at, node.name, new)


NEW_MODULES: dict[str, str] = {}
OLD_MEMBERS: set[str] = set()
STRING_HITS: set[str] = set()
FIXTURES: set[str] = set()
LOOSE_HITS: set[tuple[str, str]] = set()
PATHS: list[tuple[re.Pattern[str], str]] = []


def new_paths(text: str) -> str:
    for pattern, new in PATHS:
        text = pattern.sub(new, text)
    return text


# --- what is no Python -----------------------------------------------------------------------------------------------


class Texts:
    """Names in comments, docstrings and documents: only in code spelling, or where nothing else can be meant."""

    def __init__(self, names: Map, world_names: set[str]) -> None:
        table: dict[str, set[str]] = defaultdict(set)
        for renamed in names.names.values():
            for old, new in renamed.items():
                table[old].add(new)
        for renamed in names.members.values():
            for old, new in renamed.items():
                table[old].add(new)
        for old, new in names.every.items():
            table[old].add(new)
        self.unique = {old: next(iter(new)) for old, new in table.items() if len(new) == 1 and old not in world_names}
        self.task = names.members.get("a2a_serverless.domain.agent.AgentTask", {})
        self.qualified: dict[str, str] = {}
        for module, renamed in names.names.items():
            short = module.rpartition(".")[2]
            for old, new in renamed.items():
                if module.startswith("a2a_serverless."):
                    below = module.removeprefix("a2a_serverless.")
                    to = NEW_MODULES.get(module, module).removeprefix("a2a_serverless.")
                    self.qualified[f"{below}.{old}"] = f"{to}.{new}"
                    self.qualified[f"{short}.{old}"] = f"{to.rpartition('.')[2]}.{new}"
        for owner, renamed in names.members.items():
            module, _, kind = owner.rpartition(".")
            for old, new in renamed.items():
                to = names.names.get(module, {}).get(kind, kind)
                self.qualified[f"{kind}.{old}"] = f"{to}.{new}"
        self.modules = {
            m.removeprefix("a2a_serverless."): n.removeprefix("a2a_serverless.")
            for m, n in NEW_MODULES.items()
            if m.count(".") > 1 and m.startswith("a2a_serverless.")
        }

    def code(self, text: str, scope: dict[str, str]) -> str:
        """A piece of code in a text: every name in it that can mean one thing only."""

        def dotted(match: re.Match[str]) -> str:
            found = match[0]
            if found in self.qualified:
                return self.qualified[found]
            for old, new in self.modules.items():
                if found == old or found.startswith(old + "."):
                    found = new + found[len(old) :]
                    break
            parts = found.split(".")
            if parts[0] in scope:
                parts[0] = scope[parts[0]]
            elif len(parts) == 1 and (is_telling(parts[0]) or parts[0][0].isupper()) and parts[0] in self.unique:
                parts[0] = self.unique[parts[0]]
            if (
                len(parts) == 2
                and f"{match[0]}" not in self.qualified
                and parts[1] in self.unique
                and is_telling(parts[1])
            ):
                parts[1] = self.unique[parts[1]]
            return ".".join(parts)

        if re.search(r"[\w]/|\.(json|md|yaml|txt|mjs|html)\b", text):
            return new_paths(text)
        return re.sub(r"(?<![\w/.#-])[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*(?![\w/-])", dotted, text)

    def prose(self, text: str, scope: dict[str, str]) -> str:
        """A text: its code spans, and names that are no words."""
        out = []
        for number, piece in enumerate(re.split(r"(``[^`\n]+``|`[^`\n]+`)", text)):
            if number % 2:
                ticks = "``" if piece.startswith("``") else "`"
                out.append(ticks + self.code(piece.strip("`"), scope) + ticks)
                continue

            def bare(match: re.Match[str]) -> str:
                word = match[0]
                return self.unique[word] if word in self.unique and is_telling(word) else word

            out.append(re.sub(r"(?<![\w/.-])[A-Za-z_]\w*(?![\w/-])", bare, new_paths(piece)))
        return "".join(out)


def is_telling(word: str) -> bool:
    """Whether it is spelled as a name and not as a word: two humps or an underscore within."""
    return bool(re.search(r"[a-z0-9][A-Z]|[A-Za-z0-9]_[A-Za-z0-9]|^[A-Z]2[A-Z]", word))


def comments(path: str, source: bytes, texts: Texts, scope: dict[str, str]) -> bytes:
    """The source with new names in its comments and docstrings."""
    import tokenize

    text = source.decode()
    tree = ast.parse(text)
    docs = set()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            for one in body:
                if (
                    isinstance(one, ast.Expr)
                    and isinstance(one.value, ast.Constant)
                    and isinstance(one.value.value, str)
                ):
                    docs.add((one.value.lineno, one.value.col_offset))
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    edits = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        doc = (
            token.type == tokenize.STRING
            and (token.start[0], len(lines[token.start[0] - 1][: token.start[1]].encode())) in docs
        )
        if token.type == tokenize.COMMENT or doc:
            new = texts.prose(token.string, scope)
            if new != token.string:
                start = starts[token.start[0] - 1] + token.start[1]
                edits.append((start, start + len(token.string), new))
    for start, end, new in reversed(edits):
        text = text[:start] + new + text[end:]
    return text.encode()


def document(text: str, texts: Texts) -> str:
    """A document: prose, and blocks of code, whose names are those of the author's side."""
    out = []
    fence = language = ""
    for line in text.splitlines(keepends=True):
        mark = re.match(r"\s*(`{3,}|~{3,})(\w*)", line)
        if mark and not fence:
            fence = mark[1]
            language = mark[2]
            out.append(line)
        elif mark and line.strip() == fence:
            fence = ""
            out.append(line)
        elif fence:
            out.append(line if language == "python" else new_paths(line))
        else:
            out.append(texts.prose(line, {}))
    return "".join(out)


# --- the run ---------------------------------------------------------------------------------------------------------

UNTOUCHED = (
    "tests/baseline/corpus/",
    "tests/releases/1/",
    "tests/releases/2/",
    "docs/adr/",
    "CHANGELOG.md",
    "tests/renames/",
    "bench/results",
    "tests/data/",
    "requirements/",
    "LICENSE",
    "docs/renames.md",
)
TEXTUAL = {".md", ".toml", ".yaml", ".mjs", ".html", ".json", ".java", ".go", ".xml", ""}


def moves(names: Map, files: list[str]) -> dict[str, str]:
    """Every tracked file that gets another path."""
    out = {}
    for old, new in names.files.items():
        hits = [f for f in files if f == old or f.startswith(old + "/")]
        if not hits:
            problem(f"map: there is no file {old}")
        for hit in hits:
            to = new + hit[len(old) :]
            if to in files or (ROOT / to).exists():
                problem(f"map: {hit} -> {to}: it is there already")
            out[hit] = to
    return out


def prepare(names: Map, moved: dict[str, str]) -> None:
    for old, new in moved.items():
        if old.endswith(".py") and module_of(old) != module_of(new):
            NEW_MODULES[module_of(old)] = module_of(new)
            if old.endswith("__init__.py"):
                continue
            folder_old, folder_new = (
                module_of(str(Path(old).parent / "__init__.py")),
                module_of(str(Path(new).parent / "__init__.py")),
            )
            if folder_old != folder_new and not (ROOT / Path(old).parent / "__init__.py").exists():
                NEW_MODULES.setdefault(folder_old, folder_new)
    for renamed in names.members.values():
        OLD_MEMBERS.update(renamed)
    OLD_MEMBERS.update(names.every)
    for old, new in sorted(names.files.items(), key=lambda pair: -len(pair[0])):
        options = {old: new}
        parts_old, parts_new = old.split("/"), new.split("/")
        for cut in range(1, len(parts_old)):
            if parts_old[:cut] == parts_new[:cut] and len(parts_old) - cut >= 2:
                options["/".join(parts_old[cut:])] = "/".join(parts_new[cut:])
        for one, other in sorted(options.items(), key=lambda pair: -len(pair[0])):
            end = r"(?![\w-])" if old.endswith((".py", ".md", ".json")) else r"(?=/)"
            PATHS.append((re.compile(rf"(?<![\w/.-]){re.escape(one)}{end}"), other))
            if one.count("/") >= 1 and old.endswith(".py"):
                bare_old, bare_new = one.removesuffix(".py"), other.removesuffix(".py")
                if one.startswith(("shared/", "tests/", "a2a_serverless/")):
                    PATHS.append((re.compile(rf"(?<![\w/.-]){re.escape(bare_old)}(?![\w/.-])"), bare_new))


def dotted_text(text: str) -> str:
    """Full names of modules and of what they define, in what is no Python."""

    def new(match: re.Match[str]) -> str:
        parts = match[0].split(".")
        for size in range(len(parts), 0, -1):
            module = ".".join(parts[:size])
            if module in NEW_MODULES and (size > 1):
                return ".".join([NEW_MODULES[module], *parts[size:]])
        return match[0]

    return re.sub(r"(?<![\w/.-])(?:a2a_serverless|tests|webhook_receiver|receiver)(?:\.\w+)+", new, text)


def main() -> None:
    check = "--check" in sys.argv
    if not check and git("status", "--porcelain").strip() and "--dirty" not in sys.argv:
        raise SystemExit("commit first: the tree is not clean")
    names = Map((HERE / "map.txt").read_text())
    tracked = git("ls-files").split("\n")[:-1]
    files = [f for f in tracked if not f.startswith(UNTOUCHED)]
    python = [f for f in files if f.endswith(".py")]
    documents = [f for f in files if f.endswith(".md") and "```python" in (ROOT / f).read_text()]
    moved = moves(names, tracked)
    prepare(names, moved)
    world = World(python, documents)
    modules = Modules(python, documents)
    members = Members(names, world)
    for tree in modules.trees.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and any("fixture" in ast.unparse(d) for d in node.decorator_list):
                FIXTURES.add(node.name)
    for module, renamed in names.names.items():
        if module not in modules.path:
            problem(f"map: there is no module {module}")
            continue
        for old, new in renamed.items():
            if old not in modules.top[module]:
                problem(f"map: {module} has no {old}")
            if new in modules.top[module] and new not in renamed and f"{module}.{new}" not in names.allowed:
                problem(f"map: {module}.{old} -> {new}: there is a {new} already")
    elsewhere = {
        name
        for module, top in modules.top.items()
        for name, full in top.items()
        if full == f"{module}.{name}"
        and name not in names.names.get(module, {})
        and module.startswith(("a2a_serverless", "receiver", "elsewhere"))
    }
    texts = Texts(names, elsewhere)
    results: dict[str, bytes] = {}
    for path in [*python, *documents]:
        one = File(path, names, world, modules, members)
        try:
            results[path] = one.run()
        except Exception as error:
            problem(f"{path}: {type(error).__name__}: {error}")
            raise
        if path.endswith(".py"):
            scope = {name: one.new_top(full) or name for name, full in one.scope.bound.items() if full}
            results[path] = comments(path, results[path], texts, scope)
    for path in files:
        if path.endswith(".py") or Path(path).suffix not in TEXTUAL or (ROOT / path).is_symlink():
            continue
        text = results.get(path, (ROOT / path).read_bytes()).decode()
        text = document(text, texts) if path.endswith(".md") else new_paths(text)
        results[path] = dotted_text(text).encode()
    for prefix, old, new in names.text:
        hits = [path for path in results if path.startswith(prefix)]
        done = False
        for path in hits:
            if old.encode() in results[path]:
                results[path] = results[path].replace(old.encode(), new.encode())
                done = True
        if not done:
            problem(f"map: {prefix} has no text {old!r}")
    for prefix, renamed in names.strings.items():
        for old in renamed:
            if old not in STRING_HITS:
                problem(f"map: {prefix} has no string {old!r}")
    for prefix, renamed in names.loose.items():
        for old in renamed:
            if (prefix, old) not in LOOSE_HITS:
                problem(f"map: {prefix} has no .{old} of an unknown type")
    if PROBLEMS:
        print("\n".join(PROBLEMS))
        raise SystemExit(f"{len(PROBLEMS)} problems; nothing is written")
    if check:
        print(f"{sum(results[p] != (ROOT / p).read_bytes() for p in results)} files would change")
        return
    for path, content in results.items():
        if content != (ROOT / path).read_bytes():
            (ROOT / path).write_bytes(content)
    for old, new in moved.items():
        (ROOT / new).parent.mkdir(parents=True, exist_ok=True)
        git("mv", old, new)
    ruff = str(ROOT / ".venv/bin/ruff")
    subprocess.run([ruff, "check", "-q", "--select", "I,RUF022", "--fix", "."], cwd=ROOT, check=True)
    subprocess.run([ruff, "format", "-q", "."], cwd=ROOT, check=True)
    print(f"{len(results)} files read, {len(moved)} moved; then: make drawings")


if __name__ == "__main__":
    main()
