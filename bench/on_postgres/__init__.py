"""The PostgreSQL benchmark: sides, limits and the server they share; `bench/postgres.py` runs them."""

from __future__ import annotations
