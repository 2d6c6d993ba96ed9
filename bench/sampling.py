"""Samples of a stack under load: memory of its processes, messages in its queues, tasks that have not ended."""

from __future__ import annotations

import statistics
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from a2a_serverless.domain.states import TERMINAL
from a2a_serverless_tools.stack import local_stack, sam

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from a2a_serverless.domain.head import Head

QUEUES: Final = ("WorkQueueUrl", "DeliveryQueueUrl", "WorkDeadLettersUrl", "DeliveryDeadLettersUrl", "RelayFailuresUrl")
DEPTHS: Final = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")
PROCESSES: Final = ("api", "receiver", "emulator")


@dataclass(frozen=True)
class Sample:
    """The stack at one moment: resident memory in MB, messages in each queue, and the heads of all tasks."""

    memory: dict[str, float]
    queued: dict[str, int]
    heads: Sequence[Head]

    @property
    def unended(self) -> int:
        """How many tasks have not ended."""
        return sum(head.state not in TERMINAL for head in self.heads)


@dataclass
class Samples:
    """The samples of a run, in their order."""

    taken: list[Sample] = field(default_factory=list)

    def take(self, stack: local_stack.RunningStack, heads: Sequence[Head]) -> None:
        """Adds a sample. Raises OSError while a process is down."""
        memory = {name: resident_mb(getattr(stack, name).pid) for name in PROCESSES}
        self.taken.append(Sample(memory, _queued(stack.deployment), heads))

    def growth(self, name: str) -> float:
        """Divides the median memory of the last quarter by that of the second one; the first is warm-up."""
        held = [sample.memory[name] for sample in self.taken]
        quarter = max(1, len(held) // 4)
        return statistics.median(held[-quarter:]) / statistics.median(held[quarter : 2 * quarter] or held)

    def rows(self) -> Iterator[str]:
        """The samples as rows of a table."""
        first, last = self.taken[0], self.taken[-1]
        states = Counter(head.state.value for head in last.heads)
        counts = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
        yield f"| tasks | {len(last.heads)}: {counts} |"
        for name, count in last.queued.items():
            yield f"| {name} | at most {max(sample.queued[name] for sample in self.taken)}, {count} at the end |"
        yield f"| tasks under way | at most {max(sample.unended for sample in self.taken)} |"
        for name in PROCESSES:
            by = self.growth(name)
            yield f"| memory of the {name} | {first.memory[name]:.0f} MB, then {last.memory[name]:.0f} MB, x{by:.2f} |"


def resident_mb(pid: int) -> float:
    """Returns the resident memory of a process in MB; raises OSError if the process has ended."""
    _, label, value = Path(f"/proc/{pid}/status").read_text().partition("VmRSS:")
    if not label:  # it has ended, and nobody has waited for it yet
        raise ProcessLookupError(pid)
    return int(value.split()[0]) / 1024


def _queued(deployment: sam.Deployment) -> dict[str, int]:
    sqs = sam.client("sqs", deployment.endpoint)
    depths = {}
    for name in QUEUES:
        attributes = sqs.get_queue_attributes(QueueUrl=deployment.outputs[name], AttributeNames=[*DEPTHS])["Attributes"]
        depths[name.removesuffix("Url")] = sum(int(attributes[depth]) for depth in DEPTHS)
    return depths
