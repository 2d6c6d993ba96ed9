"""Test vectors: signed requests with the verdict that every receiver must reach."""
