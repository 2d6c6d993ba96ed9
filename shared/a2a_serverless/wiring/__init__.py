"""The composition roots: build the use cases and handlers on the real adapters, one module for each function.

Importing them opens, reads and connects nothing; each ``make_`` function does.
"""
