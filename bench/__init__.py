"""Benchmarks against peers and against what the machine allows."""

from __future__ import annotations
