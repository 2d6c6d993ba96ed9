"""The one ASGI application: its routes and bindings, and the adapters that serve it on Lambda and by uvicorn."""
