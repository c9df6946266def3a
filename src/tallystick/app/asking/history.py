"""The history of a job, as users read it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tallystick.store.api import StoredEvent


class Event:
    """A fact in the history of a job."""

    def __init__(self, fact: StoredEvent, began_at: int | None = None) -> None:
        """Show a stored fact, and how long the step or wait took that it ends."""
        self.n = fact.n
        self.name = fact.type
        self.at = datetime.fromtimestamp(fact.at / 1000, tz=UTC)
        self.attempt = fact.attempt
        self.payload = fact.payload
        self.hash = fact.event_hash.hex()
        self.took = None if began_at is None else timedelta(milliseconds=fact.at - began_at)

    def __repr__(self) -> str:
        return f"<{self.n} {self.name} {self.at:%H:%M:%S.%f} attempt {self.attempt}>"
