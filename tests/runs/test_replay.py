"""Replay: the snapshot again, byte for byte, from the log alone, however dictionaries are ordered today."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from tallystick.runs.log.inspection import replay_bytes
from tallystick.runs.orchestrator.start import start_or_resume
from tallystick.runs.toy import toy_publishing
from tests.runs.worlds import around, fast_folder

ROOT = Path(__file__).parents[2]
REPLAY_MANY = """
import sys, hashlib
from tallystick.runs.log.inspection import replay_bytes
print({hashlib.sha256(replay_bytes(sys.argv[1], "r1")).hexdigest() for _ in range(20)})
"""


@pytest.fixture(scope="module")
def root():
    with fast_folder() as folder:
        start_or_resume(toy_publishing(2), folder, "r1", around=around())
        yield folder


@pytest.mark.parametrize("seed", ["0", "1", "2", "77", "4294967295"])
def test_a_hundred_replays_under_different_hash_seeds_are_byte_equal(root, seed):
    """D10. Twenty replays in each of five processes with other hash seeds."""
    expected = hashlib.sha256((root / "r1" / "snapshot.json").read_bytes()).hexdigest()
    answer = subprocess.run(
        [sys.executable, "-c", REPLAY_MANY, str(root)],
        env={"PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        check=True,
    )
    assert answer.stdout.strip() == str({expected})


def test_a_snapshot_has_the_ruled_form(root):
    text = (root / "r1" / "snapshot.json").read_text("utf-8")
    import json

    assert text == json.dumps(json.loads(text), indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    assert replay_bytes(root, "r1").decode() == text


def test_issues_are_ordered_by_severity_gate_path_line_and_id():
    from tallystick.runs.log.snapshot import issue_order
    from tallystick.runs.workers.work import make_issue

    wanted = [
        make_issue("b", "blocker", "1", error_code="X"),
        make_issue("a", "error", "2", error_code="X"),
        make_issue("b", "error", "3", error_code="X", path="a.md", line=2),
        make_issue("b", "error", "4", error_code="X", path="a.md", line=10),
        make_issue("b", "error", "5", error_code="X", path="b.md", line=1, issue_id="a"),
        make_issue("b", "error", "6", error_code="X", path="b.md", line=1, issue_id="b"),
        make_issue("a", "warn", "7"),
        make_issue("a", "info", "8"),
    ]
    backwards = wanted[::-1]
    assert sorted(backwards, key=issue_order) == wanted


@pytest.mark.slow
def test_a_long_log_is_replayed_in_flat_memory():
    """D13. The peak after 200,000 events is the peak after 20,000."""
    program = """
import sys
from bench.runs_log import write_log
from tallystick.runs.log.inspection import replay_bytes
def peak(): return next(int(line.split()[1]) for line in open("/proc/self/status") if "VmHWM" in line)
write_log(sys.argv[1], "short", 20_000); replay_bytes(sys.argv[1], "short"); low = peak()
write_log(sys.argv[1], "long", 200_000); replay_bytes(sys.argv[1], "long")
print(peak() - low)
"""
    with fast_folder() as folder:
        answer = subprocess.run(
            [sys.executable, "-c", program, str(folder)], capture_output=True, text=True, check=True, cwd=ROOT
        )
    assert int(answer.stdout) < 4096
