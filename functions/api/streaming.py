"""The api function where answers are streamed.

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
        from a2a_serverless.adapters.aws import Aws
        from a2a_serverless.aws.api_app import make_served_app
        from a2a_serverless.aws.api_dependencies import make_dependencies
        from a2a_serverless.aws.process import make_metrics, start_logged
        from a2a_serverless.http.lambda_proxy import make_gateway_handler
        from a2a_serverless.http.runtime import RuntimeApi, make_streaming_handler, serve

        metrics = make_metrics(os.environ)
        api = make_dependencies(os.environ, Aws(), metrics)
        app, loop = make_served_app(api, os.environ)
        streams = make_streaming_handler(app, make_gateway_handler(app, loop), loop)
        handler = start_logged(streams, os.environ, metrics, "api")
except Exception as error:
    report(error)
    raise

# Spans are exported when the answer was sent, so the client does not wait for them.
serve(RuntimeApi(os.environ["AWS_LAMBDA_RUNTIME_API"]), handler, after=api.service.tracer.flush, loop=loop)
