"""Pages of the dashboard, a module for each: what is read for it, and what its forms do."""

from __future__ import annotations
