"""The api answers HTTP requests from API Gateway. `streaming.py` is the same, and streams its answers."""

import os

from a2a_serverless.aws.process import uncollected

with uncollected():
    from a2a_serverless.adapters.aws import Aws
    from a2a_serverless.aws.api_app import make_served_app
    from a2a_serverless.aws.api_dependencies import make_dependencies
    from a2a_serverless.aws.process import make_metrics, start_handler
    from a2a_serverless.http.lambda_proxy import NotHttp, make_gateway_handler

    metrics = make_metrics(os.environ)
    api = make_dependencies(os.environ, Aws(), metrics)
    gateway = make_gateway_handler(*make_served_app(api, os.environ))
    handler = start_handler(gateway, os.environ, metrics, "api", (NotHttp,), api.service.tracer)
