"""What tests use: `crash_everywhere` and `stepping` for your workflows, `conformance` for your own store."""

from __future__ import annotations

from tallystick.testing.crashing import CrashReport, CrashTrial, crash_everywhere, note

__all__ = ["CrashReport", "CrashTrial", "crash_everywhere", "note"]
