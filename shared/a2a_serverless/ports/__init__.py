"""Protocols (ports) for the outside: files, queues, keys, network, time. ``adapters`` implements them.

Every write may be retried, and every call may fail after it took effect; each method says what holds then.
"""
