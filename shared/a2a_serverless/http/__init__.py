"""The one ASGI application: every route and binding, and how Lambda and uvicorn serve it."""
