"""The check of the books: of each job, and of a whole store."""

from __future__ import annotations

from tallystick.core.audit.book import FINDINGS_KEPT_MAX
from tallystick.engine.audit.jobs import Audit, Checked, audit, check_job

__all__ = ["FINDINGS_KEPT_MAX", "Audit", "Checked", "audit", "check_job"]
