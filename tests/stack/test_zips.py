import re
import sys
import zipfile

import pytest

from a2a_serverless.stack import packaging, sam
from tests.functions.template import ROOT
from tests.stack.local import LocalStack

pytestmark = [pytest.mark.enable_socket, pytest.mark.stack]

MEGABYTE = 1_000_000
# Three carry cryptography, the worker carries Pillow.
LIMITS = {"api": (16, 46), "notifier": (10, 27), "rotator": (10, 27), "worker": (12, 34)}
LIGHT = (5, 12)


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
def test_the_tools_of_the_checkout_are_in_no_zip(stack: LocalStack, function: str) -> None:
    with opened(stack, function) as archive:
        assert not [name for name in archive.namelist() if name.startswith("a2a_serverless/stack/")]


def test_the_sdk_keeps_the_data_of_every_service_that_code_asks_for() -> None:
    paths = (ROOT / "shared/a2a_serverless/adapters").rglob("*.py")
    # deployed.py is the operator's command line, which runs in no function.
    adapters = "\n".join(path.read_text() for path in paths if path.name != "deployed.py")
    asked = set(re.findall(r'_client\("([a-z0-9-]+)"\)', adapters))
    assert asked
    assert asked <= packaging.SERVICES
