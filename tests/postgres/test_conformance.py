"""The PostgreSQL store keeps every promise of the store protocol."""

from __future__ import annotations

from tallystick.testing.conformance.suite import StoreConformance


class TestPostgres(StoreConformance):
    """Over a real server, with real processes."""
