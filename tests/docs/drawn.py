"""Parts of documents that are generated from the code; ``make drawings`` writes them again.

In a document such a part is between ``<!-- drawn: title -->`` and ``<!-- end -->``.
"""

from __future__ import annotations

import ast
import re
import tomllib
from typing import TYPE_CHECKING, Any

import typer
import yaml
from rich.markup import render as from_markup

import cost
import idle
import limits
from a2a_serverless.domain import record_names, values
from a2a_serverless.domain.challenges import WEBHOOKS
from a2a_serverless.domain.contents import LARGEST
from a2a_serverless.domain.metrics import METRICS
from a2a_serverless.domain.outside_events import EVENT_LIMIT
from a2a_serverless.domain.states import NEXT, TERMINAL
from a2a_serverless.engine.steps import MOST_ITEMS, UNFINISHED_LIMIT
from a2a_serverless.protocol.strict_json import LIMITS
from a2a_serverless.protocol.v1 import MAX_PAGE_SIZE
from a2a_serverless.services.webhooks import CONFIGS_PER_TASK
from a2a_serverless_tools.cli.app import COMMAND_LINES, make_app
from tests.costs import budgets
from tests.docs import evidence, reference, times
from tests.docs.chinese import in_chinese
from tests.docs.documents import ROOT
from tests.foreign import flows
from tests.requirements import Requirement, marked_tests
from tests.requirements import requirements as rows

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class _Template(yaml.SafeLoader):
    """Reads CloudFormation's tags as what they hold."""


def _any_tag(loader: yaml.SafeLoader, _: str, node: yaml.Node) -> object:
    if isinstance(node, yaml.ScalarNode):
        return loader.construct_scalar(node)
    if isinstance(node, yaml.SequenceNode):
        return loader.construct_sequence(node)
    assert isinstance(node, yaml.MappingNode)
    return loader.construct_mapping(node)


_Template.add_multi_constructor("!", _any_tag)


def template(name: str = "template.yaml") -> dict[str, Any]:
    """A template, without its functions resolved."""
    with (ROOT / name).open() as file:
        return dict(yaml.load(file, _Template))  # noqa: S506 - a safe loader


def states() -> str:
    """The state diagram, from the one table of transitions. That a state follows itself is not drawn."""
    lines = ["```mermaid", "stateDiagram-v2"]
    for before, after in NEXT.items():
        following = [state for state in NEXT if state and state in after and state is not before]
        lines += [f"  {_state(before)} --> {_state(state)}" for state in following]
    lines += [f"  {_state(state)} --> [*]" for state in NEXT if state in TERMINAL]
    return "\n".join([*lines, "```"])


def parameters() -> str:
    """The template's parameters, in the groups in which the console shows them."""
    found = template()
    lines = []
    for group in found["Metadata"]["AWS::CloudFormation::Interface"]["ParameterGroups"]:
        lines += ["", f"## {group['Label']['default']}", "", "| parameter | default | |", "|---|---|---|"]
        for name in group["Parameters"]:
            told = found["Parameters"][name]
            default = f"`{told['Default']}`" if told["Default"] != "" else ""
            lines.append(f"| `{name}` | {default} | {told['Description']}{_allowed(told)} |")
    return "\n".join(lines[1:])


def constants() -> str:
    """The constants of the template, which stand in one place of it, each with the comment beside it."""
    text = (ROOT / "template.yaml").read_text()
    block = text[text.index("\n  Settings:") : text.index("\nParameters:")]
    lines = ["| constant | value | |", "|---|---|---|"]
    for name, written, says in re.findall(r"^ +(\w+): (?:&\w+ )?(?!&)(\S+) # (\S.+)$", block, re.MULTILINE):
        value = written.strip('"')
        lines.append(f"| `{name}` | {f'`{value}`' if value else ''} | {says} |")
    return "\n".join(lines)


def commands() -> str:
    """Every command with what it is for, and an example."""
    lines = ["| command | |", "|---|---|"]
    for name, command in _commands(typer.main.get_command(make_app())):
        example = next(line for line in COMMAND_LINES if line == name or line.startswith(f"{name} "))
        summary = " ".join(from_markup(command.help or "").plain.split("\n\n")[0].split())
        lines.append(f"| `{name}` | {summary}<br>`a2a-serverless {example}` |")
    return "\n".join(lines)


def layers() -> str:
    """The layers of the package, from the top: an upper one may import a lower one."""
    return _drawn("layers")


def _drawn(contract_id: str) -> str:
    lines = [line.replace("(", "").replace(")", "") for line in _layers_of(contract_id)]
    lines = [line.replace(" : ", ", ") + ("   (may import each other)" if " : " in line else "") for line in lines]
    return "\n".join(["```text", *(line.replace(" | ", ", ") for line in lines), "```"])


def engine() -> str:
    """The modules of the engine, each above those that it imports: from their docstrings and imports."""
    package, rows = "a2a_serverless.engine", ["| module | is | imports |", "|---|---|---|"]
    for name in re.findall(r"\w+", " ".join(_layers_of("engine"))):
        tree = ast.parse((ROOT / "shared" / package.replace(".", "/") / f"{name}.py").read_text())
        title = " ".join((ast.get_docstring(tree) or "").partition("\n\n")[0].split())
        modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}
        below = sorted(module.removeprefix(f"{package}.") for module in modules if module.startswith(f"{package}."))
        rows.append(f"| `{name}` | {title.replace('``', '`')} | {', '.join(below)} |")
    return "\n".join(rows)


def _layers_of(contract_id: str) -> list[str]:
    with (ROOT / "pyproject.toml").open("rb") as file:
        contracts = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    (layers,) = [contract["layers"] for contract in contracts if contract["id"] == contract_id]
    return [str(layer) for layer in layers]


def metrics() -> str:
    """Every metric, as operators find it."""
    rows = [
        f"| `{name}` | {one.unit if one.unit != 'None' else ''} | "
        f"{f'`{one.dimension}`' if one.dimension else ''} | {one.description} |"
        for name, one in METRICS.items()
    ]
    return "\n".join(["| metric | unit | by | |", "|---|---|---|---|", *rows])


def bill() -> str:
    """The cost of a million tasks."""
    items = cost.bill(cost.Scale())
    run, left = cost.total(items), cost.total(items) - cost.free(items)
    where = f"prices of {cost.PRICES['as_of']}, {cost.PRICES['region']}"
    sums = f"**{run:.2f} USD** at list price; **{left:.2f} USD** after AWS's monthly free tier ({where})."
    return f"{cost.shown(items)}\n\n{sums}"


def request_limits() -> str:
    """What a request, a task and an owner may have at most; a setting of the template changes the limits of owners."""
    settings = template()["Metadata"]["Settings"]["Environment"]
    lines = ["| of | limit | at most | see, or what helps |", "|---|---|---:|---|"]
    for of, limit, most, helps in (*FIXED_LIMITS, *OWNER_LIMITS):
        bound = int(settings[most]) if isinstance(most, str) else most
        help_text = f"`{most}`{helps and f'; {helps}'}" if isinstance(most, str) else helps
        lines.append(f"| {of} | {limit} | {f'{bound:,}' if bound else 'no limit'} | {help_text} |")
    return "\n".join(lines)


# Of what, the limit, its number or the setting that has it, and what helps.
FIXED_LIMITS: tuple[tuple[str, str, int | str, str], ...] = (
    (
        "a request",
        "bytes of its body (a file of 4 MiB in base64)",
        LIMITS.body,
        "[upload](content.md#uploads) big files; 5.2 MB if it has many small values",
    ),
    ("", "values in its JSON", LIMITS.values, "send data as a file"),
    ("", "levels of its JSON", LIMITS.depth, ""),
    ("", "digits of an integer", LIMITS.digits, "send it as a text"),
    ("", "parts of a message", LIMITS.parts, "send several messages"),
    ("", "bytes of one `metadata`", LIMITS.metadata, ""),
    ("", "bytes of an id of a client", LIMITS.ident, ""),
    ("", "bytes of an uploaded file", LARGEST, ""),
    ("", "characters of a webhook's URL", LIMITS.url, ""),
    ("", "tasks in a page of `ListTasks`", MAX_PAGE_SIZE, "ask for the next page"),
    ("", "bytes of an event from outside", EVENT_LIMIT, "[waiting](waiting.md#events-from-outside)"),
    ("a task", "webhooks", CONFIGS_PER_TASK, "[webhooks](webhooks.md)"),
    ("", "characters of the name of a step", record_names.LIMIT, "[steps](steps.md)"),
    ("", "items of `task.map`", MOST_ITEMS, "[steps](steps.md#steps-over-items)"),
    ("", "runs in which one step is interrupted", UNFINISHED_LIMIT, "split the step"),
    ("", "bytes of a stored value", values.SIZE_LIMIT, "[values](task.md#values-by-key)"),
    ("", "characters of its key", values.KEY_LIMIT, ""),
)
OWNER_LIMITS: tuple[tuple[str, str, int | str, str], ...] = (
    ("an owner", "messages in a minute, with those of its tasks to agents here", "SENDS_PER_OWNER_PER_MINUTE", ""),
    ("", "open streams", "STREAMS_PER_OWNER", "a webhook needs none"),
    ("", "MiB of requested uploads in a day", "UPLOADED_MIB_PER_OWNER_PER_DAY", ""),
    ("", "webhooks registered in a day, with those deleted since", "WEBHOOKS_PER_OWNER_PER_DAY", ""),
    ("", "webhooks at a host that has answered no challenge", WEBHOOKS, "[the challenge](webhooks.md#the-challenge)"),
    ("", "USD for models in a day, by the recorded [usage](budgets.md#usage)", "USD_PER_OWNER_PER_DAY", ""),
    ("all owners", "open streams", "STREAMS_PER_DEPLOYMENT", ""),
)


def standing() -> str:
    """The monthly cost without calls."""
    return _standing(idle.basic())


def waiting() -> str:
    """The cost of a task that waits for its model, on Lambda and in a container."""
    return cost.shown_waiting((1, 10, 50, 100, 1000, 6000, 60_000, 360_000))


def standing_in_full() -> str:
    """The same with all metrics, alarms and the dashboard, and calls in every hour."""
    return _standing(idle.full())


def _standing(items: list[cost.Item]) -> str:
    return f"{cost.shown(items)}\n\n{idle.usd(items):.2f} USD a month at list price."


def requirements() -> str:
    """What the specification asks for, and what answers it."""
    ours = [one for one in rows() if one.ours]
    tested = sum(one.number in marked_tests() for one in ours)
    deviating = sum(bool(one.deviations) for one in ours)
    lines = [
        f"Of {len(rows())} rows {len(ours)} concern a server: {tested} have tests, {deviating} have deviations.",
        "",
        "| | section | level | what | answered by |",
        "|---:|---|---|---|---|",
    ]
    lines += [f"| {one.number} | {one.section} | {one.level} | {one.says} | {_answer(one)} |" for one in rows()]
    return "\n".join(lines)


def _answer(row: Requirement) -> str:
    if not row.ours:
        return f"({row.of}: {row.because})"
    deviations = [f"deviation [`{key}`](deviations.md)" for key in row.deviations]
    return "<br>".join([f"`{name}`" for name in marked_tests().get(row.number, [])] + deviations)


def models() -> str:
    """The models that are explored, with their states; ``make prove KIND=model`` compares the counts."""
    from tests.model.run import table

    return table()


def clients() -> str:
    """What each official client did in each place, as ``make clients`` saw it."""
    from tests.conformance.table import draw

    return draw()


DRAWINGS: dict[str, tuple[Path, Callable[[], str]]] = {
    "states": (ROOT / "docs" / "internals.md", states),
    "layers": (ROOT / "ARCHITECTURE.md", layers),
    "engine layers": (ROOT / "ARCHITECTURE.md", lambda: _drawn("engine")),
    "engine": (ROOT / "docs" / "internals.md", engine),
    "times": (ROOT / "docs" / "internals.md", times.table),
    "parameters": (ROOT / "docs" / "parameters.md", parameters),
    "constants": (ROOT / "docs" / "parameters.md", constants),
    "commands": (ROOT / "docs" / "commands.md", commands),
    "options": (ROOT / "docs" / "command-options.md", reference.options),
    "errors": (ROOT / "docs" / "errors.md", reference.error_table),
    "error bodies": (ROOT / "docs" / "errors.md", reference.error_examples),
    "errors in Chinese": (ROOT / "docs/zh" / "errors.md", lambda: in_chinese(reference.error_table())),
    "error bodies in Chinese": (ROOT / "docs/zh" / "errors.md", reference.error_examples),
    "python": (ROOT / "docs" / "python.md", reference.python_api),
    "metrics": (ROOT / "docs" / "operate.md", metrics),
    "metrics in Chinese": (ROOT / "docs/zh" / "operate.md", lambda: in_chinese(metrics())),
    "cost": (ROOT / "docs" / "cost.md", bill),
    "limits": (ROOT / "docs" / "scale.md", request_limits),
    "load": (ROOT / "docs" / "scale.md", lambda: limits.table(limits.Load(1))),
    "waiting cost": (ROOT / "docs" / "container.md", waiting),
    "standing cost": (ROOT / "docs" / "cost.md", standing),
    "standing cost in full": (ROOT / "docs" / "cost.md", standing_in_full),
    "requirements": (ROOT / "docs" / "requirements.md", requirements),
    "budgets": (ROOT / "docs" / "guarantees.md", budgets.table),
    "models": (ROOT / "docs" / "guarantees.md", models),
    "clients": (ROOT / "docs" / "clients.md", clients),
    "callers": (ROOT / "docs" / "call-from.md", flows.table),
    "evidence": (ROOT / "docs" / "evidence.md", evidence.table),
}


def isolation() -> str:
    """What strangers get; its own test holds it, because it is made by some thousand requests."""
    from tests.isolation.matrix import table

    return table()


def fairness() -> str:
    """How long owners wait beside a hostile one; its own test holds it."""
    from tests.fairness.run import Size, table

    return table(Size())


def roles() -> str:
    """What each function may do, beside what it was heard to do; its own test holds it."""
    from tests.roles.table import table

    return table()


def powers() -> str:
    """Who can do what by which policy; its own test holds it."""
    from tests.roles.powers import table

    return table()


DRAWN_SLOWLY: dict[str, tuple[Path, Callable[[], str]]] = {
    "isolation": (ROOT / "docs" / "isolation.md", isolation),
    "fairness": (ROOT / "docs" / "access.md", fairness),
    "fairness in Chinese": (ROOT / "docs/zh" / "access.md", lambda: in_chinese(fairness())),
    "roles": (ROOT / "docs" / "roles.md", roles),
    "powers": (ROOT / "docs" / "roles.md", powers),
}


def drawn_in(path: Path, title: str) -> str:
    """What stands in a document between the marks."""
    found = re.search(_marked(title), path.read_text(), re.DOTALL)
    assert found, f"{path.name} has no place for {title}"
    return found[2]


def _marked(title: str) -> str:
    return rf"(<!-- drawn: {title} -->\n\n)(.*?)(\n\n<!-- end -->)"


def _state(state: str | None) -> str:
    return "[*]" if state is None else state.replace("-", "_")


def _allowed(told: dict[str, Any]) -> str:
    values = told.get("AllowedValues")
    return f" ({', '.join(f'`{value}`' for value in values)})" if values and len(values) < 10 else ""


def _commands(group: Any, before: str = "") -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for name, command in group.commands.items():
        path = f"{before}{name}"
        found += _commands(command, f"{path} ") if hasattr(command, "commands") else [(path, command)]
    return found


def write(title: str, path: Path, draw: Callable[[], str]) -> None:
    """Draws anew what stands between the marks."""
    path.write_text(
        re.sub(_marked(title), lambda found: found[1] + draw() + found[3], path.read_text(), flags=re.DOTALL)
    )


if __name__ == "__main__":
    for each, (document, drawing) in (DRAWINGS | DRAWN_SLOWLY).items():
        write(each, document, drawing)
