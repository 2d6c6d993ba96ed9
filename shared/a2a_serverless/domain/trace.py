"""Carries one trace id from a request to its webhooks: W3C Trace Context, level 1 (``traceparent``).

The trace is stored in the task's head and not in queue messages, because the sweeper's messages would lack it. It
contains ids only; ``tracestate`` is not stored, because it is arbitrary client content.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Final

HEADER: Final = "traceparent"
XRAY_HEADER: Final = "x-amzn-trace-id"

_ACCEPTED: Final = re.compile(
    r"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?"
)
_XRAY: Final = re.compile(r"(?:^|;)\s*Root=1-([0-9a-f]{8})-([0-9a-f]{24})(?:;|$)")
_SAMPLED: Final = 1


def parse_traceparent(header: str | None) -> str | None:
    """The trace of a ``traceparent`` header, in the format of version 00; None if it must be ignored (3.2.2)."""
    match = _ACCEPTED.fullmatch((header or "").strip(" \t"))
    if match is None or (match[1] == "00" and match[5]):
        return None
    return f"00-{match[2]}-{match[3]}-{int(match[4], 16) & _SAMPLED:02}"


def from_xray(header: str | None, seed: str) -> str | None:
    """The trace of an X-Ray header, so that X-Ray and our logs have the same trace id; None without one."""
    match = _XRAY.search(header or "")
    if match is None or not int(match[1] + match[2], 16):
        return None
    return f"00-{match[1]}{match[2]}-{_span(seed)}-{'Sampled=1' in (header or ''):02}"


def new_trace(seed: str) -> str:
    """A new trace. ``seed`` must be a unique id."""
    digits = sha256(seed.encode()).hexdigest()
    return f"00-{digits[:32]}-{digits[32:48]}-00"


def child_of(trace: str, seed: str) -> str:
    """The trace with a span made from ``seed``, the parent of later spans; "" without a trace."""
    return f"{trace[:36]}{_span(seed)}{trace[52:]}" if trace else ""


def trace_id(trace: str) -> str:
    """The trace id (32 hex digits) that logs contain; "" without a trace."""
    return trace[3:35]


def with_sampling(trace: str, share: float) -> str:
    """The trace, sampled if its id is within ``share`` (0 to 1) of all ids, as OpenTelemetry's samplers decide it."""
    is_sampled = int(trace[19:35], 16) < share * 2**64
    return f"{trace[:53]}{int(is_sampled):02}"


def is_sampled(trace: str) -> bool:
    """Whether the spans of the trace are recorded; False without a trace."""
    return bool(trace) and bool(int(trace[53:], 16) & _SAMPLED)


def _span(seed: str) -> str:
    return sha256(f"span {seed}".encode()).hexdigest()[:16]
