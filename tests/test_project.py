"""The project of a folder: what ``pyproject.toml`` says, and what is said when it is missing or wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from a2a_serverless_tools.project import LIMIT, ProjectError, find_project, local_otel, otel_variables, read_project

WHOLE = """
[project]
name = "shop"
dependencies = ["numpy>=2"]

[tool.a2a-serverless]
agents = ["shop.tailor:tailor", "shop.more:agents"]
secrets = { openai = "shop/openai", weather = "ssm:/shop/weather" }

[tool.a2a-serverless.environment]
SHOP_NAME = "Tailor & Son"
"""
ROOT = Path(__file__).parents[1]


def project_in(folder: Path, text: str) -> Path:
    (folder / "pyproject.toml").write_text(text)
    return folder


def test_a_project_is_read_from_the_nearest_file_above(tmp_path: Path) -> None:
    inner = project_in(tmp_path, WHOLE) / "shop" / "deep"
    inner.mkdir(parents=True)
    project = find_project(inner)
    assert (project.root, project.name, project.source) == (tmp_path, "shop", tmp_path)
    assert project.agents == ("shop.tailor:tailor", "shop.more:agents")
    assert project.dependencies == ("numpy>=2",)
    assert project.environment == {"SHOP_NAME": "Tailor & Son"}
    assert project.secrets == {"openai": "shop/openai", "weather": "ssm:/shop/weather"}


def test_the_repository_is_a_project_whose_agents_are_the_samples() -> None:
    project = read_project(ROOT)
    assert (project.name, project.source) == ("a2a-serverless", ROOT / "shared")
    assert "sample_agents.document:document" in project.agents


def test_the_current_folder_is_where_the_search_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project_in(tmp_path, WHOLE))
    assert find_project().root == tmp_path


def test_without_a_project_the_error_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(ProjectError, match=r"no pyproject\.toml in .* or above: .*`a2a-serverless init NAME`"):
        find_project(tmp_path)


WRONG = {
    "no table": ("[project]\nname = 'x'\n", r"has no table \[tool.a2a-serverless\] with agents = \[\"package"),
    "no agents": ("[tool.a2a-serverless]\n", "agents: Field required"),
    "an empty list": ("[tool.a2a-serverless]\nagents = []\n", "agents: .* at least 1 item"),
    "no import path": ("[tool.a2a-serverless]\nagents = ['a.b']\n", "agents.0: .* pattern"),
    "another name": (
        "[tool.a2a-serverless]\nagents = ['a:b']\nagent = 1\n",
        r"agent: no such setting: did you mean agents\?",
    ),
    "a misspelled table": (
        "[tool.a2a-serverless]\nagents = ['a:b']\n[tool.a2a-serverless.enviroment]\nA = 'x'\n",
        r"enviroment: no such setting: did you mean environment\?",
    ),
    "a name like no other": ("[tool.a2a-serverless]\nagents = ['a:b']\nzzz = 1\n", "zzz: .*: one of agents, .*, vpc"),
    "a misspelled setting in a table": (
        "[tool.a2a-serverless]\nagents = ['a:b']\n[tool.a2a-serverless.functions.worker]\nmemmory = 512\n",
        r"functions.worker.memmory: no such setting: did you mean memory\?",
    ),
    "a table with an underscore": (
        "[tool.a2a_serverless]\nagents = ['a:b']\n",
        r"has the table \[tool.a2a_serverless\], which nothing reads: its name is \[tool.a2a-serverless\]",
    ),
    "a misspelled table beside ours": (
        "[tool.a2a-serverless]\nagents = ['a:b']\n[tool.a2a-servreless.environment]\nA = 'x'\n",
        r"has the table \[tool.a2a-servreless\]",
    ),
    "a table without tool": ("[a2a-serverless]\nagents = ['a:b']\n", r"has the table \[a2a-serverless\]"),
    "a number": ("[tool.a2a-serverless]\nagents = ['a:b']\nenvironment = { A = 1 }\n", "environment.A: .* string"),
    "a variable": (
        "[tool.a2a-serverless]\nagents = ['a:b']\nenvironment = { 'A-B' = '' }\n",
        "environment.A-B.*pattern",
    ),
    "a collector without a URL": (
        "[tool.a2a-serverless]\nagents = ['a:b']\notel = {}\n",
        "otel.endpoint: Field required",
    ),
    "a collector without http": (
        "[tool.a2a-serverless]\nagents = ['a:b']\notel = { endpoint = 'localhost:4317' }\n",
        "otel.endpoint: .* pattern",
    ),
    "more than all traces": (
        "[tool.a2a-serverless]\nagents = ['a:b']\notel = { endpoint = 'http://c', sampling = 2 }\n",
        "otel.sampling: .* less than or equal to 1",
    ),
    "headers that anybody on the way can read": (
        "[tool.a2a-serverless]\nagents = ['a:b']\notel = { endpoint = 'http://c:4318', headers-secret = 'otel' }\n",
        "otel: .* headers-secret needs an https endpoint, or one on this machine, not http://c:4318",
    ),
    "no such source": ("[tool.a2a-serverless]\nagents = ['a:b']\nsource = 'src'\n", "source = 'src' is not a folder"),
    "source elsewhere": ("[tool.a2a-serverless]\nagents = ['a:b']\nsource = '..'\n", "is outside of the project"),
    "no TOML": ("[tool", "is not valid: "),
    "too large": ("#" * (LIMIT + 1), "is larger than 1024 KB"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_file_is_named_with_what_is_wrong(tmp_path: Path, case: str) -> None:
    text, why = WRONG[case]
    with pytest.raises(ProjectError, match=why) as raised:
        read_project(project_in(tmp_path, text))
    assert str(tmp_path / "pyproject.toml") in str(raised.value)


OTEL = """
[tool.a2a-serverless]
agents = ["a:b"]
[tool.a2a-serverless.otel]
endpoint = "https://otel.example.com"
headers-secret = "ssm:/otel/headers"
sampling = 0.1
"""


def test_the_table_of_otel_becomes_variables_and_no_table_gives_no_variables(tmp_path: Path) -> None:
    project = read_project(project_in(tmp_path, OTEL))
    assert otel_variables(project) == {
        "OPEN_TELEMETRY": "on",
        "OTEL_EXPORTER_OTLP_ENDPOINT": "https://otel.example.com",
        "OTEL_HEADERS_SECRET": "ssm:/otel/headers",
        "OTEL_SERVICE_NAME": project.name,
        "OTEL_TRACES_SAMPLER_ARG": "0.1",
    }
    shown = otel_variables(read_project(project_in(tmp_path, f"{OTEL}content = true\n")))
    assert shown["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] == "true"
    without = read_project(project_in(tmp_path, OTEL.partition("[tool.a2a-serverless.otel]")[0]))
    assert (otel_variables(without), local_otel(without, {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c"})) == ({}, {})


def test_on_a_developers_machine_the_terminal_says_where_spans_go(tmp_path: Path) -> None:
    project = read_project(project_in(tmp_path, OTEL))
    said = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318", "OTHER": "x"}
    assert local_otel(project, said, "json") == {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}
    with pytest.raises(ProjectError, match=r"install a2a-serverless\[otel\]"):
        local_otel(project, said, "no_such.module")


@pytest.mark.parametrize("said", [{"OTEL_EXPORTER_OTLP_HEADERS": "x-key=k"}, {}], ids=["the terminal", "a secret"])
def test_the_terminal_too_sends_headers_by_https_or_to_this_machine_only(tmp_path: Path, said: dict[str, str]) -> None:
    project = read_project(project_in(tmp_path, OTEL))
    for url in ("https://c", "http://127.0.0.1:4318", "http://[::1]:4318", "http://localhost:4318", ""):
        assert local_otel(project, said | {"OTEL_EXPORTER_OTLP_ENDPOINT": url}, "json").keys() >= said.keys()
    with pytest.raises(ProjectError, match=r"headers .* need an https endpoint.*, not http://c\.example:4318"):
        local_otel(project, said | {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c.example:4318"}, "json")
