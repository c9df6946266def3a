"""A Tally by the clock of the test."""

from __future__ import annotations

from tests.tallies import clock, hand, timed, url

__all__ = ["clock", "hand", "timed", "url"]
