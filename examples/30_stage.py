"""A stage in five lines: computed by threads in any order, committed in order, kept in a journal."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tallystick.stage import Stage, read_journal

folder = Path(tempfile.mkdtemp())

stage = Stage(len, journal=folder / "lengths.journal")
summary = stage.run(["tally", "stick", "split", "in", "two"])
print(summary)
print([outcome.value for outcome in read_journal(folder / "lengths.journal")])

# Run it again: everything has its outcome, so nothing is computed.
print(stage.run(["tally", "stick", "split", "in", "two"]))
