"""The files in this folder that are data: some of their lines are wrong on purpose, and none is ever run."""

from __future__ import annotations

collect_ignore = ["passes.py", "fails.py", "kernel_passes.py", "kernel_fails.py"]
