"""The SQLite store keeps every promise of the store protocol."""

from __future__ import annotations

from tallystick.testing.conformance.suite import StoreConformance


class TestSqlite(StoreConformance):
    """Over real files, with real processes."""
