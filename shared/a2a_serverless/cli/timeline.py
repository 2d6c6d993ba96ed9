"""A small picture of where the time went: one line per phase, one scale for all."""

from dataclasses import dataclass

WIDTH = 40
BAR = "━"
SHORTEST_S = 1e-6


@dataclass(frozen=True, slots=True)
class Phase:
    """From ``begin`` to ``end``, in seconds on any one clock."""

    name: str
    begin: float
    end: float

    @property
    def seconds(self) -> float:
        return self.end - self.begin


def draw(phases: list[Phase], width: int = WIDTH) -> list[str]:
    """The lines of the picture. A phase that is too short to see still gets a mark."""
    if not phases:
        return []
    start, end = min(phase.begin for phase in phases), max(phase.end for phase in phases)
    scale = width / (end - start) if end - start > SHORTEST_S else 0.0
    names = max(len(phase.name) for phase in phases)
    return [_line(phase, start, scale, names, width) for phase in phases]


def _line(phase: Phase, start: float, scale: float, names: int, width: int) -> str:
    left = min(width - 1, round((phase.begin - start) * scale))
    right = max(left + 1, min(width, round((phase.end - start) * scale)))
    bar = " " * left + BAR * (right - left)
    return f"{phase.name:{names}}  {bar:{width}}  {phase.seconds:5.1f} s"
