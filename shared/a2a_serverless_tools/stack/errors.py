"""The error of the local stack: the part that failed, the reason, its log, and what helps."""

from pathlib import Path


class StackError(Exception):
    """A part of the stack (a noun, such as "emulator") failed. `str()` of it is the message for people."""

    def __init__(self, part: str, why: str, *, log: Path | None = None, remedy: str = "") -> None:
        super().__init__(part, why)
        self.part, self.why, self.log, self.remedy = part, why, log, remedy

    def __str__(self) -> str:
        remedy = f"\n  what helps: {self.remedy}" if self.remedy else ""
        log = f"\n  log: {self.log}" if self.log else ""
        return f"{self.part}: {self.why}{remedy}{log}"
