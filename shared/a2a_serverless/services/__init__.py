"""The use cases, as plain functions over ports."""
