"""The disk fails at every single call: what is acknowledged is there, and a resume ends the same."""

from __future__ import annotations

import contextlib
import errno
import os
import subprocess
from pathlib import Path

import pytest

from tallystick.errors import StorageFailed
from tallystick.log.folder import Folder
from tallystick.runs.log.inspection import verify
from tallystick.runs.orchestrator.start import start_or_resume
from tests.log.faults import FaultyFiles
from tests.runs.test_recovery import three_nodes
from tests.runs.worlds import around, fast_folder, history


def run(root, files=None, prefix="a"):
    return start_or_resume(
        three_nodes(), root, "r1", parallel=1, around=around(prefix, **({"files": files} if files else {}))
    )


@pytest.fixture(scope="module")
def reference():
    counting = FaultyFiles()
    with fast_folder() as root:
        run(root, counting)
        yield (root / "r1" / "snapshot.json").read_bytes(), history(root / "r1"), counting.counts


def resumed_to_the_same_end(root, reference):
    run(root, prefix="b")
    assert (root / "r1" / "snapshot.json").read_bytes() == reference[0]
    assert history(root / "r1") == reference[1]
    assert verify(root, "r1").sound
    assert not [name for name in (root / "r1").rglob("*") if name.name.endswith(".new")]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO], ids=errno.errorcode.get)
@pytest.mark.parametrize(
    "call",
    ["open", "write", "fsync", "sync_data", "rename", "mkdir", "read", "truncate", "unlink", "close"],
)
def test_a_call_that_fails_once_stops_the_run_and_a_resume_ends_the_same(reference, call, number):
    """D06. Each call of each kind in turn; the run stops with a clear error and is never called FAILED."""
    for nth in range(1, reference[2][call] + 1):
        files = FaultyFiles(call, nth, number, short=nth % 2 == 0)
        with fast_folder() as root:
            with contextlib.suppress(StorageFailed):
                run(root, files)
            assert files.fired == 1
            resumed_to_the_same_end(root, reference)


@pytest.mark.parametrize("call", ["write", "fsync", "sync_data", "rename"])
def test_a_disk_that_stays_full_stops_the_run_and_space_lets_it_go_on(reference, call):
    for nth in range(1, reference[2][call] + 1, 3):
        files = FaultyFiles(call, nth, errno.ENOSPC, short=True, lasting=True)
        with fast_folder() as root:
            with pytest.raises(StorageFailed):
                run(root, files)
            resumed_to_the_same_end(root, reference)


def mounted(tmp_path: Path, size: str) -> bool:
    command = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "tmpfs", str(tmp_path)]
    return os.geteuid() == 0 and subprocess.run(command, capture_output=True, check=False).returncode == 0


def test_a_real_disk_that_fills_up_loses_nothing(tmp_path, reference):
    """A file system of a few pages: the run stops when it is full, and goes on when there is space."""
    if not mounted(tmp_path, "256k"):
        pytest.skip("mounting a tmpfs needs root")
    try:
        filler = tmp_path / "filler"
        stops = 0
        for left in (8, 16, 24, 32, 40, 52, 64):
            with Folder.open(tmp_path, create=True):
                filler.write_bytes(b"x" * (252 - left) * 1024)
            try:
                run(tmp_path, prefix=f"p{left}")
            except StorageFailed as error:
                stops += error.errno == errno.ENOSPC
            filler.unlink(missing_ok=True)
        assert stops
        resumed_to_the_same_end(tmp_path, reference)
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)
