"""Children that end in one flush are counted in their groups, one statement each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tallystick.store.api import EndJob
from tallystick.store.groups import closes, ending, wake_parent
from tallystick.store.sqlite.statements import sql

if TYPE_CHECKING:
    from tallystick.store.sqlite.writer import Batch


def count_children(batch: Batch, requests: list[EndJob]) -> None:
    """Count those that are children, in their order, and let each that closes a group wake its parent."""
    children = {f"child:{r.fence.job_id}": (r.parent, r.state) for r in requests if r.parent is not None}
    rows = [ending(guid, home, state, batch.wall) for guid, (home, state) in children.items()]
    for guid, hit, mode in list(batch.cursor.executemany(sql("count_child"), rows)):
        home, state = children[guid]
        if closes(hit, mode, state):
            wake_parent(batch, home)
