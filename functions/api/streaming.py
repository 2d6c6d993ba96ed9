"""Composition root of the api function where answers are streamed.

What prevents its start, also a package that is missing, is reported to Lambda as Lambda's own runtime reports it. That
needs the standard library only.
"""

import json
import os
import traceback
from http.client import HTTPConnection


def report(error: Exception) -> None:
    """Posts why this process cannot start to the Runtime API (``/runtime/init/error``)."""
    kind, text = type(error).__name__, str(error)
    if isinstance(error, ImportError):
        kind, text = "Runtime.ImportModuleError", f"Unable to import module 'streaming': {text}"
    body = {"errorType": kind, "errorMessage": text, "stackTrace": traceback.format_tb(error.__traceback__)}
    connection = HTTPConnection(os.environ["AWS_LAMBDA_RUNTIME_API"])
    headers = {"Lambda-Runtime-Function-Error-Type": kind}
    connection.request("POST", "/2018-06-01/runtime/init/error", json.dumps(body), headers)
    connection.getresponse().read()


try:
    from a2a_serverless.aws.process import uncollected

    with uncollected():
        from a2a_serverless.aws.api import make_streaming_api, stream_api

        handler, tracer = make_streaming_api()
except Exception as error:
    report(error)
    raise

stream_api(handler, tracer)
