"""A SQLite file on a disk that can fail: full for a while, or with errors in its system calls."""

from __future__ import annotations

import contextlib
import os
import random
import resource
import shutil
import signal
import subprocess
from pathlib import Path

from tests.chaos.crew import Crew
from tests.patience import let_time_pass

_ROOMY = "size=2g"
_STRACE_WAIT = 30


class Disk:
    """The folder of the database: a file system of its own where mounting is permitted."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.mounted = self._mount(_ROOMY)

    @property
    def url(self) -> str:
        """Return the address of the database."""
        return f"sqlite:///{self.folder / 'chaos.db'}"

    def fill(self) -> None:
        """Leave no room beside what is there."""
        used = os.statvfs(self.folder)
        size = (used.f_blocks - used.f_bfree) * used.f_frsize
        self._mount(f"remount,size={size}")

    def is_full(self) -> bool:
        """Tell whether nothing more can be written."""
        probe = self.folder / "probe"
        try:
            probe.write_bytes(bytes(1 << 20))
        except OSError:
            return True
        finally:
            probe.unlink(missing_ok=True)
        return False

    def free(self) -> None:
        """Make room again."""
        self._mount(f"remount,{_ROOMY}")

    def remove(self, keep: Path | None) -> None:
        """Unmount; with `keep` the files are copied there first."""
        if not self.mounted:
            return
        if keep is not None:
            keep.mkdir()
            for path in self.folder.glob("chaos.db*"):
                if path.is_file():
                    shutil.copy(path, keep)
        subprocess.run(["umount", "-l", str(self.folder)], check=False, capture_output=True)

    def _mount(self, options: str) -> bool:
        if shutil.which("mount") is None:
            return False
        command = ["mount", "-t", "tmpfs", "-o", options, "tallystick-chaos", str(self.folder)]
        return subprocess.run(command, check=False, capture_output=True).returncode == 0


class DiskFull:
    """Nothing more can be written for a while."""

    name = "disk full"

    def __init__(self, disk: Disk, crew: Crew) -> None:
        self._disk = disk
        self._crew = crew

    def missing(self) -> str:
        return "" if self._disk.mounted or hasattr(resource, "prlimit") else "neither mount nor prlimit"

    def strike(self, chance: random.Random) -> int:
        seconds = chance.uniform(0.2, 1.5)
        if self._disk.mounted:
            self._disk.fill()
            full = self._disk.is_full()
            let_time_pass(seconds)
            self._disk.free()
            return int(full)
        return self._limited(seconds)

    def _limited(self, seconds: float) -> int:
        """Let no process write beyond the end of the log as it is; what reaches that far gets an error."""
        log = self._disk.folder / "chaos.db-wal"
        size = log.stat().st_size if log.exists() else 0
        pids = [member.process.pid for member in self._crew.members if member.alive]
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
        let_time_pass(seconds)
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                resource.prlimit(pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        return len(pids) and 1


class BadCalls:
    """Writes and syncs of one process fail: one of them, or all for a while."""

    name = "i/o error"

    def __init__(self, folder: Path, crew: Crew) -> None:
        self._folder = folder
        self._crew = crew
        self._number = 0

    def missing(self) -> str:
        if shutil.which("strace") is None:
            return "there is no strace"
        command = ["strace", "-qq", "-o", "/dev/null", "-e", "inject=fdatasync:error=EIO", "true"]
        done = subprocess.run(command, check=False, capture_output=True, timeout=_STRACE_WAIT)
        return "" if done.returncode == 0 else f"strace may not trace: {done.stderr.decode()[:80]}"

    def strike(self, chance: random.Random) -> int:
        member = self._crew.any(chance)
        self._number += 1
        trace = self._folder / f"strace-{self._number}"
        call = chance.choice(("pwrite64", "pwrite64", "fdatasync"))
        first = chance.randrange(1, 8)
        when = f"{first}" if chance.random() < 0.5 else f"{first}+"
        error = chance.choice(("EIO", "ENOSPC"))
        inject = f"inject={call}:error={error}:when={when}"
        command = ["strace", "-f", "-qq", "-o", str(trace), "-p", str(member.process.pid)]
        tracer = subprocess.Popen(
            [*command, "-e", f"trace={call}", "-e", inject],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        let_time_pass(chance.uniform(0.5, 1.5))
        tracer.send_signal(signal.SIGINT)
        try:
            tracer.wait(_STRACE_WAIT)
        except subprocess.TimeoutExpired:
            tracer.kill()
            tracer.wait(_STRACE_WAIT)
        fired = trace.read_text("utf-8", errors="replace").count("INJECTED") if trace.exists() else 0
        trace.unlink(missing_ok=True)
        return min(fired, 1)
