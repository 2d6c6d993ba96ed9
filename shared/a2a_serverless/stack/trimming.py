"""What no function needs of the packages that `sam build` installs: smaller zips load faster, so does smaller data.

The SDK's models of services are kept for those that we call, without their documentation, and not compressed: botocore
looks for both forms, and each client that a cold start makes would first unpack and parse ten times as much. Files may
be hard links into a package cache, so they are removed and written anew, never changed.
"""

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

SERVICES = frozenset({"bedrock-runtime", "dynamodb", "kms", "lambda", "s3", "secretsmanager", "sqs"})
UNUSED = (
    ".lock",  # uv's
    "bin",  # console scripts
    "*.dist-info/RECORD",  # what an installer needs
    "**/*.pyi",  # what a type checker reads
    "cffi",  # a compiler: cryptography needs only its run time
    "pycparser",
    "dateutil/zoneinfo",  # a copy of the time zone database
    "botocore/data/*/*/examples-1.json",
    "PIL/_avif*",  # formats that we neither read nor write
    "PIL/_imagingcms*",
    "PIL/_webp*",
    "PIL/_imagingtk*",  # windows and screens
    "PIL/ImageGrab.py",
    "PIL/ImageQt.py",
    "PIL/ImageTk.py",
    "pillow.libs/libavif*",
    "pillow.libs/liblcms2*",
    "pillow.libs/libsharpyuv*",
    "pillow.libs/libwebp*",
    "urllib3/contrib/emscripten",  # browsers
    "a2a_serverless/cli",  # for people
    "a2a_serverless/adapters/deployed_stack.py",
    "a2a_serverless/stack",
    "a2a_serverless/testing.py",  # for authors of agents
)
# What only some functions use: what runs agents, what draws and writes for them, what serves HTTP, what erases.
RUN_AGENTS = frozenset({"ApiFunction", "WorkerFunction"})
READ_AGENTS = RUN_AGENTS | {"RotatorFunction"}
ASKS_TO_ERASE = frozenset({"ApiFunction"})
ERASES = frozenset({"EraserFunction"})
_SERVING = "callback cors deliveries documents gate http openapi operate operator_api uploads web"
USED_BY = {
    "a2a_serverless/adapters/bedrock": RUN_AGENTS,
    "a2a_serverless/adapters/builtin": RUN_AGENTS,
    "a2a_serverless/client": RUN_AGENTS,
    "a2a_serverless/engine": RUN_AGENTS,
    "a2a_serverless/agents": READ_AGENTS,
    "a2a_serverless/adapters/lambda_functions.py": ASKS_TO_ERASE,
    "a2a_serverless/adapters/erasure.py": ERASES,
    "a2a_serverless/handlers/eraser.py": ERASES,
    "a2a_serverless/services/erasure.py": ASKS_TO_ERASE | ERASES,
    "botocore/data/lambda": ASKS_TO_ERASE,
    **{f"a2a_serverless/handlers/{name}.py": frozenset({"ApiFunction"}) for name in _SERVING.split()},
}


def trim(folder: Path) -> None:
    """Remove from a function's folder what it does not use."""
    elsewhere = [pattern for pattern, functions in USED_BY.items() if folder.name not in functions]
    for pattern in (*UNUSED, *elsewhere):
        for path in folder.glob(pattern):
            _remove(path)
    if (folder / "certifi").exists():  # botocore prefers its certificates to its own
        _remove(folder / "botocore/cacert.pem")
    data = folder / "botocore/data"
    for service in data.glob("*/"):
        if service.is_dir() and service.name not in SERVICES:
            shutil.rmtree(service)
    for model in data.rglob("*.json.gz"):
        _write(model.with_suffix(""), _undocumented(json.loads(gzip.decompress(model.read_bytes()))))
        model.unlink()
    endpoints = data / "endpoints.json"
    if endpoints.exists():
        _write(endpoints, _only_our_services(json.loads(endpoints.read_text())))


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


def _write(path: Path, document: object) -> None:
    path.unlink(missing_ok=True)
    path.write_text(json.dumps(document, separators=(",", ":")))


def _undocumented(value: Any) -> Any:  # noqa: ANN401 - JSON
    """The same with empty ``documentation`` texts: botocore reads some. A member of a shape may have that name too."""
    if isinstance(value, dict):
        return {
            name: "" if name == "documentation" and isinstance(inner, str) else _undocumented(inner)
            for name, inner in value.items()
        }
    return [_undocumented(inner) for inner in value] if isinstance(value, list) else value


def _only_our_services(endpoints: dict[str, Any]) -> dict[str, Any]:
    for partition in endpoints["partitions"]:
        partition["services"] = {name: data for name, data in partition["services"].items() if name in SERVICES}
    return endpoints
