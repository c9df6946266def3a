"""What pages show of a job, as plain values that templates draw."""

from __future__ import annotations
