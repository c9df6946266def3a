"""The examples run, and the one about a source tree survives Ctrl-C and kill -9 as it says."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tallystick.stage import audit, read_journal

EXAMPLES = Path(__file__).parents[2] / "examples"
TREE = Path(__file__).parents[2] / "src" / "tallystick" / "stage"


def run_example(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(EXAMPLES / name), *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("30_stage.py", "[5, 5, 5, 2, 3]"),
        ("32_stage_async.py", "skipped 4"),
        ("33_sequence.py", "Alice comes late: False"),
    ],
)
def test_an_example_runs_and_says_what_it_promises(name: str, said: str):
    done = run_example(name)
    assert done.returncode == 0, done.stderr
    assert said in done.stdout


def copy_of_the_tree(folder: Path) -> list[str]:
    folder.mkdir()
    for path in TREE.glob("*.py"):
        (folder / path.name).write_bytes(path.read_bytes())
    return sorted(str(path) for path in folder.iterdir())


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_hashing_a_tree_can_be_stopped_anywhere_and_goes_on(tmp_path: Path, end: signal.Signals):
    """Stopped again and again until it is through; the journal proves that nothing was computed twice."""
    files = copy_of_the_tree(tmp_path / "tree")
    journal = tmp_path / "digests.journal"
    printed: list[str] = []
    for _ in range(4):
        child = subprocess.Popen(
            [
                sys.executable,
                str(EXAMPLES / "31_hash_a_tree.py"),
                str(tmp_path / "tree"),
                str(journal),
                "0.03",
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert child.stdout is not None
        line = child.stdout.readline()
        child.send_signal(end)
        printed += [line, child.stdout.read()]
        child.wait(30)
        child.stdout.close()
        if child.returncode in {0, -signal.SIGINT}:
            break  # it was through, and perhaps on its way out
        assert child.returncode in {130, -signal.SIGKILL}
    done = run_example("31_hash_a_tree.py", str(tmp_path / "tree"), str(journal))
    assert done.returncode == 0, done.stderr
    found = [one.value for one in read_journal(journal)]
    assert found == [hashlib.sha256(Path(name).read_bytes()).hexdigest() for name in files]
    books = audit(journal)
    assert books.ok
    assert len(books.runs) >= 3, "it was really stopped and resumed"
    assert sum(run.committed for run in books.runs) == len(files)
    assert books.runs[-1].complete
    everything = "".join(printed) + done.stdout
    assert all(f"{digest} " in everything for digest in found)


def test_the_stage_needs_no_numpy_and_no_rich(tmp_path: Path):
    script = f"""
import sys
for name in ("numpy", "rich"):
    sys.modules[name] = None
from tallystick.stage import Stage, Sequence
Sequence(3).dispatch(0, 0)
assert Stage(len, journal={str(tmp_path / "j")!r}, progress=True).run(["a", "bb"]).ok
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=dict(os.environ),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "2/2" in done.stderr
