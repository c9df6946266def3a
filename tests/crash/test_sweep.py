"""A bounded part of `make crash`: points, a few pairs, zombies, and controls without a guard."""

from __future__ import annotations

import re

import pytest

from tallystick import crash
from tallystick.store.postgres import store as _server_store  # noqa: F401 (importing it declares the points)
from tallystick.store.sqlite import store as _store  # noqa: F401 (importing it declares the points)
from tests.crash.fresh import HARNESS, python, trial
from tests.crash.sweep.controls import controls_of
from tests.crash.sweep.oracle import Wrong
from tests.crash.sweep.plan import Plan
from tests.crash.sweep.sweep import Sweep, in_share, is_swept
from tests.crash.sweep.trial import Arm, Stage, Verdict

# All points, pairs and controls: the long tests. Every visit of a point and chance: `make crash`.
SHARE = 5


def sweep(store: str, share: int) -> None:
    """Kill at one point in so many, and judge what is said of it."""
    about = ("--store", store, "--quick", "--seed", "make-test", "--share", str(share))
    answer = python("-m", HARNESS, *about, seconds=580)
    said = answer.stdout.splitlines()
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert said[0].startswith("crash: seed=make-test ")
    controls = len(controls_of(store)[::share])
    assert f"controls={controls}/{controls} broken=0 missed=0" in said[-2]
    figures = re.fullmatch(r"crash: points=(\d+) kills=(\d+) lost=0 duplicated=0 stuck=0", said[-1])
    assert figures
    # Other tests in this process may have declared the points of runs and stages.
    declared = [name for name in crash.points() if name.startswith(f"{store}.") and is_swept(name)]
    assert int(figures[1]) == len([name for name in declared if in_share(name, share)]) > 1
    assert int(figures[2]) > int(figures[1])


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_a_worker_killed_at_a_point_loses_doubles_and_blocks_nothing(store):
    sweep(store, SHARE)


@pytest.mark.long
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_a_worker_killed_at_any_point_loses_doubles_and_blocks_nothing(store):
    sweep(store, 1)


def test_the_duplicate_after_a_lease_timeout_happens_without_the_guard_and_not_with_it(tmp_path):
    """FM_001: a stopped worker goes on after another one has done its work."""
    folders = [tmp_path / name for name in ("without", "with")]
    for folder in folders:
        folder.mkdir()
    without = Verdict.parse(trial("CONTROLS[0].case", folders[0]))
    guarded = Verdict.parse(trial("CONTROLS[0].guarded", folders[1]))
    assert without.stopped
    assert [finding.wrong for finding in without.findings] == [Wrong.DUPLICATED]
    assert "the effect reserve happened 2 times" in without.findings[0].text
    assert guarded.stopped
    assert guarded.refused
    assert not guarded.findings


def test_a_step_without_the_fence_is_seen_however_late_its_worker_reports(tmp_path):
    """The replacement is held until the stopped worker has reported; otherwise it would be first at times."""
    late = """
import threading
called = Place.called
def called_late(place, *call):
    if place.first_time("late"):
        threading.Event().wait(3 * place.lease_ms / 1000)
    called(place, *call)
Place.called = called_late
"""
    case = "next(one.case for one in CONTROLS if one.case.mutant == 'steps_without_fence')"
    verdict = Verdict.parse(trial(case, tmp_path, late))
    assert verdict.stopped
    assert Wrong.BROKEN in [finding.wrong for finding in verdict.findings]


def test_a_point_named_in_the_environment_kills_a_fresh_interpreter(tmp_path):
    script = """
import sys
from tests.crash.sweep import workload
workload.app.bind(f"sqlite:///{sys.argv[1]}/tally.db")
print(workload.order.submit("one").id, flush=True)
workload.order.submit("two")
print("alive", flush=True)
"""
    died = python("-c", script, str(tmp_path), TALLYSTICK_CRASH_AT="sqlite.commit.before:2")
    assert died.returncode == -9
    assert len(died.stdout.splitlines()) == 1
    lived = python("-c", script, str(tmp_path))
    assert lived.returncode == 0
    assert "alive" in lived.stdout


def test_a_point_that_was_never_hit_fails_the_sweep(capsys, tmp_path):
    assert not Sweep("1", 0, quick=True, folder=tmp_path)._conclude(["store.never"])
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "never hit: store.never"
    assert said[-1] == "crash: points=0 kills=0 lost=0 duplicated=0 stuck=0"


def test_a_stopped_process_that_was_never_refused_shows_nothing_and_fails_the_sweep(capsys, tmp_path):
    from tests.crash.sweep.plan import ZOMBIES

    sweep = Sweep("1", 0, quick=True, folder=tmp_path)
    sweep._take(ZOMBIES[0], Verdict(stopped=True))
    assert not sweep._conclude(["none"])
    assert "never refused" in capsys.readouterr().out


@pytest.mark.parametrize("wrong", list(Wrong))
def test_anything_wrong_fails_the_sweep(wrong: Wrong, capsys, tmp_path):
    from tests.crash.sweep.oracle import Finding
    from tests.crash.sweep.trial import Case

    sweep = Sweep("1", 0, quick=True, folder=tmp_path)
    sweep._take(Case(), Verdict(kills=["store.hit:1"], findings=[Finding(wrong, "a job")]))
    assert not sweep._conclude(["store.hit"])
    assert f"{wrong}: a job [crash]" in capsys.readouterr().out


def test_the_same_seed_gives_the_same_cases():
    visits = {stage: {"a": 3, "b": 1} for stage in Stage}
    plans = [Plan(visits, seed) for seed in ("1", "1", "2")]
    first, again, other = (
        [str(case) for case, _ in zip(plan.endless(), range(200), strict=False)] for plan in plans
    )
    assert first == again
    assert first != other


def test_every_visit_of_every_point_is_planned():
    visits = {stage: {"a": 3, "b": 1} for stage in Stage}
    planned = [case.arms[-1] for case in Plan(visits, "1").every_visit()]
    assert sorted(planned) == sorted(
        Arm(stage, point, visit)
        for stage in Stage
        for point, visit in (("a", 1), ("a", 2), ("a", 3), ("b", 1))
    )


def test_a_reclaim_that_does_not_look_again_is_seen_every_time_and_not_with_the_look(tmp_path):
    """The flush is held until the sweep of the other process has read; it does not have to meet it."""
    one = "next(one for one in CONTROLS if one.case.mutant == 'reclaim_as_it_was_read')"
    folders = [tmp_path / name for name in ("without", "with")]
    for folder in folders:
        folder.mkdir()
    without = Verdict.parse(trial(f"{one}.case", folders[0]))
    guarded = Verdict.parse(trial(f"{one}.guarded", folders[1]))
    assert Wrong.BROKEN in [finding.wrong for finding in without.findings]
    assert not guarded.findings
