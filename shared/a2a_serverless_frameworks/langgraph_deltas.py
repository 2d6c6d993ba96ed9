"""The history of ``DeltaChannel``s, for savers that store only the newest checkpoint of a thread.

LangGraph stores the value of such a channel with a few checkpoints only. It makes the value at any other checkpoint of
the last stored value and the writes since. So a saver stores both of them with its newest checkpoint.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langgraph.checkpoint.base import Checkpoint, CheckpointMetadata, DeltaChannelHistory, PendingWrite

Deltas: TypeAlias = "dict[str, DeltaChannelHistory]"


def deltas_after(
    deltas: Mapping[str, DeltaChannelHistory],
    values: Mapping[str, Any],
    writes: Sequence[PendingWrite],
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
) -> Deltas:
    """The histories at a checkpoint: those at the checkpoint before it, which has these values, and the writes for it.

    The metadata name each ``DeltaChannel`` whose value is not stored with the checkpoint.
    """
    names = metadata.get("counters_since_delta_snapshot", {}).keys() - checkpoint["channel_values"].keys()
    made: Deltas = {}
    for name in sorted(names):
        before = {"seed": values[name], "writes": []} if name in values else deltas.get(name, {"writes": []})
        made[name] = {**before, "writes": [*before["writes"], *(write for write in writes if write[1] == name)]}
    return made


def deltas_of(deltas: Mapping[str, DeltaChannelHistory], channels: Sequence[str]) -> Deltas:
    """The histories of these channels."""
    return {channel: deltas.get(channel, {"writes": []}) for channel in channels}
