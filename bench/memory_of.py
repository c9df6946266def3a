"""How much memory this process holds."""

from __future__ import annotations

from pathlib import Path


def resident_kib() -> int:
    """Return the resident set of this process in KiB; where the kernel tells, without mapped files."""
    status = Path("/proc/self/status")
    if not status.exists():
        import resource  # noqa: PLC0415 (only where there is no /proc)

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    fields = dict(line.split(":", 1) for line in status.read_text().splitlines())
    return int(fields.get("RssAnon", fields["VmRSS"]).split()[0])
