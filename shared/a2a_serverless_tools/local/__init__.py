"""The api on a developer's machine: served by uvicorn, and a deployment in one process."""
