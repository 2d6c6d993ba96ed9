"""Removes files that functions do not need from the packages that `sam build` installs: smaller zips load faster.

The SDK's models are kept only for services that the project calls, uncompressed and without documentation: otherwise
every client that a cold start makes would unpack and parse ten times as much. Files may be hard links into a package
cache, so they are removed and written anew, never changed.
"""

import gzip
import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

LIBRARY = "a2a_serverless"
OWN_AGENTS = "my_agents"  # the folder for the user's own agents, empty at first
SERVICES = frozenset({"bedrock-runtime", "dynamodb", "kms", "lambda", "s3", "secretsmanager", "sqs"})
# By folder; patterns are separated by spaces.
_UNUSED = {
    # uv's; console scripts; for installers; for type checkers; a compiler: cryptography needs only its runtime library.
    ".": ".lock bin *.dist-info/RECORD **/*.pyi cffi pycparser",
    "dateutil": "zoneinfo rrule.py",  # a copy of the time zone database
    "boto3": "data dynamodb ec2 examples crt.py",  # resources; the SDK's other S3 client, as the next two
    "s3transfer": "crt.py processpool.py",
    "botocore/data": "*/*/examples-1.json",
    # Parts of Powertools that are not used: docs/adr/0010.
    "aws_lambda_powertools": "event_handler metrics/provider/datadog",
    "aws_lambda_powertools/utilities": "auth_alpha circuit_breaker data_masking feature_flags idempotency kafka "
    "metadata parameters parser streaming validation",
    "pydantic": "mypy.py v1",  # for a type checker; its first version
    # Image formats that are not used; windows and screens.
    "PIL": "_avif* _imagingcms* _webp* [!BGJP]*ImagePlugin.py J*2*ImagePlugin.py P[!np]*ImagePlugin.py _imagingtk* "
    "ImageGrab.py ImageQt.py ImageTk.py",
    "pillow.libs": "libavif* liblcms2* libsharpyuv* libwebp*",
    "urllib3/contrib": "emscripten",  # browsers
    # For people and tests.
    "a2a_serverless": "cli stack adapters/memory.py testing.py wiring/in_process.py",
}
UNUSED = tuple(f"{folder}/{name}" for folder, names in _UNUSED.items() for name in names.split())
# Modules that only some functions use: to run agents, to serve HTTP, to erase.
RUN_AGENTS = frozenset({"ApiFunction", "WorkerFunction"})
ASKS_TO_ERASE = frozenset({"ApiFunction"})
ERASES = frozenset({"EraserFunction"})
USED_BY = {
    "a2a_serverless/client": RUN_AGENTS,
    "a2a_serverless/engine": RUN_AGENTS,
    "a2a_serverless/adapters/deployed_stack.py": ASKS_TO_ERASE,
    "a2a_serverless/adapters/dynamodb/erasure.py": ERASES,
    "a2a_serverless/handlers/eraser.py": ERASES,
    "a2a_serverless/services/erasure.py": ASKS_TO_ERASE | ERASES,
    "botocore/data/lambda": ASKS_TO_ERASE,
    "a2a_serverless/http": frozenset({"ApiFunction"}),
}


def trim(folder: Path) -> None:
    """Remove the files that a function does not use from its folder."""
    elsewhere = [pattern for pattern, functions in USED_BY.items() if folder.name not in functions]
    for pattern in (*UNUSED, *elsewhere):
        for path in folder.glob(pattern):
            _remove(path)
    if (folder / "certifi").exists():  # botocore prefers certifi's certificates to its own
        _remove(folder / "botocore/cacert.pem")
    for service in folder.glob("botocore/data/*/"):
        if service.is_dir() and service.name not in SERVICES:
            shutil.rmtree(service)
    for model in folder.glob("botocore/data/**/*.json.gz"):
        _write(model.with_suffix(""), _undocumented(json.loads(gzip.decompress(model.read_bytes()))))
        model.unlink()
    if (endpoints := folder / "botocore/data/endpoints.json").exists():
        document = json.loads(endpoints.read_text())
        for partition in document["partitions"]:
            partition["services"] = {name: one for name, one in partition["services"].items() if name in SERVICES}
        _write(endpoints, document)


def trim_agents(folder: Path, paths: Iterable[str]) -> None:
    """Remove the packages that hold the agents at these import paths from a function's folder."""
    tops = {path.partition(":")[0].partition(".")[0] for path in paths} | {OWN_AGENTS}
    for top in tops - {LIBRARY}:
        for path in (folder / top, folder / f"{top}.py"):
            _remove(path)


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
