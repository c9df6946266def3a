"""Eras: which PostgreSQL server this process writes to, and since when that is certain."""

from __future__ import annotations

from tallystick.core.chain import Era


class Eras:
    """The era of one store: over when a connection is lost, or when another server answers.

    A server that crashes ends all of its connections. With `synchronous_commit` off it may come back without
    what it had acknowledged last, and a standby that was behind may take its place.
    """

    def __init__(self) -> None:
        """Begin before any server has answered."""
        self.now = Era()

    def answered(self, server: str) -> bool:
        """Note which server has answered, and tell whether it is the one that was believed to be there."""
        same = server == self.now.server
        if not same:
            self.now = Era(server)
        return same

    def lost(self) -> None:
        """Note that a connection was lost: what the server remembers is unknown."""
        self.now = Era(self.now.server)
