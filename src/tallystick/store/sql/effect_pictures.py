"""Effects in the pictures of their jobs, from the rows of statements."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tallystick.core.effects.rows import EffectRow, OpenEffect
from tallystick.core.pictures import Pictures


def add_effects(pictures: Pictures, rows: Iterable[tuple[Any, ...]]) -> None:
    """Add effects that are open to the pictures of their jobs, each with whether its lease is live."""
    for *about, live in rows:
        row = EffectRow._make(about)
        effects = pictures[row.job_id].effects if row.job_id in pictures else None
        if effects is not None:
            effects[row.place] = OpenEffect(row, bool(live))


def add_keys(pictures: Pictures, rows: Iterable[tuple[Any, ...]]) -> None:
    """Add who has the keys that were asked for."""
    for about in rows:
        row = EffectRow._make(about)
        pictures.occupied[row.occupies] = row
