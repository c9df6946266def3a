"""A Tally on each store, empty, with a clock that the test owns where it asks for one."""

from __future__ import annotations

from tests.tallies import app, clock, hand, put, statements, timed, url

__all__ = ["app", "clock", "hand", "put", "statements", "timed", "url"]
