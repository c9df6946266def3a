"""Benchmarks: ours beside peers, in the same run, against the limit of the machine."""

from __future__ import annotations
