"""The built template is a part of what others deploy with: CDK includes it, and CloudFormation makes a stack of that.

Terraform hands the template to CloudFormation as it is, with the capabilities that CDK's program gives, too.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from typing import TYPE_CHECKING, Any, Final

import pytest

from a2a_serverless_tools.stack.emulator import aws_environment, without_aws
from a2a_serverless_tools.stack.targets import this_machine
from tests.functions.template import ROOT, parsed
from tests.functions.transformed import transform
from tests.stack.local import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from tests.stack.local import LocalStack

pytestmark = [pytest.mark.enable_socket, pytest.mark.integration]

LIBRARY: Final = ROOT / ".a2a/cdk/node_modules"  # not in the folder of the tests: it has files of Python
NODE: Final = shutil.which("node")
BUCKET: Final = "zips-of-others"
NAME: Final = "a2a-serverless-included"
OWN: Final = {"BootstrapVersion", "CheckBootstrapVersion", "CDKMetadata", "CDKMetadataAvailable"}
"""What CDK adds to every stack."""
BOOTSTRAP: Final = "/cdk-bootstrap/hnb659fds/version"
"""Is there in each account in which `cdk bootstrap` has run."""


@pytest.fixture(scope="module")
def packaged(stack: LocalStack, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the template that `sam package` has made of the build, as the documents say."""
    folder = tmp_path_factory.mktemp("packaged")
    stack.client("s3").create_bucket(Bucket=BUCKET)
    build = stack.running.build.path / "template.yaml"
    options = ["--s3-bucket", BUCKET, "--output-template-file", str(folder / "packaged.yaml")]
    done = subprocess.run(  # noqa: S603 - SAM, by path
        [stack.paths.sam, "package", "--template-file", build, *options],
        env=without_aws(os.environ) | aws_environment(stack.deployment.endpoint) | {"SAM_CLI_TELEMETRY": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def included(packaged: Path) -> dict[str, Any]:
    """The template that CDK makes of the example."""
    if not (NODE and LIBRARY.is_dir()):
        pytest.skip("CDK NOT RUN: make conformance-clients")
    shutil.copy(ROOT / "examples/cdk/app.mjs", packaged)
    (packaged / "node_modules").symlink_to(LIBRARY)
    done = subprocess.run(  # noqa: S603 - Node, by path
        [NODE, "app.mjs"],
        cwd=packaged,
        env=os.environ | {"CDK_OUTDIR": "out"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads((packaged / "out/agents.template.json").read_text()))


def test_cdk_changes_nothing_in_the_template_that_it_includes(packaged: Path, included: dict[str, Any]) -> None:
    before = parsed((packaged / "packaged.yaml").read_text())
    assert before["Parameters"].pop("Console")["Default"] == "off"
    before = json.loads(json.dumps(before).replace('{"Ref": "Console"}', '"on"'))
    for name, there in included.items():
        own = {one: value for one, value in there.items() if one in before[name]} if isinstance(there, dict) else there
        assert own == before[name], name
    (address,) = (included["Resources"].keys() - before["Resources"].keys()) - OWN
    assert included["Resources"][address]["Properties"]["Value"] == before["Outputs"]["ApiUrl"]["Value"]


def test_a_domain_waits_for_the_stage_that_sam_makes(included: dict[str, Any]) -> None:
    root = json.loads(transform(included, {}))["Resources"]["DomainRoot"]
    assert root["Properties"]["Stage"] == {"Fn::Sub": "${ApiliveStage}"}


def test_cloudformation_makes_a_stack_of_what_cdk_includes(stack: LocalStack, included: dict[str, Any]) -> None:
    given = {**this_machine().parameters, "ResponseStreaming": "off"}
    stack.client("s3").put_object(Bucket=BUCKET, Key="included.json", Body=json.dumps(included).encode())
    stack.client("ssm").put_parameter(Name=BOOTSTRAP, Value="30", Type="String")
    cloudformation = stack.client("cloudformation")
    cloudformation.create_stack(
        StackName=NAME,
        TemplateURL=f"{stack.deployment.endpoint}/{BUCKET}/included.json",
        Parameters=[{"ParameterKey": name, "ParameterValue": value} for name, value in given.items()],
        Capabilities=capabilities(),
    )
    made = eventually(lambda: _ended(cloudformation.describe_stacks(StackName=NAME)["Stacks"][0]))
    assert made["StackStatus"] == "CREATE_COMPLETE"
    outputs = {one["OutputKey"]: one["OutputValue"] for one in made["Outputs"]}
    address = stack.client("ssm").get_parameter(Name="/agents/url")["Parameter"]["Value"]
    assert address == outputs["ApiUrl"]
    cloudformation.delete_stack(StackName=NAME)


def _ended(found: dict[str, Any]) -> dict[str, Any] | None:
    return None if found["StackStatus"].endswith("_IN_PROGRESS") else found


def capabilities() -> list[str]:
    """Those of the example for Terraform."""
    (names,) = re.findall(r"capabilities = (\[.*\])", (ROOT / "examples/terraform/main.tf").read_text())
    return list(json.loads(names))
