"""The handler of the deployed api for the kit: the function's own parts, but every message is a new one (``api.py``).

It runs in the emulator, beside the files of the function's zip.
"""

from __future__ import annotations

import os
from dataclasses import replace
from importlib import import_module

from a2a_serverless.aws.process import start_handler
from a2a_serverless.http.app import make_asgi_app
from a2a_serverless.http.lambda_proxy import NotHttp, make_gateway_handler

function = import_module("app")
service = function.api.service._replace(idempotent=False)
gateway = make_gateway_handler(make_asgi_app(replace(function.api, service=service)))
handler = start_handler(gateway, os.environ, function.metrics, "api", (NotHttp,), service.tracer)
