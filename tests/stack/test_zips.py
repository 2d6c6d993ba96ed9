import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from a2a_serverless.stack import sam, trimming
from tests.functions.template import ROOT
from tests.stack.local import LocalStack

pytestmark = [pytest.mark.enable_socket, pytest.mark.stack]

MEGABYTE = 1_000_000
DRAW = """
import asyncio, sys
from a2a_serverless.adapters.builtin.picture import BuiltinPicture
from a2a_serverless.domain.scenes import scene_from_text
sys.stdout.buffer.write(asyncio.run(BuiltinPicture().draw(scene_from_text("A sailboat on the ocean"))))
"""
# Three carry cryptography, the worker carries Pillow, the api carries FastAPI and pydantic.
LIMITS = {"api": (16, 46), "notifier": (8, 26), "rotator": (8, 26), "worker": (8, 26)}
LIGHT = (4, 10)
SDK = {"a2a_serverless", "botocore", "dateutil", "jmespath", "six", "urllib3"}
SIGNING = {"_cffi_backend", "cryptography", "jwt"}
PYDANTIC = {"annotated_types", "pydantic", "pydantic_core", "typing_extensions", "typing_inspection"}
FASTAPI = {"annotated_doc", "anyio", "fastapi", "idna", "mangum", "opentelemetry", "starlette"}
PACKAGES = {
    "api": SDK | SIGNING | PYDANTIC | FASTAPI | {"certifi", "h11", "a2a_webhook_receiver"},
    "eraser": SDK,
    "notifier": SDK | SIGNING | {"certifi", "h11"},
    "relay": SDK,
    "rotator": SDK | SIGNING | {"rfc8785"},
    "sweeper": SDK,
    "worker": SDK | {"PIL", "certifi", "h11", "pillow"},
}
OWN_FILES = {"__pycache__", "app", "requirements", "stream", "streaming"}


def opened(stack: LocalStack, function: str) -> zipfile.ZipFile:
    return zipfile.ZipFile(stack.running.build.path / f"{function.title()}Function.zip")


@pytest.mark.parametrize("function", sam.FUNCTIONS)
def test_a_zip_stays_as_small_as_it_is(stack: LocalStack, function: str) -> None:
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
def test_the_sdks_data_in_a_zip_is_of_our_services_and_neither_compressed_nor_documented(
    stack: LocalStack, function: str
) -> None:
    with opened(stack, function) as archive:
        models = [name for name in archive.namelist() if re.match(r"botocore/data/[^/]+/.*/service-2\.json", name)]
        users = {service: trimming.USED_BY.get(f"botocore/data/{service}") for service in trimming.SERVICES}
        used = {service for service, by in users.items() if by is None or f"{function.title()}Function" in by}
        assert {name.split("/")[2] for name in models} == used
        assert not [name for name in models if not name.endswith(".json") or b"<p>" in archive.read(name)]


def test_the_worker_draws_with_what_its_zip_has_left_of_pillow(stack: LocalStack, tmp_path: Path) -> None:
    with opened(stack, "worker") as archive:
        archive.extractall(tmp_path)
    command = [sys.executable, "-S", "-B", "-c", DRAW]
    done = subprocess.run(command, env={"PYTHONPATH": str(tmp_path)}, capture_output=True, check=True)  # noqa: S603
    assert done.stdout.startswith(b"\x89PNG")


@pytest.mark.parametrize("function", sam.FUNCTIONS)
def test_the_tools_of_the_checkout_are_in_no_zip(stack: LocalStack, function: str) -> None:
    with opened(stack, function) as archive:
        assert not [name for name in archive.namelist() if name.startswith("a2a_serverless/stack/")]


@pytest.mark.parametrize("function", sam.FUNCTIONS)
def test_the_receivers_verifier_is_where_callbacks_are_taken_and_nowhere_else(stack: LocalStack, function: str) -> None:
    with opened(stack, function) as archive:
        assert ("a2a_webhook_receiver/verifier.py" in archive.namelist()) == (function == "api")


def test_the_sdk_keeps_the_data_of_every_service_that_code_asks_for() -> None:
    paths = (ROOT / "shared/a2a_serverless/adapters").rglob("*.py")
    # deployed.py is the operator's command line, which runs in no function.
    adapters = "\n".join(path.read_text() for path in paths if path.name != "deployed.py")
    asked = set(re.findall(r'[._]client\("([a-z0-9-]+)"', adapters))
    assert asked
    assert asked <= trimming.SERVICES
