"""What ``a2a-serverless dev`` serves: the api, and the worker in threads of the same process."""

import threading

from ours_api import app, deployment

__all__ = ["app"]
threading.Thread(target=deployment.dispatch, daemon=True).start()
