"""``a2a-serverless dev``: a project's agents on this machine in one process, with new code a moment after it is saved.

It uses nothing that only one operating system has; a test holds the imports.
"""

SAMPLES = 200
"""A rehearsal plays so many tasks of a shape at most, if its caller does not say how many."""
