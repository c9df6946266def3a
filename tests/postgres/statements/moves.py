"""Rows that plans move, as the statement `move` is given them."""

from __future__ import annotations

import json
from collections.abc import Mapping

from tallystick.store.sql.shapes import fields


def listed(shape: str, columns: Mapping[str, object]) -> str:
    """Return a list of one row; what is not named is null."""
    return json.dumps([[columns.get(name) for name in fields(shape)]])


def move_of(
    job: Mapping[str, object], activity: Mapping[str, object], message: Mapping[str, object]
) -> tuple[str, ...]:
    """Return the parameters that move one of each."""
    rows = (listed("JobMove", job), listed("ActivityMove", activity), listed("MessageMove", message))
    return (*rows, "10", str(len(rows)))
