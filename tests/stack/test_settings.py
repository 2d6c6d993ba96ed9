"""The settings of a project, in the template that the build makes from the library's; what a build would change."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless.http.runtime import APPLICATION_ROUTE
from a2a_serverless_tools.project import TIMEOUTS, ProjectError, read_project
from a2a_serverless_tools.stack.build import build, compare, release
from a2a_serverless_tools.stack.errors import StackError
from a2a_serverless_tools.stack.library import CHECKOUT
from a2a_serverless_tools.stack.new_project import eject
from a2a_serverless_tools.stack.packaging import functions_of
from a2a_serverless_tools.stack.paths import Paths, find
from a2a_serverless_tools.stack.sam import FUNCTIONS
from a2a_serverless_tools.stack.settings import remove_cost_alarm, serve_application, set_constants
from tests.functions.deployer import boundary
from tests.functions.template import parsed, template
from tests.functions.transformed import transform
from tests.roles.powers import Ask, is_allowed
from tests.stack.projects import HERE, make_project

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ALL = """
[tool.a2a-serverless.functions]
api = { memory = 2048, timeout = 600 }
worker = { memory = 3008, timeout = 300 }
notifier = { timeout = 120 }
relay = { memory = 256, timeout = 30 }
sweeper = { memory = 1024 }

[tool.a2a-serverless.constants]
TASK_RETENTION_DAYS = 90
WEBHOOK_OWNERSHIP = "warn"
AGENT_URLS = 'other=https://other.example.com/"a"'
WorkerConcurrency = 100
LogRetentionDays = 7

[tool.a2a-serverless.vpc]
subnets = ["subnet-0a1b2c3d", "subnet-1a2b3c4d"]
security-groups = ["sg-0a1b2c3d"]

[[tool.a2a-serverless.statements]]
actions = ["textract:DetectDocumentText"]
resources = ["*"]

[[tool.a2a-serverless.statements]]
actions = ["s3:GetObject", "s3:List*"]
resources = ["arn:aws:s3:::plain/*", "arn:${AWS::Partition}:s3:::in-${AWS::Region}/*"]
condition = { StringEquals = { "s3:ResourceAccount" = ["111122223333"] } }
"""


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Paths:
    paths = make_project(tmp_path_factory.mktemp("original"), has_template=False)
    build(paths, HERE)
    return paths


@pytest.fixture
def project(original: Paths, tmp_path: Path) -> Paths:
    """A project without a template of its own, which was built before."""
    copy = tmp_path / "project"
    shutil.copytree(original.root, copy, ignore=shutil.ignore_patterns(".a2a", "packages"))
    shutil.copytree(original.home, copy / ".a2a", symlinks=True, copy_function=os.link)
    return find(copy)


def add(paths: Paths, settings: str) -> None:
    file = paths.root / "pyproject.toml"
    file.write_text(file.read_text() + settings)


def statements(document: dict[str, Any], role: str) -> list[Any]:
    (policy,) = document["Resources"][role]["Properties"]["Policies"]
    found: list[Any] = policy["PolicyDocument"]["Statement"]
    return found


def test_without_settings_the_template_is_the_library_s(project: Paths) -> None:
    made, ours = build(project, HERE).template, template()
    for name, properties in functions_of(made).items():
        assert properties["CodeUri"] == f"{name}.zip"
        properties["CodeUri"] = functions_of(ours)[name]["CodeUri"]
    made["Resources"]["KeyRing"]["Properties"]["Digest"] = ""
    ours = ours | {"Resources": {name: one for name, one in ours["Resources"].items() if name != "CostAlarm"}}
    assert [one for one in statements(ours, "ApiRole") if one not in statements(made, "ApiRole")] == [
        one for one in statements(ours, "ApiRole") if "bedrock:" in json.dumps(one)
    ]
    assert {name: made["Parameters"][name].pop("Default") for name in HERE.parameters} == HERE.parameters
    for name in HERE.parameters:
        made["Parameters"][name]["Default"] = ours["Parameters"][name]["Default"]
    made["Resources"]["ApiRole"] = ours["Resources"]["ApiRole"]
    assert made == ours


@pytest.mark.parametrize(
    ("email", "usd", "count"), [("", 100, 0), ("ops@example.com", 0, 0), ("ops@example.com", 50, 1)]
)
def test_the_budget_is_in_the_template_only_if_it_is_asked_for(
    email: str, usd: int, count: int, original: Paths
) -> None:
    constants: dict[str, int | str] = {"AlarmEmail": email, "CostAlarmUsd": usd}
    made = parsed(set_constants(original.template.read_text(), constants))
    remove_cost_alarm(made)
    budgets = [one["Properties"] for one in made["Resources"].values() if one["Type"] == "AWS::Budgets::Budget"]
    assert len(budgets) == count
    for budget in budgets:
        assert "BudgetName" not in budget["Budget"], "a name makes each replacement fail"
        readers = [one["Subscribers"][0]["Address"] for one in budget["NotificationsWithSubscribers"]]
        assert readers == [email] * 2


def test_an_application_gets_every_path_and_the_addresses_of_the_agents_get_theirs() -> None:
    made = json.loads(json.dumps(template()))
    serve_application(made, "shop.web:app", "/agents")
    api = made["Resources"]["Api"]["Properties"]
    routes = api["DefinitionBody"]["paths"]
    methods = {"get", "post", "put", "patch", "delete", "head", "options"}
    assert {path: {*routes[path]} for path in routes} == {"/": methods, APPLICATION_ROUTE: methods}
    streaming = template()["Resources"]["Api"]["Properties"]["DefinitionBody"]["paths"]["/{agent}"]["post"]
    assert [routes[APPLICATION_ROUTE][name] for name in methods] == [streaming] * len(methods)
    assert api["BinaryMediaTypes"][-1] == "*/*"
    functions = functions_of(made).items()
    variables = {name: one["Environment"]["Variables"] for name, one in functions if "Environment" in one}
    assert variables["ApiFunction"]["APPLICATION"] == "shop.web:app"
    gateway = "https://${Api}.execute-api.${AWS::Region}.${AWS::URLSuffix}/live/agents"
    both = ["https://${DomainName}/agents", gateway]
    for name in ("WorkerFunction", "NotifierFunction", "RotatorFunction"):
        assert [*urls_in(variables[name]["PUBLIC_BASE_URL"])] == both
    assert [*urls_in(variables["NotifierFunction"]["GATEWAY_URL"])] == [gateway]
    assert [*urls_in(variables["ApiFunction"]["PUBLIC_BASE_URL"])] == both[:1]
    assert [*urls_in(made["Outputs"]["ApiUrl"])] == [*urls_in(made["Outputs"]["JwksUrl"])] == both
    assert transform(made, {})


def urls_in(value: object) -> Iterator[str]:
    """The addresses in a value of a template."""
    if isinstance(value, dict) and isinstance(url := value.get("Fn::Sub"), str):
        yield url
        return
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from urls_in(one)


def test_every_role_gets_the_boundary_also_those_that_sam_and_the_schedules_make(project: Paths) -> None:
    boundary = "arn:aws:iam::111122223333:policy/boundary-agents"
    agent = project.root / "my_agents/mine.py"
    daily = 'schedules=[Schedule("daily", "0 9 * * ? *", text="go")],'
    text = agent.read_text().replace("import Skill", "import Schedule, Skill")
    agent.write_text(text.replace("@agent(\n", f"@agent(\n    {daily}\n"))
    add(project, f'[tool.a2a-serverless.constants]\nPermissionsBoundaryArn = "{boundary}"\n')
    made = json.loads(transform(build(project, HERE).template, {}))
    roles = {name: one["Properties"] for name, one in made["Resources"].items() if one["Type"] == "AWS::IAM::Role"}
    assert {"ApiRole", "SweeperFunctionEachMinuteRole", "SchedulesRole"} < roles.keys()
    assert {role.get("PermissionsBoundary") for role in roles.values()} == {boundary}


def test_a_key_of_yours_encrypts_all_that_is_stored_and_each_role_uses_it_only_for_that(project: Paths) -> None:
    """The properties are those of cfn-lint's schemas: a property that AWS does not have is an error of the release."""
    key = "arn:aws:kms:us-east-1:123456789012:key/yours"
    add(project, f'[tool.a2a-serverless.constants]\nDataKeyArn = "{key}"\n')
    made = json.loads((release(project, HERE) / "template.yaml").read_text())["Resources"]
    stored = {"AWS::DynamoDB::Table", "AWS::S3::Bucket", "AWS::SQS::Queue", "AWS::SecretsManager::Secret"}
    for name, one in made.items():
        assert (key in json.dumps(one["Properties"])) is (one["Type"] in stored | {"AWS::IAM::Role"}), name
        assert "SqsManagedSseEnabled" not in one["Properties"]
    for name in ("ApiRole", "WorkerRole", "RelayRole", "NotifierRole", "SweeperRole", "RotatorRole"):
        (use,) = made[name]["Properties"]["Policies"][-1]["PolicyDocument"]["Statement"]
        services = [one["Fn::Sub"] for one in use["Condition"]["StringEquals"]["kms:ViaService"]]
        use["Condition"]["StringEquals"]["kms:ViaService"] = [
            one.replace("${AWS::Region}.${AWS::URLSuffix}", "us-east-1.amazonaws.com") for one in services
        ]
        for service, allowed in (("dynamodb", True), ("sqs", True), ("ec2", False)):
            ask = Ask("kms:Decrypt", key, {"kms:ViaService": f"{service}.us-east-1.amazonaws.com"})
            assert is_allowed([use], ask) is allowed
            assert is_allowed(boundary()["Statement"], ask) is allowed
        assert not is_allowed([use], Ask("kms:Decrypt", key))


def test_a_profile_sets_constants_that_the_project_can_set_otherwise(project: Paths) -> None:
    add(project, "[tool.a2a-serverless.constants]\nWorkerConcurrency = 3\n")
    file = project.root / "pyproject.toml"
    file.write_text(
        file.read_text().replace("[tool.a2a-serverless]\n", '[tool.a2a-serverless]\nprofile = "new-account"\n')
    )
    made = build(project, HERE).template
    events = {name: made["Resources"][name]["Properties"]["Events"] for name in ("WorkerFunction", "NotifierFunction")}
    assert events["WorkerFunction"]["Work"]["Properties"]["ScalingConfig"] == {"MaximumConcurrency": 3}
    assert events["NotifierFunction"]["Delivery"]["Properties"]["ScalingConfig"] == {"MaximumConcurrency": 2}
    assert made["Globals"]["Function"]["Environment"]["Variables"]["STREAMS_PER_DEPLOYMENT"] == "2"


def test_a_bad_setting_ends_the_build_with_its_name_and_leaves_no_release(project: Paths) -> None:
    add(
        project,
        "[tool.a2a-serverless.constants]\nWorkerConcurrency = 1\n[tool.a2a-serverless.environment]\nAWS_REGION = 'x'\n",
    )
    with pytest.raises(
        StackError, match="from 2 to 1000, not 1; WorkerFunction sets AWS_REGION, which Lambda reserves"
    ):
        release(project, HERE)
    assert not project.release.exists()


@pytest.mark.parametrize(("runs", "count"), [("queued", 0), ("inline", 1)])
def test_the_api_which_the_internet_reaches_may_call_models_only_if_agents_run_in_it(
    runs: str, count: int, project: Paths
) -> None:
    agent = project.root / "my_agents/mine.py"
    text = agent.read_text()
    assert text.count("@agent(\n") == 1
    agent.write_text(text.replace("@agent(\n", f'@agent(\n    runs="{runs}",\n'))
    made = build(project, HERE).template
    roles = {
        role: json.dumps(statements(made, role)).count('"bedrock:InvokeModel"') for role in ("ApiRole", "WorkerRole")
    }
    assert roles == {"ApiRole": count, "WorkerRole": 1}


def test_a_template_of_a_project_without_these_constants_has_no_budget() -> None:
    made: dict[str, Any] = {"Resources": {"CostAlarm": {}}}
    remove_cost_alarm(made)
    assert made == {"Resources": {}}


def test_every_setting_is_in_the_template_and_costs_no_installation_and_no_zip(project: Paths) -> None:
    before = build(project, HERE).template
    project.log("sam-build").unlink(missing_ok=True)
    add(project, ALL)
    built = build(project, HERE)
    assert built.made == []
    assert "installed" not in project.log("sam-build").read_text()
    made, resources = built.template, built.template["Resources"]
    function = {name: resources[f"{name.title()}Function"]["Properties"] for name in FUNCTIONS}

    limits = {name: (one.get("MemorySize"), one["Timeout"]) for name, one in function.items()}
    assert limits == {
        "api": (2048, {"Fn::If": ["Streams", 600, 29]}),
        "worker": (3008, 300),
        "notifier": (None, 120),
        "relay": (256, 30),
        "sweeper": (1024, 55),
        "rotator": (None, 60),
    }
    queues = {name: resources[name]["Properties"]["VisibilityTimeout"] for name in ("WorkQueue", "DeliveryQueue")}
    assert queues == {"WorkQueue": 1800, "DeliveryQueue": 720}

    shared = made["Globals"]["Function"]["Environment"]["Variables"]
    assert (shared["TASK_RETENTION_DAYS"], shared["WEBHOOK_OWNERSHIP"]) == ("90", "warn")
    assert shared["AGENT_URLS"] == 'other=https://other.example.com/"a"'
    (rule,) = resources["Blobs"]["Properties"]["LifecycleConfiguration"]["Rules"]
    assert rule["ExpirationInDays"] == {"Fn::FindInMap": ["ObjectDays", "90", "Stay"]}
    assert function["worker"]["Events"]["Work"]["Properties"]["ScalingConfig"] == {"MaximumConcurrency": 100}
    assert resources["RelayLogs"]["Properties"] == {"RetentionInDays": 7}

    network = {name: one["VpcConfig"] for name, one in function.items() if "VpcConfig" in one}
    groups = {"SubnetIds": ["subnet-0a1b2c3d", "subnet-1a2b3c4d"], "SecurityGroupIds": ["sg-0a1b2c3d"]}
    assert network == {"worker": groups}
    added = statements(made, "WorkerRole")[len(statements(before, "WorkerRole")) :]
    assert [(one["Effect"], "ec2:CreateNetworkInterface" in one["Action"]) for one in added[:2]] == [
        ("Allow", True),
        ("Deny", True),
    ]
    assert added[1]["Condition"]["ArnLike"].keys() == {"lambda:SourceFunctionArn"}
    assert added[2:] == [
        {"Effect": "Allow", "Action": ["textract:DetectDocumentText"], "Resource": ["*"]},
        {
            "Effect": "Allow",
            "Action": ["s3:GetObject", "s3:List*"],
            "Resource": ["arn:aws:s3:::plain/*", {"Fn::Sub": "arn:${AWS::Partition}:s3:::in-${AWS::Region}/*"}],
            "Condition": {"StringEquals": {"s3:ResourceAccount": ["111122223333"]}},
        },
    ]
    assert statements(made, "ApiRole") == statements(before, "ApiRole")
    check_by_cfn_lint(built.path / "template.yaml")


def check_by_cfn_lint(file: Path) -> None:
    program = CHECKOUT / ".a2a/venvs/sam/bin/cfn-lint"
    if program.is_file() or "CI" in os.environ:
        done = subprocess.run([program, file], capture_output=True, text=True, check=False)  # noqa: S603 - by path
        assert (done.returncode, done.stdout) == (0, "")


def test_an_api_that_runs_agents_gets_network_and_statements_too(project: Paths) -> None:
    add(project, ALL)
    agent = project.root / "my_agents/mine.py"
    agent.write_text(agent.read_text().replace("@agent(", '@agent(\n    runs="inline",'))
    made = build(project, HERE).template
    assert statements(made, "ApiRole")[-4:] == statements(made, "WorkerRole")[-4:]
    assert "VpcConfig" in made["Resources"]["ApiFunction"]["Properties"]


def test_a_constant_keeps_its_comment_and_its_anchor_and_nothing_else_changes() -> None:
    text = (CHECKOUT / "template.yaml").read_text()
    changed = set_constants(
        text, {"TASK_RETENTION_DAYS": "7", "SweeperReserved": 2, "WEBHOOK_TRUSTED_DOMAINS": "ü.example"}
    )
    pairs = [pair for pair in zip(text.splitlines(), changed.splitlines(), strict=True) if pair[0] != pair[1]]
    assert [after.partition("#")[0].strip() for _, after in pairs] == [
        'TASK_RETENTION_DAYS: &task_retention_days "7"',
        'WEBHOOK_TRUSTED_DOMAINS: "ü.example"',
        "SweeperReserved: &sweeper_reserved 2",
    ]
    assert all(before.partition("#")[2] == after.partition("#")[2] for before, after in pairs)
    assert parsed(changed)["Metadata"]["Settings"]["SweeperReserved"] == 2


CONSTANTS = {
    'NO_SUCH = "1"': r"sets NO_SUCH; the constants of the template are BLOCKING_SECONDS, .*, LogRetentionDays",
    'WorkerConcurrency = "many"': "sets WorkerConcurrency to 'many', which is no number",
}


@pytest.mark.parametrize("constant", CONSTANTS)
def test_a_constant_that_the_template_does_not_have_is_refused_before_a_build(constant: str, project: Paths) -> None:
    shutil.rmtree(project.builds)
    add(project, f"[tool.a2a-serverless.constants]\n{constant}\n")
    with pytest.raises(ProjectError, match=CONSTANTS[constant]):
        build(project, HERE)
    assert not project.builds.exists()


WRONG = {
    "functions.worker]\nmemory = 64": "functions.worker.memory: Input should be greater than or equal to 128",
    "functions.worker]\nmemory = 20480": "functions.worker.memory: Input should be less than or equal to 10240",
    "functions.worker]\nmemory = '1024'": "functions.worker.memory: Input should be a valid integer",
    "functions.worker]\ntimeout = 901": "functions.worker.timeout must be from 60 to 900 seconds",
    "functions.sweeper]\ntimeout = 60": "functions.sweeper.timeout must be from 20 to 59 seconds",
    "functions.worker]\nname = 'x'": "functions.worker.name: no such setting: one of memory, timeout",
    "functions.painter]\nmemory = 1024": "functions.painter.[key]: Input should be 'api', 'worker'",
    "vpc]\nsubnets = ['subnet-1']": "vpc.security-groups: Field required",
    "vpc]\nsubnets = ['10.0.0.0/8']\nsecurity-groups = ['sg-1']": "vpc.subnets.0: String should match pattern",
    "vpc]\nsubnets = []\nsecurity-groups = ['sg-1']": "vpc.subnets: Tuple should have at least 1 item",
    "constants]\nBLOCKING_SECONDS = 1.5": "constants.BLOCKING_SECONDS",
    'constants]\nAGENT_URLS = "a\\nb"': "constants.AGENT_URLS",
}
STATEMENTS = {
    "actions = ['*']\nresources = ['*']": "statements.0.actions.0: String should match pattern",
    "actions = ['s3:GetObject']\nresources = ['my-bucket']": "statements.0.resources.0: String should match pattern",
    "actions = ['s3:GetObject']": "statements.0.resources: Field required",
}


@pytest.mark.parametrize(
    ("settings", "reason"),
    [(f"[tool.a2a-serverless.{wrong}", reason) for wrong, reason in WRONG.items()]
    + [(f"[[tool.a2a-serverless.statements]]\n{wrong}", reason) for wrong, reason in STATEMENTS.items()],
)
def test_a_setting_that_cannot_be_is_refused_by_its_name(settings: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(f"[tool.a2a-serverless]\nagents = ['a:b']\n{settings}\n")
    with pytest.raises(ProjectError) as raised:
        read_project(tmp_path)
    assert reason in str(raised.value)


def test_the_timeouts_of_the_template_are_ones_that_a_project_may_set_and_documents_list_them() -> None:
    text = (CHECKOUT / "docs/projects.md").read_text()
    assert TIMEOUTS.keys() == {*FUNCTIONS}
    for name, (shortest, longest) in TIMEOUTS.items():
        timeout = template()["Resources"][f"{name.title()}Function"]["Properties"]["Timeout"]
        assert shortest <= (timeout["Fn::If"][1] if name == "api" else timeout) <= longest
        assert f"| `{name}` | {shortest} to {longest} s |" in text


# ---- What a deployment would change


def test_without_a_last_build_there_is_nothing_to_compare_with(project: Paths) -> None:
    assert compare(project, HERE) is None
    assert not project.release.exists()


def test_a_build_like_the_last_one_changes_nothing(project: Paths) -> None:
    release(project, HERE)
    changes = compare(project, HERE)
    assert changes
    assert (changes.template, changes.functions) == ("", [])


def test_a_diff_has_the_changed_lines_and_functions_and_keeps_the_last_build(
    project: Paths,
) -> None:
    release(project, HERE)
    before = {path: path.read_bytes() for path in project.release.rglob("*") if path.is_file()}
    add(project, "[tool.a2a-serverless.functions.worker]\nmemory = 2048\n")
    agent = project.root / "my_agents/mine.py"
    agent.write_text(agent.read_text().replace('f"Hello', 'f"Good morning'))
    changes = compare(project, HERE)
    assert changes
    lines = changes.template.splitlines()
    assert lines[:2] == ["--- last build/template.yaml", "+++ this build/template.yaml"]
    changed = [line for line in lines[2:] if line.startswith(("-", "+"))]
    assert [line.split() for line in changed] == [["-", "MemorySize:", "512"], ["+", "MemorySize:", "2048"]]
    assert changes.functions == ["WorkerFunction"]
    assert {path: path.read_bytes() for path in project.release.rglob("*") if path.is_file()} == before


def test_an_ejected_template_is_built_as_the_library_s_was(project: Paths) -> None:
    add(project, ALL)
    before = build(project, HERE).template
    eject(read_project(project.root))
    assert project.template == project.root / "template.yaml"
    after = build(project, HERE).template
    for document in (before, after):
        document["Resources"]["KeyRing"]["Properties"]["Digest"] = ""
    assert after == before
