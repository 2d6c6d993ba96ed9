"""Counts the size and the shape of the source: lines, statements, functions, import cycles, class names used twice.

`python bench/sizes.py` counts this checkout, `--tree FOLDER` another one (for instance a worktree of an older commit),
`--json` prints JSON. Lines are physical lines. Statements are the nodes of the syntax tree that are statements, without
docstrings. A function's length is its number of lines without its decorators and its docstring. An import cycle is a
set of modules that reach each other by imports, of whatever kind: inside functions and for type checkers too.
"""

from __future__ import annotations

import argparse
import ast
import json
import sys
from collections import defaultdict
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import quantiles
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ("shared", "functions", "webhook_receiver", "tests", "bench")
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Size:
    """The size of one package: counts, and the lengths of its functions in lines (`median`, `p90`, `longest`)."""

    package: str
    files: int
    lines: int
    statements: int
    functions: int
    median: float
    p90: float
    longest: int


@dataclass(frozen=True)
class Shape:
    """The size and shape of a source tree."""

    sizes: list[Size]
    cycles: list[list[str]]
    repeated_classes: dict[str, list[str]]


def count(tree: Path) -> Shape:
    """Counts the source tree of a checkout."""
    parsed = {path.relative_to(tree): _parse(path) for source in SOURCES for path in _files(tree / source)}
    packages: dict[str, list[Path]] = defaultdict(list)
    for path in parsed:
        for package in _packages(path):
            packages[package].append(path)
    sizes = [_size(package, {path: parsed[path] for path in paths}, tree) for package, paths in packages.items()]
    library = {path: parsed[path] for path in parsed if path.parts[:2] == ("shared", "a2a_serverless")}
    return Shape(sorted(sizes, key=lambda size: size.package), _cycles(library), _repeated_classes(library))


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*.py")) if not {"node_modules", ".venv"} & set(path.parts))


def _parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"), str(path))


def _packages(path: Path) -> Iterator[str]:
    """Returns the packages that a file counts for: its top folder, the library or the samples, and their folders."""
    depth = 3 if path.parts[0] == "shared" else 1
    for parts in range(1, min(depth, len(path.parts) - 1) + 1):
        yield "/".join(path.parts[:parts])


def _size(package: str, modules: Mapping[Path, ast.Module], tree: Path) -> Size:
    lengths = [_length(node) for module in modules.values() for node in ast.walk(module) if isinstance(node, Function)]
    return Size(
        package,
        len(modules),
        sum(len((tree / path).read_text("utf-8").splitlines()) for path in modules),
        sum(_statements(module) for module in modules.values()),
        len(lengths),
        *(_quantiles(lengths)),
        max(lengths, default=0),
    )


def _quantiles(lengths: list[int]) -> tuple[float, float]:
    """Returns the median and the ninetieth percentile."""
    tenths = quantiles(lengths, n=10, method="inclusive") if len(lengths) > 1 else [0.0] * 9
    return tenths[4], tenths[8]


def _statements(module: ast.AST) -> int:
    return sum(isinstance(node, ast.stmt) and not _is_docstring(node) for node in ast.walk(module))


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _length(function: Function) -> int:
    docstring = function.body[0] if _is_docstring(function.body[0]) else None
    hidden = docstring.end_lineno - docstring.lineno + 1 if docstring and docstring.end_lineno else 0
    return (function.end_lineno or function.lineno) - function.lineno + 1 - hidden


def _repeated_classes(modules: Mapping[Path, ast.Module]) -> dict[str, list[str]]:
    """Returns classes whose name is used in several modules; those of one protocol version do not count."""
    paths: dict[str, list[str]] = defaultdict(list)
    for path, module in modules.items():
        for node in ast.walk(module):
            if isinstance(node, ast.ClassDef) and "protocol" not in path.parts:
                paths[node.name].append(_dotted(path))
    return {name: sorted(found) for name, found in sorted(paths.items()) if len(found) > 1}


def _cycles(modules: Mapping[Path, ast.Module]) -> list[list[str]]:
    names = {_dotted(path): path for path in modules}
    graph = {name: set(_imports(modules[path], name, path, names)) - {name} for name, path in names.items()}
    return [sorted(group) for group in _components(graph) if len(group) > 1]


def _dotted(path: Path) -> str:
    parts = path.with_suffix("").parts[1:]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports(module: ast.AST, name: str, path: Path, names: Mapping[str, Path]) -> Iterator[str]:
    for node in ast.iter_child_nodes(module):
        if isinstance(node, ast.ImportFrom):
            yield from _imported(node, name, path, names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in names)
        else:
            yield from _imports(node, name, path, names)


def _imported(node: ast.ImportFrom, name: str, path: Path, names: Mapping[str, Path]) -> Iterator[str]:
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    start = package[: len(package) - node.level + 1] if node.level else []
    module = ".".join([*start, *([node.module] if node.module else [])])
    for alias in node.names:
        found = f"{module}.{alias.name}"
        if found in names or module in names:
            yield found if found in names else module


def _components(graph: Mapping[str, set[str]]) -> Iterator[set[str]]:
    """Returns the strongly connected components: sets of modules that reach each other."""
    reached = {name: _reach(name, graph) for name in graph}
    seen: set[str] = set()
    for name in graph:
        if name not in seen:
            group = {name} | {other for other in reached[name] if name in reached[other]}
            seen |= group
            yield group


def _reach(name: str, graph: Mapping[str, set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = [name]
    while waiting:
        new = graph[waiting.pop()] - found
        found |= new
        waiting.extend(new)
    return found


def as_text(shape: Shape) -> str:
    """Formats the shape as a table."""
    head = f"{'package':44} files  lines  stmts  funcs  median  p90  longest"
    rows = [
        f"{size.package:44} {size.files:5} {size.lines:6} {size.statements:6} {size.functions:6}"
        f"  {size.median:6.0f} {size.p90:4.0f}  {size.longest:7}"
        for size in shape.sizes
    ]
    repeated = [f"  {name}: {', '.join(paths)}" for name, paths in shape.repeated_classes.items()]
    cycles = [f"  {' <-> '.join(cycle)}" for cycle in shape.cycles]
    totals = [f"import cycles: {len(cycles)}", *cycles, f"class names used twice: {len(repeated)}", *repeated]
    return "\n".join([head, *rows, *totals]) + "\n"


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description="Counts lines, statements, functions, import cycles.")
    parser.add_argument("--tree", type=Path, default=ROOT, help="the checkout that is counted (default: this one)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args()
    shape = count(given.tree)
    sys.stdout.write(json.dumps(asdict(shape), indent=1) + "\n" if given.json else as_text(shape))


if __name__ == "__main__":
    main()
