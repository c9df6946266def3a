"""Sequences and stages: numbered work that is computed in any order and committed in order."""

from __future__ import annotations
