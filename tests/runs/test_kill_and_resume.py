"""Kill -9 before and after every durable write; afterwards nobody can tell."""

from __future__ import annotations

import pytest

from tallystick import crash
from tallystick.runs.orchestrator import start  # noqa: F401 (declares the crash points)
from tests.runs.worlds import KilledRuns, events, fast_folder, history

# Points that an undisturbed run of one worker at a time does not pass have tests of their own.
ELSEWHERE = {"recovery.set_aside", "log.append.part", "receipt.keep.before", "receipt.keep.done"}
POINTS = [
    name
    for name in crash.points()
    if name.partition(".")[0] in {"log", "folder", "recorder", "artifact", "receipt", "recovery"}
    and name not in ELSEWHERE
]


@pytest.fixture(scope="module")
def killed():
    process = KilledRuns()
    yield process
    process.close()


@pytest.fixture(scope="module")
def reference(killed):
    with fast_folder() as root:
        assert killed.run(root) == 0
        yield (root / "r1" / "snapshot.json").read_bytes(), history(root / "r1")


def same_end(root, reference):
    snapshot, story = reference
    assert (root / "r1" / "snapshot.json").read_bytes() == snapshot
    assert history(root / "r1") == story


def test_there_are_points_before_and_after_every_durable_write():
    assert len(POINTS) >= 13


@pytest.mark.parametrize("point", POINTS)
def test_a_run_killed_at_any_visit_of_a_point_and_resumed_ends_as_if_nothing_had_happened(
    killed, reference, point
):
    """Every visit of every point: the same snapshot byte for byte, and the same events."""
    visit = 0
    while True:
        visit += 1
        with fast_folder() as root:
            status = killed.run(root, crash=f"{point}:{visit}")
            if status == 0:
                break
            assert status == -9
            if killed.is_new(root / "r1"):
                assert killed.run(root) == 0
                same_end(root, reference)
    assert visit > 1, "the point was never reached, so this test proved nothing"


@pytest.mark.parametrize("point", ["log.append.written", "folder.replace.synced", "artifact.name.before"])
def test_a_resume_that_is_killed_itself_can_be_resumed(killed, reference, point):
    for first, second in [(3, 1), (7, 2), (10, 3), (11, 2)]:
        with fast_folder() as root:
            assert killed.run(root, crash=f"{point}:{first}") == -9
            assert killed.run(root, crash=f"{point}:{second}") == -9
            assert killed.run(root) == 0
            same_end(root, reference)


@pytest.mark.parametrize("worker", ["drafter", "linker"])
@pytest.mark.parametrize("point", ["log.append.before", "log.append.synced", "recorder.done"])
def test_a_run_that_fails_fails_the_same_way_when_it_is_killed_on_the_way(killed, point, worker):
    """Spent tries stay spent: no kill between the last failure and the end of the run gives another one."""
    failed = 3
    with fast_folder() as root:
        assert killed.run(root, raises=worker) == failed
        reference = (root / "r1" / "snapshot.json").read_bytes(), history(root / "r1")
    visit = 0
    while True:
        visit += 1
        with fast_folder() as root:
            status = killed.run(root, raises=worker, crash=f"{point}:{visit}")
            if status == failed:
                break
            assert status == -9
            if killed.is_new(root / "r1", raises=worker):
                assert killed.run(root, raises=worker) == failed
                same_end(root, reference)
    assert visit > 10


def test_no_finished_work_item_is_called_again(killed):
    """What was recorded as finished before the kill is never called after it."""
    for visit in range(1, 40, 4):
        with fast_folder() as root:
            calls = root / "calls"
            assert killed.run(root, crash=f"recorder.done:{visit}", calls=str(calls)) == -9
            finished = {
                e["payload"]["work_item_id"] for e in events(root / "r1") if e["type"] == "WORK_ITEM_FINISHED"
            }
            before = len(calls.read_text().split()) if calls.exists() else 0
            assert killed.run(root, calls=str(calls)) == 0
            assert not finished & set(calls.read_text().split()[before:])


def test_fixes_made_before_a_kill_count_after_it(killed):
    """The counter is in the log: three fixes are needed and allowed, however often the run is killed."""
    for visit in range(1, 58, 3):
        with fast_folder() as root:
            assert killed.run(root, crash=f"recorder.done:{visit}", fixes=3) == -9
            assert killed.run(root, fixes=3) == 0
            fixed = [
                e for e in events(root / "r1") if e["type"] == "WORK_ITEM_FINISHED" and ":fixer:" in str(e)
            ]
            assert len(fixed) == 3
