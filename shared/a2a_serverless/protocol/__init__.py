"""A2A's objects as pydantic models, with one module for each version, and the translation between the versions."""
