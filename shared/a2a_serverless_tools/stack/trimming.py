"""Removes files that functions do not need from the packages that `sam build` installs: smaller zips load faster.

The SDK's models are kept only for services that code names, uncompressed and without documentation: otherwise every
client that a cold start makes would unpack and parse ten times as much. Files may be hard links into a package cache,
so they are removed and written anew, never changed.

Where a project's own agents run, nothing is removed that code could import, and no service that code names.
"""

import gzip
import json
import re
import shutil
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from functools import cache
from pathlib import Path
from typing import Any

import botocore

SERVICES = frozenset({"bedrock-runtime", "dynamodb", "kms", "s3", "secretsmanager", "sqs"})
SDK = frozenset({"aws_lambda_powertools", "boto3", "botocore", "s3transfer"})
_NAME = re.compile(r"""["']([a-z0-9][a-z0-9.-]*)["']""")
# By folder; patterns are separated by spaces. What no code imports:
_DEAD = {
    # uv's; console scripts; for installers; for type checkers.
    ".": ".lock bin *.dist-info/RECORD **/*.pyi requirements.txt constraints.txt",
    "dateutil": "zoneinfo",  # a copy of the time zone database
    "botocore/data": "*/*/examples-1.json",
    "urllib3/contrib": "emscripten",  # browsers
}
# What this library and its samples do not import.
_UNUSED = {
    ".": "cffi pycparser",  # a compiler: cryptography needs only its runtime library
    "dateutil": "rrule.py",
    "boto3": "data dynamodb ec2 examples crt.py",  # resources; the SDK's other S3 client, as the next two
    "s3transfer": "crt.py processpool.py",
    # Parts of Powertools that are not used: docs/adr/0010.
    "aws_lambda_powertools": "event_handler metrics/provider/datadog",
    "aws_lambda_powertools/utilities": "auth_alpha circuit_breaker data_masking feature_flags idempotency kafka "
    "metadata parser streaming validation",
    "pydantic": "mypy.py v1",  # for a type checker; its first version
    # Image formats that are not used; windows and screens.
    "PIL": "_avif* _imagingcms* _webp* [!BGJP]*ImagePlugin.py J*2*ImagePlugin.py P[!np]*ImagePlugin.py _imagingtk* "
    "ImageGrab.py ImageQt.py ImageTk.py",
    "pillow.libs": "libavif* liblcms2* libsharpyuv* libwebp*",
}
# Modules that only some functions use: to run agents, to serve HTTP.
API, WORKER, ROTATOR, NOTIFIER = "ApiFunction", "WorkerFunction", "RotatorFunction", "NotifierFunction"
RUN_AGENTS = frozenset({API, WORKER})
TRACED = frozenset({API, WORKER, NOTIFIER})
USED_BY = {
    "a2a_serverless/testing": frozenset(),
    "a2a_serverless/client": RUN_AGENTS,
    "a2a_serverless/engine": RUN_AGENTS,
    "a2a_serverless/store/value_store.py": RUN_AGENTS,
    "a2a_serverless/http": frozenset({API}),
    "a2a_serverless/http_client": frozenset({API, WORKER, NOTIFIER, ROTATOR}),
    "aws_lambda_powertools/utilities/parameters": RUN_AGENTS,  # reads agents' secrets
}


def trim_installed(folder: Path, services: AbstractSet[str], *, unused: bool) -> None:
    """Trim installed packages: dead files, data of other services; with `unused` also what the library does not use."""
    for place, names in [*_DEAD.items(), *(_UNUSED.items() if unused else ())]:
        for name in names.split():
            for path in [*folder.glob(f"{place}/{name}")]:
                _remove(path)
    if (folder / "certifi").exists():  # botocore prefers certifi's certificates to its own
        _remove(folder / "botocore/cacert.pem")
    for service in folder.glob("botocore/data/*/"):
        if service.is_dir() and service.name not in services:
            shutil.rmtree(service)
    for model in folder.glob("botocore/data/**/*.json.gz"):
        _write(model.with_suffix(""), _undocumented(json.loads(gzip.decompress(model.read_bytes()))))
        model.unlink()
    if (endpoints := folder / "botocore/data/endpoints.json").exists():
        document = json.loads(endpoints.read_text())
        for partition in document["partitions"]:
            partition["services"] = {name: one for name, one in partition["services"].items() if name in services}
        _write(endpoints, document)


def trim_library(folder: Path) -> None:
    """Remove the library's modules that a function does not use from its folder, which has the function's name."""
    for place, functions in USED_BY.items():
        if folder.name not in functions:
            _remove(folder / place)


def named_services(places: Iterable[Path]) -> set[str]:
    """Return the AWS services whose names stand as text in the sources in these folders and files."""
    services, names = _known_services(), set[str]()
    for place in places:
        for file in [place] if place.is_file() else place.rglob("*.py"):
            names |= services & set(_NAME.findall(file.read_text(errors="replace")))
    return names


@cache
def _known_services() -> frozenset[str]:
    return frozenset(path.name for path in Path(botocore.__file__).with_name("data").iterdir() if path.is_dir())


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _write(path: Path, document: object) -> None:
    path.unlink(missing_ok=True)
    path.write_text(json.dumps(document, separators=(",", ":")))


def _undocumented(value: Any) -> Any:  # noqa: ANN401 - JSON
    """Return a copy with empty ``documentation`` texts. Members of that name that are no texts are kept."""
    if isinstance(value, dict):
        return {
            name: "" if name == "documentation" and isinstance(inner, str) else _undocumented(inner)
            for name, inner in value.items()
        }
    return [_undocumented(inner) for inner in value] if isinstance(value, list) else value
