"""A Tally on each store, by the clock of the test, for words that people read."""

from __future__ import annotations

from tests.tallies import clock, hand, timed, url

__all__ = ["clock", "hand", "timed", "url"]
