"""Generators that need no model and no network: the same input gives the same output, and nothing is invented."""
