"""The sweeps are programs that tests start; they have no tests of their own."""

from __future__ import annotations

collect_ignore = ["sweep", "effects"]
