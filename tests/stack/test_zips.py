import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from a2a_serverless_tools.stack import sam, trimming
from a2a_serverless_tools.stack.build import build
from a2a_serverless_tools.stack.emulator import aws_environment
from tests.functions.template import ROOT
from tests.stack.local import LocalStack, paths_for
from tests.stack.projects import ELSEWHERE

pytestmark = [pytest.mark.enable_socket, pytest.mark.integration]

MEGABYTE = 1_000_000
DRAW = """
import asyncio, sys
from sample_agents.offline.image import OfflineImage
sys.stdout.buffer.write(asyncio.run(OfflineImage().generate("A sailboat on the ocean")))
"""
IMPORTED = """
import sys, app
print([name for name in sys.modules if name.startswith("opentelemetry") or name == "a2a_serverless.domain.spans"])
"""
# All carry pydantic, three carry cryptography, the worker carries Pillow, the api carries FastAPI.
LIMITS = {"api": (17, 54), "notifier": (12.5, 36.5), "rotator": (12.5, 36.5), "worker": (12.5, 36.5)}
LIGHT = (7, 20)
SDK = {"boto3", "botocore", "dateutil", "jmespath", "s3transfer", "six", "urllib3"}
PYDANTIC = {"annotated_types", "pydantic", "pydantic_core", "typing_inspection"}
ALL = SDK | PYDANTIC | {"a2a_serverless", "aws_lambda_powertools", "typing_extensions"}
SIGNING = {"_cffi_backend", "cryptography", "jwt"}
FASTAPI = {"annotated_doc", "anyio", "fastapi", "idna", "mangum", "opentelemetry", "starlette"}
PACKAGES = {
    "api": ALL | SIGNING | FASTAPI | {"agents", "certifi", "h11", "a2a_webhook_receiver", "sample_agents"},
    "notifier": ALL | SIGNING | {"certifi", "h11"},
    "relay": ALL,
    "rotator": ALL | SIGNING | {"agents", "h11", "rfc8785"},
    "sweeper": ALL,
    "worker": ALL | {"PIL", "agents", "certifi", "h11", "pillow", "sample_agents"},
}
ELF_MACHINES = {"x86_64": b"\x3e\0", "arm64": b"\xb7\0"}  # what the header of a shared object says it is for
OWN_FILES = {"__pycache__", "app", "stream", "streaming"}


def opened(stack: LocalStack, function: str) -> zipfile.ZipFile:
    return zipfile.ZipFile(stack.running.build.path / f"{function.title()}Function.zip")


@pytest.mark.parametrize("function", sam.FUNCTIONS)
def test_the_zip_of_a_function_is_no_larger_than_its_limit(stack: LocalStack, function: str) -> None:
    with opened(stack, function) as archive:
        unzipped = sum(entry.file_size for entry in archive.infolist())
        zipped = sum(entry.compress_size for entry in archive.infolist())
    most_zipped, most_unzipped = LIMITS.get(function, LIGHT)
    assert zipped / MEGABYTE <= most_zipped
    assert unzipped / MEGABYTE <= most_unzipped


@pytest.mark.parametrize("function", sam.FUNCTIONS)
def test_every_source_of_ours_in_a_zip_is_compiled(stack: LocalStack, function: str) -> None:
    with opened(stack, function) as archive:
        names = set(archive.namelist())
    sources = {name for name in names if name.endswith(".py") and name.startswith(("a2a_serverless/", "botocore/"))}
    tag = sys.implementation.cache_tag
    missing = {name for name in sources if re.sub(r"([^/]+)\.py$", rf"__pycache__/\1.{tag}.pyc", name) not in names}
    assert sources
    assert not missing


@pytest.mark.parametrize("function", sam.FUNCTIONS)
def test_a_zip_holds_the_packages_that_its_function_imports_and_no_other(stack: LocalStack, function: str) -> None:
    with opened(stack, function) as archive:
        tops = {name.split("/")[0] for name in archive.namelist()}
    assert {top.split(".")[0] for top in tops if not top.endswith(".dist-info")} - OWN_FILES == PACKAGES[function]


@pytest.mark.parametrize("function", sam.FUNCTIONS)
def test_a_function_without_a_collector_imports_nothing_of_opentelemetry(
    stack: LocalStack, function: str, tmp_path: Path
) -> None:
    with opened(stack, function) as archive:
        archive.extractall(tmp_path)
    environment = sam.function_environment(stack.deployment, function)
    assert not [name for name in environment if name.startswith("OTEL")]
    environment |= aws_environment(stack.deployment.endpoint)
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-S", "-B", "-c", IMPORTED], cwd=tmp_path, env=environment, capture_output=True, check=False
    )
    assert done.stdout.decode().splitlines()[-1:] == ["[]"], done.stderr.decode()


@pytest.mark.parametrize("function", sam.FUNCTIONS)
def test_the_sdks_data_in_a_zip_is_of_our_services_and_neither_compressed_nor_documented(
    stack: LocalStack, function: str
) -> None:
    with opened(stack, function) as archive:
        models = [name for name in archive.namelist() if re.match(r"botocore/data/[^/]+/.*/service-2\.json", name)]
        used = trimming.SERVICES if function == "api" else trimming.SERVICES - {"lambda"}
        resources = [name for name in archive.namelist() if re.match(r"boto3/data/[^/]+/", name)]
        assert {name.split("/")[2] for name in models} == used
        assert {name.split("/")[2] for name in resources} <= trimming.SERVICES
        assert not [name for name in models if not name.endswith(".json") or b"<p>" in archive.read(name)]


def test_the_worker_draws_with_what_its_zip_has_left_of_pillow(stack: LocalStack, tmp_path: Path) -> None:
    with opened(stack, "worker") as archive:
        archive.extractall(tmp_path)
    command = [sys.executable, "-S", "-B", "-c", DRAW]
    done = subprocess.run(command, env={"PYTHONPATH": str(tmp_path)}, capture_output=True, check=True)  # noqa: S603
    assert done.stdout.startswith(b"\x89PNG")


@pytest.mark.parametrize("function", sam.FUNCTIONS)
def test_no_zip_contains_tools_frameworks_or_the_harness(stack: LocalStack, function: str) -> None:
    others = ("a2a_serverless_tools/", "a2a_serverless_frameworks/", "a2a_serverless/testing/")
    with opened(stack, function) as archive:
        assert not [name for name in archive.namelist() if name.startswith(others)]


@pytest.mark.parametrize("function", sam.FUNCTIONS)
def test_the_receivers_verifier_is_where_callbacks_are_taken_and_nowhere_else(stack: LocalStack, function: str) -> None:
    with opened(stack, function) as archive:
        assert ("a2a_webhook_receiver/verifier.py" in archive.namelist()) == (function == "api")


def test_the_samples_are_built_for_the_other_architecture(tmp_path_factory: pytest.TempPathFactory) -> None:
    made = build(paths_for(tmp_path_factory), ELSEWHERE).path
    for function in sam.FUNCTIONS:
        with zipfile.ZipFile(made / f"{function.title()}Function.zip") as archive:
            machines = {archive.read(name)[18:20] for name in archive.namelist() if re.search(r"\.so[.\d]*$", name)}
            assert machines == {ELF_MACHINES[ELSEWHERE.architecture]}


def test_the_sdk_keeps_the_data_of_every_service_that_code_asks_for() -> None:
    paths = (ROOT / "shared/a2a_serverless/adapters").rglob("*.py")
    adapters = "\n".join(path.read_text() for path in paths)
    asked = set(re.findall(r'[._]client\("([a-z0-9-]+)"', adapters))
    assert asked
    by_place = {"ssm"}  # kept where a project names a parameter: stack/bases.py
    assert asked - by_place <= trimming.SERVICES
