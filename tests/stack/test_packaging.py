import gzip
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import botocore
import pytest
import yaml
from boto3.session import Session
from botocore.loaders import Loader
from botocore.session import get_session

from a2a_serverless_tools.stack import packaging, paths, sam, trimming
from a2a_serverless_tools.stack.errors import StackError
from a2a_serverless_tools.stack.targets import this_machine

ROOT = Path(__file__).parents[2]
HERE = f"python{sys.version_info.major}.{sys.version_info.minor}"
ENDPOINTS = {"partitions": [{"partition": "aws", "services": {"dynamodb": {}, "ec2": {}}}]}
MODEL = {
    "documentation": "<p>A database</p>",
    "operations": {"PutItem": {"http": {}, "documentation": "<p>Creates</p>"}},
    "shapes": {"documentation": {"type": "string", "documentation": "<p>A shape of that name</p>"}},
}
TEMPLATE = {
    "Resources": {
        "ApiFunction": {"Type": "AWS::Serverless::Function", "Properties": {"CodeUri": "ApiFunction"}},
        "Table": {"Type": "AWS::DynamoDB::Table", "Properties": {}},
    }
}


@pytest.fixture
def build(tmp_path: Path) -> Path:
    """A `sam build` result with one function."""
    folder = tmp_path / "build"
    data = folder / "ApiFunction/botocore/data"
    for service in ("dynamodb", "ec2"):
        (data / service).mkdir(parents=True)
        (data / service / "service-2.json.gz").write_bytes(gzip.compress(json.dumps(MODEL).encode()))
    (data / "endpoints.json").write_text(json.dumps(ENDPOINTS))
    (folder / "ApiFunction/app.py").write_text("handler = print\n")
    (folder / "ApiFunction/broken.py").write_text("this is {{ a template }}\n")
    (folder / "template.yaml").write_text(yaml.safe_dump(TEMPLATE))
    return folder


def pack(build: Path) -> zipfile.ZipFile:
    folder = build / "ApiFunction"
    trimming.trim_installed(folder, trimming.SERVICES, unused=True)
    packaging.compile_sources(folder, [folder], python=Path(sys.executable), cache=build.parent / "compiled")
    packaging.write_zip(folder)
    return zipfile.ZipFile(build / "ApiFunction.zip")


def test_a_zip_carries_compiled_files_that_are_used_without_looking_at_the_source(build: Path) -> None:
    with pack(build) as archive:
        compiled = archive.read(f"__pycache__/app.{sys.implementation.cache_tag}.pyc")
    assert compiled[:4] == importlib.util.MAGIC_NUMBER
    assert int.from_bytes(compiled[4:8], "little") == 0b01  # PEP 552: hash-based, unchecked


def test_a_source_that_does_not_compile_is_shipped_as_it_is(build: Path) -> None:
    with pack(build) as archive:
        assert [name for name in archive.namelist() if "broken" in name] == ["broken.py"]


def test_only_the_services_that_we_call_stay_in_the_sdks_data(build: Path) -> None:
    with pack(build) as archive:
        data = [name for name in archive.namelist() if name.startswith("botocore/data/")]
        endpoints = json.loads(archive.read("botocore/data/endpoints.json"))
    assert data == ["botocore/data/dynamodb/service-2.json", "botocore/data/endpoints.json"]
    assert list(endpoints["partitions"][0]["services"]) == ["dynamodb"]


def test_the_sdks_data_is_as_it_was_but_for_its_documentation(build: Path) -> None:
    with pack(build) as archive:
        model = json.loads(archive.read("botocore/data/dynamodb/service-2.json"))
    assert model == {
        "documentation": "",
        "operations": {"PutItem": {"http": {}, "documentation": ""}},
        "shapes": {"documentation": {"type": "string", "documentation": ""}},
    }


@pytest.mark.parametrize("service", sorted(trimming.SERVICES))
def test_the_sdk_makes_a_client_of_its_trimmed_data(service: str, tmp_path: Path) -> None:
    function = tmp_path / "ApiFunction"
    data, whole = function / "botocore/data", Path(botocore.__file__).with_name("data")
    data.mkdir(parents=True)
    for name in ("endpoints.json", "partitions.json", "_retry.json", "sdk-default-configuration.json"):
        shutil.copyfile(whole / name, data / name)
    shutil.copytree(whole / service, data / service)
    trimming.trim_installed(function, trimming.SERVICES, unused=True)
    settings = get_session()
    settings.register_component(
        "data_loader", Loader(extra_search_paths=[str(data)], include_default_search_paths=False)
    )
    session: Any = Session("made up", "made up", region_name="us-east-1", botocore_session=settings)
    made = session.client(service)
    assert made.meta.service_model.operation_names
    made.close()


OWN_USE = {
    "botocore/data/ec2/service-2.json": "import boto3\nboto3.client('ec2')",
    "boto3/dynamodb/table.py": "",
    "aws_lambda_powertools/utilities/parser/__init__.py": "",
    "PIL/WebPImagePlugin.py": "",
}


def test_trimming_a_function_keeps_each_file_that_its_agents_may_use(build: Path) -> None:
    folder, agent = build / "ApiFunction", build / "agent.py"
    agent.write_text("".join(OWN_USE.values()))
    for name in OWN_USE:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("{}")
    trimming.trim_installed(folder, trimming.SERVICES | trimming.named_services([agent]), unused=False)
    assert [name for name in OWN_USE if not (folder / name).exists()] == []


def test_the_package_caches_copy_of_a_file_is_left_as_it_is(build: Path, tmp_path: Path) -> None:
    shared = tmp_path / "cached-endpoints.json"
    os.link(build / "ApiFunction/botocore/data/endpoints.json", shared)
    pack(build).close()
    assert json.loads(shared.read_text()) == ENDPOINTS


def test_the_same_files_give_the_same_bytes(build: Path) -> None:
    pack(build).close()
    first = (build / "ApiFunction.zip").read_bytes()
    os.utime(build / "ApiFunction/app.py", (0, 0))
    packaging.write_zip(build / "ApiFunction")
    assert (build / "ApiFunction.zip").read_bytes() == first


def test_programs_in_a_zip_may_be_run_and_all_files_read(build: Path) -> None:
    (build / "ApiFunction/start").write_text("#!/bin/sh\n")
    (build / "ApiFunction/start").chmod(0o700)
    (build / "ApiFunction/app.py").chmod(0o600)
    with pack(build) as archive:
        modes = {entry.filename: entry.external_attr >> 16 for entry in archive.infolist()}
    assert (modes["start"], modes["app.py"]) == (0o755, 0o644)


def test_packing_takes_a_compiled_module_from_the_cache(build: Path) -> None:
    pack(build).close()
    (kept,) = (build.parent / "compiled").glob("*.pyc")
    kept.write_bytes(b"from the cache")
    with pack(build) as archive:
        assert archive.read(f"__pycache__/app.{sys.implementation.cache_tag}.pyc") == b"from the cache"


@pytest.mark.enable_socket
@pytest.mark.integration
def test_a_plain_sam_build_works_and_has_neither_the_zips_nor_the_compiled_files_nor_the_trimming(
    tmp_path: Path,
) -> None:
    """What docs/deploy.md says of it. It asks the package index, so it is skipped where there is none."""
    try:
        sam_cli = paths.find().sam
    except StackError as error:
        pytest.skip(str(error))
    target = this_machine()
    configured: list[str | Path] = [
        "--config-file",
        paths.CHECKOUT / sam.CONFIGURATION,
        "--build-dir",
        tmp_path / "plain",
    ]
    done = subprocess.run(  # noqa: S603 - SAM, by path
        [sam_cli, "build", "RelayFunction", *configured, *sam.overrides(target.parameters)],
        cwd=paths.CHECKOUT,
        env={
            **os.environ,
            "PATH": f"{sam_cli.parent}{os.pathsep}{os.environ['PATH']}",
            "SAM_CLI_TELEMETRY": "0",
            "AWS_DEFAULT_REGION": "us-east-1",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode and "CI" not in os.environ:
        pytest.skip(f"sam build cannot install packages here: {done.stderr[-200:]}")
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "plain" / "RelayFunction"
    assert (folder / "app.py").is_file()
    assert not list(tmp_path.rglob("*.zip"))
    assert not list(folder.rglob("*.pyc"))
    before = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    trimming.trim_installed(folder, trimming.SERVICES, unused=True)
    after = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    assert after < before / 2


def test_each_module_of_the_library_in_the_list_of_trimming_exists() -> None:
    ours = [place for place in trimming.USED_BY if place.startswith("a2a_serverless/")]
    assert ours
    assert not [place for place in ours if not (ROOT / "shared" / place).exists()]


IMPORTS = """
import ast, sys
source = open(sys.argv[1]).read()
imports = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Import | ast.ImportFrom)]
exec(compile(ast.Module(imports, []), sys.argv[1], "exec"))
"""


@pytest.mark.parametrize("function", sam.FUNCTIONS)
def test_a_function_starts_without_the_modules_that_its_zip_leaves_out(function: str, tmp_path: Path) -> None:
    folder = tmp_path / f"{function.title()}Function"
    shutil.copytree(ROOT / "shared", folder, ignore=shutil.ignore_patterns("__pycache__"))
    trimming.trim_library(folder)
    start = [sys.executable, "-B", "-c", IMPORTS, str(ROOT / "functions" / function / "app.py")]
    environment = {"PYTHONPATH": str(folder)}
    done = subprocess.run(start, env=environment, check=False, capture_output=True, text=True)  # noqa: S603
    assert done.returncode == 0, done.stderr
