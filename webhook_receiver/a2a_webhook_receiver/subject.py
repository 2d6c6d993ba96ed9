"""The event that a notification is about: its signed claims name it, and so do the refusals that follow."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Subject:
    """Which event of which task a notification is about. ``notification_id`` stays the same over all attempts."""

    task_id: str
    config_id: str
    notification_id: str
    event_number: int
