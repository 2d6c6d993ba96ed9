"""Draws phases of time as bars: one line per phase, all on one scale."""

from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size

WIDTH = 40
BAR = "━"
FADING = "╌"
SHORTEST_S = 1e-6


@dataclass(frozen=True, slots=True)
class Phase:
    """A named span from ``begin`` to ``end``, in seconds of the same clock. From ``fades`` on it is not certain."""

    name: str
    begin: float
    end: float
    fades: float | None = None

    @property
    def seconds(self) -> float:
        return self.end - self.begin


def draw(phases: list[Phase], width: int = WIDTH) -> list[str]:
    """Returns the lines of the picture: name, bar of at least one character, length, time since the first begin."""
    if not phases:
        return []
    start, end = min(phase.begin for phase in phases), max(phase.end for phase in phases)
    scale = width / (end - start) if end - start > SHORTEST_S else 0.0
    names = max(cell_len(phase.name) for phase in phases)
    return [_line(phase, start, scale, names, width) for phase in phases]


def _line(phase: Phase, start: float, scale: float, names: int, width: int) -> str:
    left = min(width - 1, round((phase.begin - start) * scale))
    right = max(left + 1, min(width, round((phase.end - start) * scale)))
    faded = right if phase.fades is None else min(right, max(left + 1, round((phase.fades - start) * scale)))
    bar = " " * left + BAR * (faded - left) + FADING * (right - faded)
    duration = f"{phase.seconds * 1000:5.0f} ms" if phase.seconds < 1 else f"{phase.seconds:5.1f} s "
    return f"{set_cell_size(phase.name, names)}  {bar:{width}}  {duration}  from {phase.begin - start:.1f} s"
