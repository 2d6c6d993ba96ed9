"""The agents of this project: pyproject.toml lists them."""
