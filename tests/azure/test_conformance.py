"""Azure Tables keep every promise about protocol jobs and keys: the suite of all stores, unchanged."""

from __future__ import annotations

from tallystick.testing.conformance.suite import ProtocolConformance


class TestAzure(ProtocolConformance):
    """Over a real emulator of the service."""
