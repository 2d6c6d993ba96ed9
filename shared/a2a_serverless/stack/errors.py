"""The error of the local stack: the part that failed, the reason, its log, and what helps."""

from pathlib import Path


class StackError(Exception):
    """A part of the stack failed. `str()` of it is the message for people."""

    def __init__(self, part: str, why: str, *, log: Path | None = None, remedy: str = "") -> None:
        """Take the part (a noun, such as "emulator"), the reason, and optionally where its log is and what helps."""
        super().__init__(part, why)
        self.part = part
        self.why = why
        self.log = log
        self.remedy = remedy

    def __str__(self) -> str:
        lines = [f"{self.part}: {self.why}"]
        if self.remedy:
            lines.append(f"  what helps: {self.remedy}")
        if self.log:
            lines.append(f"  log: {self.log}")
        return "\n".join(lines)
