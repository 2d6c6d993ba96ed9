"""Runs agents: leases, steps, emitted chunks, and the hand-over before the time limit."""
