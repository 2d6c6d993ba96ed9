"""A2A's objects as pydantic models, one module per version, and what translates between versions."""
