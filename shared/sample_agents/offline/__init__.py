"""Generators that need no model and no network. The same input gives the same output, and no facts are invented."""
