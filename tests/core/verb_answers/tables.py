"""The tables of answers, each behind those whose words it uses."""

from __future__ import annotations

TABLES = ("waits", "takes", "ends", "cancels", "groups", "claims", "going_on", "reports", "looks")
