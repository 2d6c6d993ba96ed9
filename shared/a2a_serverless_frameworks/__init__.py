"""Agents of other frameworks as agents of a deployment: one module for each framework, imported only by its users."""
