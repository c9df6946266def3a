"""What a program says on stderr besides the log of jobs, which tells of those that fail or are taken over."""

from __future__ import annotations

import re

# A record may have more lines: those of a difference, and what to do about it.
_TOLD = re.compile(r"^job [0-9a-f-]{36}.*\n(?:[-+] .*\n|give the changed workflow .*\n)*", re.MULTILINE)


def without_job_log(stderr: str) -> str:
    """Return what is left when the lines of the log `tallystick.job` are taken out."""
    return _TOLD.sub("", stderr)
