"""Test vectors: signed requests, each with the verdict that every receiver must reach."""
