"""The sweep is a program that tests start; it has no tests of its own."""

from __future__ import annotations

collect_ignore = ["sweep"]
