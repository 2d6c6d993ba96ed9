import json
import sys
from pathlib import Path

import pytest

from a2a_serverless.stack import sam
from a2a_serverless.stack.errors import StackError
from a2a_serverless.stack.paths import Paths, find

HERE = sam.Target(f"python{sys.version_info.major}.{sys.version_info.minor}", "x86_64")
# Stands in for SAM: writes what `sam build` writes, and counts its calls.
FAKE_SAM = """#!{python}
import pathlib, sys
folder = pathlib.Path(sys.argv[sys.argv.index("--build-dir") + 1])
(folder / "ApiFunction").mkdir(parents=True)
(folder / "ApiFunction/app.py").write_text("")
(folder / "template.yaml").write_text('{{"Resources": {{}}}}')
print("called", *sys.argv[1:])
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Paths:
    for name in (
        *sam.INPUTS,
        "functions/api/app.py",
        "shared/a2a_serverless/cli.py",
        ".a2a/venvs/emulator/bin/ministack",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"# {name}")
    program(tmp_path / ".a2a/venvs/sam/bin/sam", FAKE_SAM.format(python=sys.executable))
    (tmp_path / ".a2a/venvs/emulator/bin/ministack").chmod(0o755)
    return find(tmp_path)


def program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def test_a_build_of_unchanged_sources_is_the_one_that_is_there(checkout: Paths) -> None:
    first = sam.build(checkout, HERE)
    (checkout.root / "functions/api/__pycache__").mkdir()
    (checkout.root / "functions/api/__pycache__/app.pyc").write_text("compiled")
    again = sam.build(checkout, HERE)
    assert (first.fresh, again.fresh) == (True, False)
    assert first.path == again.path


@pytest.mark.parametrize("changed", ["template.yaml", "functions/api/app.py", "shared/a2a_serverless/cli.py"])
def test_a_changed_source_is_built(checkout: Paths, changed: str) -> None:
    first = sam.build(checkout, HERE)
    (checkout.root / changed).write_text("changed")
    assert sam.build(checkout, HERE).path != first.path


def test_only_the_newest_builds_are_kept(checkout: Paths) -> None:
    made = []
    for number in range(sam.KEPT_BUILDS + 2):
        (checkout.root / "template.yaml").write_text(str(number))
        made.append(sam.build(checkout, HERE).path)
    assert sorted(checkout.builds.iterdir()) == sorted(made[-sam.KEPT_BUILDS :])


def test_a_release_goes_where_sam_deploy_looks(checkout: Paths) -> None:
    assert sam.release(checkout, HERE) == checkout.root / ".aws-sam/build"
    assert (checkout.root / ".aws-sam/build/ApiFunction.zip").is_file()


def test_sam_gets_the_runtime_as_a_parameter_and_no_real_account(
    checkout: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_PROFILE", "production")
    program(checkout.sam, FAKE_SAM.format(python=sys.executable) + "import os; print(sorted(os.environ))\n")
    sam.build(checkout, HERE)
    said = checkout.log("sam-build").read_text()
    assert f"ParameterKey=Runtime,ParameterValue={HERE.runtime}" in said
    assert "AWS_PROFILE" not in said


def test_switches_are_added_to_functions_environments_and_nothing_else_changes() -> None:
    plain = {"Type": "AWS::Serverless::Function", "Properties": {"Timeout": 5}}
    told = {"Type": "AWS::Serverless::Function", "Properties": {"Environment": {"Variables": {"A": "1", "B": "2"}}}}
    template = {"Resources": {"Plain": plain, "Told": told, "Queue": {"Type": "AWS::SQS::Queue"}}, "Outputs": {}}
    before = json.dumps(template)
    found = sam.with_switches(template, {"B": "3"})
    assert found["Resources"]["Plain"]["Properties"] == {"Timeout": 5, "Environment": {"Variables": {"B": "3"}}}
    assert found["Resources"]["Told"]["Properties"] == {"Environment": {"Variables": {"A": "1", "B": "3"}}}
    assert found["Resources"]["Queue"] == {"Type": "AWS::SQS::Queue"}
    assert json.dumps(template) == before


def test_what_sam_says_last_is_the_reason_when_it_fails(checkout: Paths) -> None:
    program(checkout.sam, "#!/bin/sh\necho starting\necho 'Error: no such thing'\necho\nexit 1\n")
    with pytest.raises(StackError, match="sam build: Error: no such thing") as raised:
        sam.build(checkout, HERE)
    assert "log: .a2a/logs/sam-build.log" in str(raised.value)
    assert list(checkout.builds.glob("*")) == []


def test_a_checkout_that_is_not_set_up_says_what_helps(checkout: Paths) -> None:
    checkout.sam.unlink()
    with pytest.raises(StackError, match="what helps: make setup"):
        find(checkout.root)


def test_a_folder_without_a_template_is_no_checkout(tmp_path: Path) -> None:
    with pytest.raises(StackError, match=r"no template\.yaml"):
        find(tmp_path)
