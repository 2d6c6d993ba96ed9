"""Only what changed is built; what is missing stops a build by name, before anything is replaced."""

import io
import json
import os
import re
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from a2a_serverless_tools.project import ProjectError
from a2a_serverless_tools.stack import local_stack, processes
from a2a_serverless_tools.stack.build import KEPT_BUILDS, build, functions_near_limit, release
from a2a_serverless_tools.stack.errors import StackError
from a2a_serverless_tools.stack.library import FILES
from a2a_serverless_tools.stack.paths import Paths, find
from a2a_serverless_tools.stack.targets import Build, Target
from tests.stack.projects import ELSEWHERE, FUNCTIONS, HERE, TEMPLATE, make_project, with_agent, write_program

pytestmark = pytest.mark.integration
ALL = sorted(f"{name.title()}Function" for name in FUNCTIONS)
SLEEP = "import time\ntime.sleep(600)\n"
INLINE = ("@agent(", '@agent(\n    runs="inline",')


@pytest.fixture
def project(tmp_path: Path) -> Paths:
    return make_project(tmp_path)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Paths:
    paths = make_project(tmp_path_factory.mktemp("original"))
    build(paths, HERE)
    paths.log("sam-build").unlink()
    return paths


@pytest.fixture
def built(original: Paths, tmp_path: Path) -> Paths:
    """A project that was built before."""
    copy = tmp_path / "built"
    shutil.copytree(original.root, copy, ignore=shutil.ignore_patterns(".a2a", "packages"))
    shutil.copytree(original.home, copy / ".a2a", symlinks=True, copy_function=os.link)
    return find(copy)


def edit(paths: Paths, file: str, before: str, after: str) -> None:
    path = paths.root / file
    path.write_text(path.read_text().replace(before, after, 1))


def names_in(build_folder: Path, function: str) -> set[str]:
    with zipfile.ZipFile(build_folder / f"{function}Function.zip") as archive:
        return set(archive.namelist())


def said(paths: Paths) -> str:
    return paths.log("sam-build").read_text()


# ---- What is built


def test_an_unchanged_project_is_not_built_again(project: Paths) -> None:
    first, again = build(project, HERE), build(project, HERE)
    assert (sorted(first.made), again.made, again.path) == (ALL, [], first.path)


def test_an_edited_agent_costs_one_zip_and_no_installation(built: Paths) -> None:
    edit(built, "my_agents/mine.py", 'f"Hello', 'f"Good morning')
    again = build(built, HERE)
    assert (again.made, built.log("sam-build").exists()) == (["WorkerFunction"], False)
    with zipfile.ZipFile(again.path / "WorkerFunction.zip") as archive:
        assert "Good morning" in archive.read("my_agents/mine.py").decode()


def test_a_new_description_goes_to_those_who_make_cards(built: Paths) -> None:
    edit(built, "my_agents/mine.py", 'description="', 'description="Most politely. ')
    assert sorted(build(built, HERE).made) == ["ApiFunction", "RotatorFunction", "WorkerFunction"]


def test_a_changed_function_is_built_alone(built: Paths) -> None:
    edit(built, "functions/relay/app.py", "print", "repr")
    assert build(built, HERE).made == ["RelayFunction"]


def test_a_changed_template_needs_no_new_zip(built: Paths) -> None:
    first = build(built, HERE)
    edit(built, "template.yaml", '"Resources"', '"Description": "Mine.", "Resources"')
    again = build(built, HERE)
    assert (again.made, again.template["Description"]) == ([], "Mine.")
    assert again.path != first.path


def test_a_projects_dependencies_go_where_agents_run_and_nowhere_else(built: Paths) -> None:
    edit(built, "pyproject.toml", '["a2a-serverless"]', '["a2a-serverless", "pydantic>=2", "six==1.17.0"]')
    build(built, HERE)
    installed = {line.split()[1] for line in said(built).splitlines() if "six==1.17.0" in line}
    assert installed == {"WorkerFunction"}


def test_an_inline_agents_code_and_dependencies_go_to_the_api_too(built: Paths) -> None:
    edit(built, "my_agents/mine.py", *INLINE)
    edit(built, "pyproject.toml", '["a2a-serverless"]', '["a2a-serverless", "six==1.17.0"]')
    made = build(built, HERE).path
    installed = {line.split()[1] for line in said(built).splitlines() if "six==1.17.0" in line}
    assert installed == {"ApiFunction", "WorkerFunction"}
    assert "my_agents/mine.py" in names_in(made, "Api")


WEB = "from fastapi import FastAPI\nfrom a2a_serverless.aws.agents_app import make_agents_app\napp = FastAPI()\n"
MOUNT = 'app.mount("/agents", make_agents_app())\n'


def with_application(paths: Paths, text: str) -> None:
    (paths.root / "my_agents/web.py").write_text(text)
    file = paths.root / "pyproject.toml"
    file.write_text(f'{file.read_text()}application = "my_agents.web:app"\n')


REFUSED = {
    "import not_there": "my_agents.web:app needs the module 'not_there', which is not there",
    "app = print": "my_agents.web:app is no FastAPI application but a builtins.builtin_function_or_method: name the",
    WEB: 'my_agents.web:app has no agents: add app.mount("/agents", make_agents_app())',
    WEB + MOUNT + MOUNT.replace("agents", "more", 1): "has the agents at /agents and /more",
}


@pytest.mark.parametrize(("text", "why"), REFUSED.items())
def test_an_application_that_cannot_be_served_ends_the_build_with_what_helps(built: Paths, text: str, why: str) -> None:
    with_application(built, text)
    with pytest.raises(ProjectError, match=re.escape(why)):
        build(built, HERE)
    assert not built.log("sam-build").exists()


def test_an_applications_dependencies_are_declared(built: Paths) -> None:
    with_application(built, f"import jsonschema\n{WEB}{MOUNT}")
    with pytest.raises(ProjectError, match="imports 'jsonschema' of the package jsonschema, which is not in"):
        build(built, HERE)


def test_only_those_who_read_the_manifest_have_it_and_only_the_worker_the_agent(built: Paths) -> None:
    made = build(built, HERE).path
    assert {name for name in FUNCTIONS if "agents.json" in names_in(made, name.title())} == {"api", "rotator", "worker"}
    assert {name for name in FUNCTIONS if "my_agents/mine.py" in names_in(made, name.title())} == {"worker"}


def test_the_functions_that_run_agents_know_the_digest_of_the_code_and_the_others_need_not_change(built: Paths) -> None:
    def codes() -> dict[str, str]:
        made, found = build(built, HERE).path, dict[str, str]()
        for name in ("Api", "Rotator", "Worker"):
            with zipfile.ZipFile(made / f"{name}Function.zip") as archive:
                found[name] = json.loads(archive.read("agents.json"))["code"]
        return found

    before = codes()
    edit(built, "my_agents/mine.py", "from", "# changed\nfrom")
    after = codes()
    assert (after["Api"], after["Rotator"]) == (before["Api"], before["Rotator"]) == ("", "")
    assert after["Worker"] not in {"", before["Worker"]}


def test_a_function_carries_the_packages_of_the_project_that_its_agents_import(built: Paths) -> None:
    for name, text in (("tools/words.py", "NICE = 'x'\n"), ("tools/words.txt", "a"), ("unused.py", ""), ("one.py", "")):
        (built.root / name).parent.mkdir(exist_ok=True)
        (built.root / name).write_text(text)
    with_agent(built.root, "from tools import words\n\ndef later():\n    import one\n")
    names = names_in(build(built, HERE).path, "Worker")
    assert {"tools/words.py", "tools/words.txt", "one.py"} <= names
    assert not {"unused.py", "pyproject.toml"} & names


def test_an_agent_keeps_the_data_of_every_aws_service_that_it_names(project: Paths) -> None:
    data = project.root / "packages/botocore/data"
    for service in ("dynamodb", "textract", "ec2"):
        (data / service).mkdir(parents=True)
        (data / service / "paginators-1.json").write_text("{}")
    with_agent(project.root, "def read():\n    import boto3\n    return boto3.client('textract')\n")
    made = build(project, HERE).path
    services = {name.split("/")[2] for name in names_in(made, "Worker") if name.startswith("botocore/data/")}
    assert services == {"dynamodb", "textract"}
    assert "botocore/data/textract/paginators-1.json" not in names_in(made, "Relay")


def test_new_code_of_the_rotator_and_new_settings_change_the_key_ring_so_that_they_are_tried(built: Paths) -> None:
    template = json.loads(built.template.read_text())
    template["Metadata"] = {"Settings": {"KEY_RING_ROTATION_DAYS": "30"}}
    template["Resources"]["KeyRing"] = {"Type": "Custom::KeyRing", "Properties": {"Digest": ""}}
    built.template.write_text(json.dumps(template))
    first = digest_of_key_ring(build(built, HERE))
    edit(built, "functions/relay/app.py", "print", "repr")
    assert digest_of_key_ring(build(built, HERE)) == first
    edit(built, "my_agents/mine.py", 'description="', 'description="Most politely. ')
    second = digest_of_key_ring(build(built, HERE))
    edit(built, "template.yaml", '"30"', '"31"')
    assert len({"", first, second, digest_of_key_ring(build(built, HERE))}) == 4


def digest_of_key_ring(made: Build) -> str:
    return str(made.template["Resources"]["KeyRing"]["Properties"]["Digest"])


def test_only_the_newest_builds_are_kept(built: Paths) -> None:
    made = []
    for number in range(KEPT_BUILDS + 2):
        edit(built, "functions/relay/app.py", "handler", f"name{number} = handler")
        made.append(build(built, HERE).path)
    assert sorted(built.builds.iterdir()) == sorted(made[-KEPT_BUILDS:])


def test_a_release_goes_where_sam_deploy_looks(built: Paths) -> None:
    assert release(built, HERE) == built.root / ".aws-sam/build"
    document = json.loads((built.root / ".aws-sam/build/template.yaml").read_text())
    assert document["Resources"]["ApiFunction"]["Properties"]["CodeUri"] == "ApiFunction.zip"
    assert (built.root / ".aws-sam/build/ApiFunction.zip").is_file()


def test_sam_gets_the_runtime_as_a_parameter_and_no_real_account(
    project: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_PROFILE", "production")
    build(project, HERE)
    assert f"ParameterKey=Runtime,ParameterValue={HERE.runtime}" in said(project)
    assert "AWS_PROFILE" not in said(project)


def test_a_failed_build_names_the_last_line_of_sam(project: Paths) -> None:
    write_program(project.sam, "#!/bin/sh\necho starting\necho 'Error: no such thing'\necho\nexit 1\n")
    with pytest.raises(StackError, match="sam build: Error: no such thing") as raised:
        build(project, HERE)
    assert "log: .a2a/logs/sam-build.log" in str(raised.value)
    assert not list(project.home.glob("*/*.zip"))


def test_a_template_of_something_else_is_not_built(project: Paths) -> None:
    project.template.write_text('{"Resources": {}}')
    with pytest.raises(StackError, match=r"template\.yaml has no WorkerFunction\n  what helps: without a"):
        build(project, HERE)


# ---- What is missing


MISSING = {
    "a module": ("import numpy.linalg", "my_agents.mine:mine needs the module 'numpy', which is not there"),
    "a name": ("unknown()", "my_agents.mine:mine cannot be imported: NameError: name 'unknown' is not defined"),
    "syntax": ("def (", "my_agents.mine:mine cannot be imported: SyntaxError: "),
    "a value": ("raise ValueError('no')", "my_agents.mine:mine cannot be imported: ValueError: no"),
    "a variable": (
        "import os\nKEY = os.environ['MY_KEY']",
        "my_agents.mine:mine needs the environment variable MY_KEY: set it in [tool.a2a-serverless.environment]",
    ),
    "a dependency": ("import pytest", "imports 'pytest' of the package pytest, which is not in [project] dependencies"),
    "a secret": (
        "async def look(task):\n    await task.secret('weather')\n",
        "my_agents/mine.py:4 reads the secret 'weather', which is not in [tool.a2a-serverless] secrets",
    ),
    "a secret of a signature": (
        "async def look(task):\n    await task.callback('paid', signed_with='stripe:payments')\n",
        "my_agents/mine.py:4 reads the secret 'payments', which is not in [tool.a2a-serverless] secrets",
    ),
}


@pytest.mark.parametrize("case", MISSING)
def test_a_build_names_missing_modules_variables_and_secrets_before_it_installs(project: Paths, case: str) -> None:
    source, reason = MISSING[case]
    with_agent(project.root, source)
    with pytest.raises(ProjectError) as raised:
        build(project, HERE)
    assert reason in str(raised.value)
    assert not (project.root / ".a2a/bases").exists()


def test_an_attribute_that_is_missing_is_named(tmp_path: Path) -> None:
    paths = make_project(tmp_path, agents=("my_agents.mine:mine", "my_agents.mine:yours", "my_agents.none:none"))
    with pytest.raises(ProjectError) as raised:
        build(paths, HERE)
    assert str(raised.value).splitlines() == [
        "my_agents.mine:yours is not an agent: my_agents.mine has no yours",
        "my_agents.none:none needs the module 'my_agents.none', which is not there",
    ]


def test_a_variable_of_the_project_is_there_when_an_agent_is_imported(built: Paths) -> None:
    edit(built, "pyproject.toml", "[tool.a2a-serverless]", '[tool.a2a-serverless]\nenvironment = { MY_KEY = "x" }')
    with_agent(built.root, "import os\nKEY = os.environ['MY_KEY']")
    assert build(built, HERE).made


FINE = """
try:
    import numpy  # a package that may be missing
except ImportError:
    numpy = None

def used():
    import numpy  # a package that is imported when it is used

print("hello", flush=True)
"""


@pytest.mark.parametrize("target", [HERE, ELSEWHERE], ids=["for this machine", "for another one"])
def test_an_agent_that_can_be_imported_is_built(project: Paths, target: Target) -> None:
    with_agent(project.root, FINE)
    assert (build(project, target).path / "WorkerFunction.zip").exists()


@pytest.mark.parametrize("target", [HERE, ELSEWHERE], ids=["for this machine", "for another one"])
def test_a_module_that_only_this_machine_has_stops_the_build(project: Paths, target: Target) -> None:
    edit(project, "pyproject.toml", '["a2a-serverless"]', '["a2a-serverless", "pyyaml"]')
    with_agent(project.root, "import yaml")
    with pytest.raises(StackError, match=r"needs the module 'yaml', which is not there \(in the zip of worker\)"):
        build(project, target)
    assert not list(project.home.glob("*/*.zip"))


QUICK = (FILES / "examples/hello_agent.py").read_text().replace("hello", "quick")


def with_inline_agent(project: Paths, source: str) -> None:
    """Adds an agent that runs in the api, in a module that begins with these lines."""
    (project.root / "my_agents/quick.py").write_text(f"{source}\n{QUICK}")
    edit(project, "pyproject.toml", "'my_agents.mine:mine'", "'my_agents.mine:mine', 'my_agents.quick:quick'")


@pytest.mark.parametrize("target", [HERE, ELSEWHERE], ids=["for this machine", "for another one"])
def test_the_api_needs_only_what_its_inline_agents_reach(project: Paths, target: Target) -> None:
    package = project.root / "packages-of-WorkerFunction/PIL"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (project.root / "functions/worker/requirements.txt").write_text("a2a-serverless\npillow\n")
    with_agent(project.root, "import PIL")
    with_inline_agent(project, "")
    made = build(project, target).path
    assert "my_agents/quick.py" in names_in(made, "Api")
    assert "PIL/__init__.py" in names_in(made, "Worker") - names_in(made, "Api")


REACHES = [
    "import tools.words",
    "from tools import words",
    "from tools.words import NICE",
    "from my_agents import near",
    "from . import near",
    "from .near import NICE",
]


@pytest.mark.parametrize("target", [HERE, ELSEWHERE], ids=["for this machine", "for another one"])
def test_a_build_stops_at_a_module_that_an_agent_imports_through_others(project: Paths, target: Target) -> None:
    (project.root / "tools").mkdir()
    (project.root / "tools/words.py").write_text("from tools.deep import NICE\n")
    (project.root / "tools/deep.py").write_text("import yaml\nNICE = 1\n")
    (project.root / "my_agents/near.py").write_text("from tools.words import NICE\n")
    edit(project, "pyproject.toml", '["a2a-serverless"]', '["a2a-serverless", "pyyaml"]')
    with_inline_agent(project, "")
    template = {name: TEMPLATE["Resources"][name] for name in ("ApiFunction", "WorkerFunction")}
    project.template.write_text(json.dumps({"Resources": template}))
    for reach in REACHES:
        (project.root / "my_agents/quick.py").write_text(f"{reach}\n{QUICK}")
        with pytest.raises(StackError, match=r"needs the module 'yaml', .* \(in the zip of api, worker\)"):
            build(project, target)


def test_importing_a_part_of_the_library_that_functions_lack_stops_the_build(built: Paths) -> None:
    with_agent(built.root, "from a2a_serverless.testing import AgentTestHarness")
    with pytest.raises(StackError, match=r"needs the module 'a2a_serverless\.testing', which is not there"):
        build(built, HERE)


@pytest.mark.enable_socket
def test_a_running_stack_is_left_as_it_is_when_an_agent_cannot_be_imported(project: Paths) -> None:
    with_agent(project.root, "import numpy")
    (project.root / "wait.py").write_text(SLEEP)
    for name in ("sam", "emulator"):
        mark = project.home / "venvs" / name / ".installed"
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch()
    emulator = processes.start(project, "emulator", ["sleep", "600"], {}, port=1)
    try:
        with pytest.raises(ProjectError, match="numpy"):
            local_stack.up(project, local_stack.Options(), Console(file=io.StringIO()))
        assert processes.started(project) == [emulator]
    finally:
        processes.stop(project, emulator)


def test_variables_of_the_project_are_set_where_agents_run(built: Paths) -> None:
    edit(built, "pyproject.toml", "[tool.a2a-serverless]", '[tool.a2a-serverless]\nenvironment = { MY_KEY = "x" }')
    resources = build(built, HERE).template["Resources"]
    found = {name: one["Properties"].get("Environment") for name, one in resources.items()}
    assert {name: one for name, one in found.items() if one} == {"WorkerFunction": {"Variables": {"MY_KEY": "x"}}}


FAR = "arn:aws:secretsmanager:eu-west-1:1:secret:far-abcdef"
SECRETS = f'secrets = {{ weather = "shop/weather", mail = "ssm:/shop/mail", far = "{FAR}" }}'
ROLE = {"Type": "AWS::IAM::Role", "Properties": {"Policies": [{"PolicyDocument": {"Statement": []}}]}}


def test_secrets_are_named_to_the_worker_which_alone_may_read_them(built: Paths) -> None:
    template = json.loads(built.template.read_text())
    template["Resources"] |= {"WorkerRole": ROLE, "ApiRole": ROLE}
    template["Resources"]["WorkerFunction"]["Properties"]["Role"] = {"Fn::GetAtt": ["WorkerRole", "Arn"]}
    built.template.write_text(json.dumps(template))
    edit(built, "pyproject.toml", "[tool.a2a-serverless]", f"[tool.a2a-serverless]\n{SECRETS}")
    resources = build(built, HERE).template["Resources"]
    (policy,) = resources["WorkerRole"]["Properties"]["Policies"]
    scope = "${AWS::Region}:${AWS::AccountId}"
    assert {one["Action"]: one["Resource"] for one in policy["PolicyDocument"]["Statement"]} == {
        "ssm:GetParameter": [{"Fn::Sub": f"arn:${{AWS::Partition}}:ssm:{scope}:parameter/shop/mail"}],
        "secretsmanager:GetSecretValue": [
            {"Fn::Sub": f"arn:${{AWS::Partition}}:secretsmanager:{scope}:secret:shop/weather-??????"},
            FAR,
        ],
    }
    assert resources["ApiRole"] == ROLE
    named = json.loads(resources["WorkerFunction"]["Properties"]["Environment"]["Variables"]["AGENT_SECRETS"])
    assert (named["weather"], named["mail"]) == ("shop/weather", "ssm:/shop/mail")


OTEL = '[tool.a2a-serverless.otel]\nendpoint = "https://otel.example.com"\nheaders-secret = "otel"\n'


def test_a_collector_is_named_to_the_functions_that_make_spans_which_may_read_its_headers(built: Paths) -> None:
    template = json.loads(built.template.read_text())
    for name in ("Api", "Relay", "Worker"):
        template["Resources"][f"{name}Role"] = json.loads(json.dumps(ROLE))
        template["Resources"][f"{name}Function"]["Properties"]["Role"] = {"Fn::GetAtt": [f"{name}Role", "Arn"]}
    built.template.write_text(json.dumps(template))
    without = build(built, HERE).template["Resources"]
    edit(built, "pyproject.toml", "[tool.a2a-serverless]", f"{OTEL}\n[tool.a2a-serverless]")
    first = build(built, HERE)
    edit(built, "pyproject.toml", "otel.example.com", "collector.example.com")
    again = build(built, HERE)
    resources = again.template["Resources"]
    assert sorted(first.made) == sorted(again.made) == ["ApiFunction", "WorkerFunction"]
    variables = {
        "OPEN_TELEMETRY": "on",
        "OTEL_EXPORTER_OTLP_ENDPOINT": "https://collector.example.com",
        "OTEL_HEADERS_SECRET": "otel",
        "OTEL_SERVICE_NAME": "mine",
        "OTEL_TRACES_SAMPLER_ARG": "1.0",
    }
    secret = "arn:${AWS::Partition}:secretsmanager:${AWS::Region}:${AWS::AccountId}:secret:otel-??????"
    statement = {"Effect": "Allow", "Action": "secretsmanager:GetSecretValue", "Resource": [{"Fn::Sub": secret}]}
    for name in ("Api", "Worker"):
        environment = resources[f"{name}Function"]["Properties"]["Environment"]["Variables"]
        assert environment == variables | {"OTEL_SERVICE_NAME": environment["OTEL_SERVICE_NAME"]}
        assert resources[f"{name}Role"]["Properties"]["Policies"][0]["PolicyDocument"]["Statement"] == [statement]
    assert "OTEL" not in json.dumps(without)
    assert (resources["RelayRole"], resources["RelayFunction"]["Properties"].get("Environment")) == (ROLE, None)
    asked = {line.split()[1]: line for line in said(built).splitlines() if line.startswith("installed")}
    assert {name for name, line in asked.items() if "opentelemetry-sdk" in line} == {"ApiFunction", "WorkerFunction"}


def test_a_variable_that_the_template_sets_is_refused(built: Paths) -> None:
    template = json.loads(built.template.read_text())
    template["Globals"] = {"Function": {"Environment": {"Variables": {"AGENT_URLS": ""}}}}
    built.template.write_text(json.dumps(template))
    edit(built, "pyproject.toml", "[tool.a2a-serverless]", '[tool.a2a-serverless]\nenvironment = { AGENT_URLS = "" }')
    with pytest.raises(ProjectError, match=r"environment\] sets AGENT_URLS, which the template sets"):
        build(built, HERE)


def test_a_secret_without_a_value_stops_up_before_anything_is_built(project: Paths) -> None:
    edit(project, "pyproject.toml", "[tool.a2a-serverless]", f"[tool.a2a-serverless]\n{SECRETS}")
    with pytest.raises(ProjectError, match="give them in A2A_SECRET_WEATHER, A2A_SECRET_MAIL, A2A_SECRET_FAR"):
        local_stack.up(project, local_stack.Options(), Console(file=io.StringIO()))
    assert not (project.root / ".a2a/bases").exists()


# ---- Lambda's limit of what a zip unpacks to


@pytest.fixture
def large(project: Paths) -> Callable[[int], Paths]:
    """The project, whose worker's package ``lancedb`` has so many MB."""

    def make(megabytes: int) -> Paths:
        package = project.root / "packages-of-WorkerFunction/lancedb"
        package.mkdir(parents=True)
        with (package / "native.so").open("wb") as file:
            file.truncate(megabytes * 1_000_000)
        project.sam.with_name("cfn-lint").symlink_to("/bin/true")
        return project

    return make


def test_a_function_that_is_too_large_for_lambda_is_not_released_and_its_packages_are_named(
    large: Callable[[int], Paths],
) -> None:
    paths = large(263)
    why = r"WorkerFunction\.zip unpacks to 2\d\d MB of 262 .* in MB: lancedb 263, pydantic_core \d+.*docs/container\.md"
    with pytest.raises(StackError, match=re.compile(why, re.DOTALL)):
        release(paths, HERE)
    assert not paths.release.exists()


def test_a_function_near_the_limit_is_named(large: Callable[[int], Paths]) -> None:
    assert [one.zip for one in functions_near_limit(release(large(210), HERE))] == ["WorkerFunction.zip"]


def test_lambda_gets_no_code_of_a_worker_that_runs_elsewhere_however_large(large: Callable[[int], Paths]) -> None:
    paths = large(263)
    document = TEMPLATE | {"Metadata": {"Settings": {"WorkerService": "ecs-tasks.amazonaws.com"}}}
    (paths.root / "template.yaml").write_text(json.dumps(document))
    folder = release(paths, HERE)
    worker = json.loads((folder / "template.yaml").read_text())["Resources"]["WorkerFunction"]["Properties"]
    assert (worker["Handler"], "CodeUri" in worker) == ("index.handler", False)
    assert "lancedb/native.so" in names_in(folder, "Worker")
    assert functions_near_limit(folder) == []
