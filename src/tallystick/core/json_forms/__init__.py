"""JSON as others agree on it: one text for each value (RFC 8785), and one meaning for each text."""

from __future__ import annotations
