"""A stage with real threads, processes and tasks: order, outcomes, retries, timeouts, stops and books."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path

import pytest

from tallystick.core.retry import RetryPolicy
from tallystick.errors import BadInput, CancelItem, JournalError, JournalMismatch, SkipItem, StageFault
from tallystick.stage import CommitBatch, Stage, Summary, WindowLimits, audit, read_journal, tick
from tallystick.stage.intake import Intake
from tallystick.stage.journal.journal import Journal
from tallystick.stage.outcome import CANCEL, FAIL, SKIP, SUCCESS
from tallystick.stage.windows import WindowPlan
from tests.patience import let_time_pass
from tests.stage.stage_books import Committed, no_lease_is_left

FAST = RetryPolicy(attempts_max=3, base_ms=1, jitter=0.0)


def test_five_lines_are_enough(tmp_path: Path):
    stage = Stage(len, journal=tmp_path / "j")
    summary = stage.run(["a", "bb", "ccc"])
    assert summary.ok
    assert [one.value for one in read_journal(tmp_path / "j")] == [1, 2, 3]


@pytest.mark.parametrize("journal", [False, True])
@pytest.mark.parametrize("workers", [1, 7])
def test_commits_are_in_order_however_the_items_finish(tmp_path: Path, journal: bool, workers: int):
    """Item n waits for item n+1 where it can, so that items finish in an order against their numbers."""
    finished = [threading.Event() for _ in range(301)]

    def compute(item: int) -> int:
        if item % workers != workers - 1:
            finished[item + 1].wait(0.002)
        finished[item].set()
        return -item

    committed = Committed()
    stage = Stage(
        compute,
        commit=committed,
        workers=workers,
        journal=tmp_path / "j" if journal else None,
        windows=WindowLimits(count=16),
    )
    summary = stage.run(range(300))
    assert committed.values == [-item for item in range(300)]
    assert [outcome.item for outcome in committed.outcomes] == list(range(300))
    assert summary.committed == summary.started == 300
    assert summary.complete


def test_an_endless_input_is_read_no_further_than_two_windows():
    taken: list[int] = []
    gate = threading.Event()
    enough = threading.Event()

    def items():
        for number in range(1_000_000):
            taken.append(number)
            if number == 8:
                enough.set()
            yield number

    def compute(item: int) -> int:
        gate.wait(10)
        return item

    stage = Stage(compute, workers=2, windows=WindowLimits(count=4), grace="0s")
    runner = threading.Thread(target=stage.run, args=(items(),))
    runner.start()
    assert enough.wait(10), "two windows of four, and one item in the hand"
    stage.cancel()
    gate.set()
    runner.join(10)
    assert not runner.is_alive()
    assert len(taken) <= 13


def test_skips_fails_and_cancels_are_outcomes_in_their_place():
    def compute(item: int) -> int:
        match item % 4:
            case 1:
                raise SkipItem("odd one")
            case 2:
                raise CancelItem("not wanted")
            case 3:
                raise ValueError("bad item")
        return item

    committed = Committed()
    summary = Stage(compute, commit=committed).run(range(8))
    assert [outcome.state for outcome in committed.outcomes] == [SUCCESS, SKIP, CANCEL, FAIL] * 2
    assert committed.outcomes[3].failure == ("ValueError", "bad item")
    assert committed.outcomes[1].failure == ("SkipItem", "odd one")
    assert summary.outcomes == {SUCCESS: 2, SKIP: 2, CANCEL: 2, FAIL: 2}
    assert summary.complete
    assert not summary.ok
    assert "failed: seq 3: ValueError: bad item" in str(summary)


def test_retries_are_by_error_class_and_within_the_budget():
    tries: dict[int, int] = {}

    def compute(item: int) -> int:
        tries[item] = tries.get(item, 0) + 1
        if item == 0 and tries[0] < 3:
            raise OSError("hiccup")
        if item == 1:
            raise ConnectionError("never")
        if item == 2:
            raise FileNotFoundError("gone for good")
        return item

    policy = RetryPolicy(
        attempts_max=3,
        base_ms=1,
        jitter=0.0,
        retryable=frozenset({"OSError"}),
        final=frozenset({"FileNotFoundError"}),
    )
    committed = Committed()
    summary = Stage(compute, commit=committed, retry=policy, workers=1).run(range(4))
    assert tries == {0: 3, 1: 3, 2: 1, 3: 1}
    assert [outcome.state for outcome in committed.outcomes] == [SUCCESS, FAIL, FAIL, SUCCESS]
    assert [outcome.attempts for outcome in committed.outcomes] == [3, 3, 1, 1]
    assert (summary.started, summary.retried) == (8, 4)


def test_the_default_retries_what_time_may_heal_and_nothing_else():
    tries: list[int] = []

    def compute(item: int) -> None:
        tries.append(item)
        raise [ValueError, TimeoutError, PermissionError][item]("no")

    Stage(compute, workers=1).run(range(3))
    assert sorted(tries) == [0, 1, 1, 1, 2]


def test_a_worker_that_hangs_loses_its_lease_and_its_late_result_is_stale():
    release = threading.Event()
    tries: list[int] = []

    def compute(item: int) -> str:
        tries.append(item)
        if tries.count(0) == 1 and item == 0:
            release.wait(20)
            return "late"
        return "in time"

    def commit(batch: CommitBatch) -> None:
        committed(batch)
        release.set()

    committed = Committed()
    summary = Stage(compute, commit=commit, workers=1, timeout="100ms", retry=FAST).run(range(3))
    assert committed.values == ["in time"] * 3
    assert committed.outcomes[0].attempts == 2
    assert summary.reclaimed == 1
    assert summary.complete


def test_a_worker_that_hangs_every_time_fails_with_its_reason():
    stopped = threading.Event()

    def compute(item: int) -> None:
        stopped.wait(20)

    committed = Committed()
    summary = Stage(compute, commit=committed, timeout="20ms", workers=2, retry=2).run(range(1))
    stopped.set()
    assert committed.outcomes[0].state is FAIL
    assert committed.outcomes[0].failure.type == "LeaseExpired"
    assert summary.reclaimed == 2


def test_ticks_keep_a_slow_worker_alive():
    seen: list[bool] = []

    def compute(item: int) -> str:
        for _ in range(12):
            let_time_pass(0.02)
            seen.append(tick())
        return "done"

    committed = Committed()
    Stage(compute, commit=committed, timeout="150ms", workers=1).run([0])
    assert seen == [True] * 12
    assert committed.outcomes[0].attempts == 1


def test_tick_outside_a_stage_is_harmless():
    assert tick() is True


def test_a_cancel_lets_what_is_in_flight_finish_and_commits_it(tmp_path: Path):
    begun = threading.Semaphore(0)
    gate = threading.Event()

    def compute(item: int) -> int:
        begun.release()
        gate.wait(10)
        return item

    stage = Stage(compute, workers=2, journal=tmp_path / "j", name="c", grace="10s")
    runner = threading.Thread(target=stage.run, args=(range(50),))
    runner.start()
    begun.acquire()
    begun.acquire()
    stage.cancel()
    gate.set()
    runner.join(10)
    summary = stage.summary
    assert summary.stopped == "cancelled"
    assert not summary.complete
    assert 2 <= summary.committed < 50
    assert no_lease_is_left(stage)
    again = Stage(lambda item: item, journal=tmp_path / "j", name="c").run(range(50))
    assert again.resumed == summary.committed
    assert again.complete
    assert [one.value for one in read_journal(tmp_path / "j")] == list(range(50))
    assert audit(tmp_path / "j").ok


def test_after_the_grace_period_what_hangs_is_cancelled_by_force():
    begun = threading.Event()
    gate = threading.Event()

    def compute(item: int) -> int:
        begun.set()
        gate.wait(30)
        return item

    stage = Stage(compute, workers=2, grace="50ms")
    runner = threading.Thread(target=stage.run, args=(range(50),))
    runner.start()
    assert begun.wait(10)
    stage.cancel()
    runner.join(10)
    assert not runner.is_alive()
    assert stage.summary.committed == 0
    assert no_lease_is_left(stage)
    gate.set()


def test_too_many_failures_stop_the_stage():
    def compute(item: int) -> None:
        raise ValueError(item)

    summary = Stage(compute, workers=1, failures_max=3, windows=WindowLimits(count=2)).run(range(1000))
    assert summary.stopped == "too many failures"
    assert 4 <= summary.outcomes[FAIL] < 1000


def test_an_input_that_breaks_is_raised_after_everything_before_it_is_committed():
    def items():
        yield from range(20)
        raise LookupError("the list ends badly")

    committed = Committed()
    stage = Stage(lambda item: item, commit=committed)
    with pytest.raises(LookupError):
        stage.run(items())
    assert committed.values == list(range(20))
    assert not stage.summary.complete


def test_a_commit_function_that_breaks_is_called_again_with_the_same_batch(tmp_path: Path):
    given: list[CommitBatch] = []

    def commit(batch: CommitBatch) -> None:
        given.append(batch)
        if len(given) == 1:
            raise RuntimeError("database is away")

    computed: list[int] = []

    def compute(item: int) -> list[int]:
        computed.append(item)
        return [item]

    stage = Stage(compute, commit=commit, journal=tmp_path / "j", workers=1, name="c")
    with pytest.raises(RuntimeError):
        stage.run(range(5))
    durable = len(list(read_journal(tmp_path / "j")))
    computed.clear()
    summary = stage.run(range(5))
    assert computed == list(range(durable, 5))
    assert given[1].redelivered
    assert (given[1].first, given[1].outcomes) == (given[0].first, given[0].outcomes)
    assert summary.redelivered == durable
    assert summary.complete
    assert audit(tmp_path / "j").ok


def test_with_a_journal_values_are_json_now_and_later(tmp_path: Path):
    committed = Committed()
    Stage(lambda item: (item, {"path": Path("x")}), commit=committed, journal=tmp_path / "j", name="c").run(
        [1]
    )
    assert committed.values == [[1, {"path": "x"}]]


def test_a_value_that_is_no_json_fails_its_item_with_advice(tmp_path: Path):
    committed = Committed()
    Stage(lambda item: object(), commit=committed, journal=tmp_path / "j", name="c").run([1])
    assert committed.outcomes[0].failure.type == "BadInput"
    assert "JSON" in committed.outcomes[0].failure.message


@pytest.mark.parametrize(
    "value", [float("nan"), [1, float("inf")], {"a": (-float("inf"),)}, "\ud800"], ids=repr
)
def test_a_value_that_json_would_silently_change_fails_its_item(tmp_path: Path, value: object):
    committed = Committed()
    Stage(lambda item: value, commit=committed, journal=tmp_path / "j", name="c").run([1])
    assert committed.outcomes[0].failure.type == "BadInput"


@pytest.mark.parametrize("value", [None, [None, 1.5], 2**70, {"a": None}], ids=repr)
def test_values_that_json_can_say_are_kept(tmp_path: Path, value: object):
    committed = Committed()
    Stage(lambda item: value, commit=committed, journal=tmp_path / "j", name="c").run([1])
    assert committed.values == [value] == [one.value for one in read_journal(tmp_path / "j")]


def test_names_of_files_that_are_no_text_are_items_like_others(tmp_path: Path):
    names = ["plain", os.fsdecode(b"odd-\xff"), "\ud800"]
    assert Stage(len, journal=tmp_path / "j").run(names).ok
    assert Stage(len, journal=tmp_path / "j").run([Path(name) for name in names]).resumed == 3


def test_an_error_that_cannot_be_printed_is_a_failure_like_others():
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    def compute(item: int) -> None:
        raise Mute

    committed = Committed()
    Stage(compute, commit=committed).run([1])
    assert committed.outcomes[0].failure.type == "Mute"


def test_an_item_that_is_no_json_needs_a_key(tmp_path: Path):
    thing = object()
    with pytest.raises(BadInput, match="key="):
        Stage(lambda item: 1, journal=tmp_path / "j", name="c").run([thing])
    summary = Stage(lambda item: 1, journal=tmp_path / "j", name="c", key=lambda item: "thing").run([thing])
    assert summary.complete


@pytest.mark.parametrize(
    "changed", [[0, 9, 2, 3], [0], [1, 0, 2, 3]], ids=["another item", "too few", "another order"]
)
def test_other_items_than_those_of_the_journal_are_refused(tmp_path: Path, changed: list[int]):
    Stage(lambda item: item, journal=tmp_path / "j", name="c").run(range(3))
    with pytest.raises(JournalMismatch):
        Stage(lambda item: item, journal=tmp_path / "j", name="c").run(changed)


def test_a_finished_stage_does_nothing_and_a_longer_input_only_the_rest(tmp_path: Path):
    computed: list[int] = []

    def compute(item: int) -> int:
        computed.append(item)
        return item

    def run(count: int) -> Summary:
        computed.clear()
        return Stage(compute, journal=tmp_path / "j", workers=1, name="c").run(iter(range(count)))

    assert run(3).complete
    again = run(3)
    assert (again.resumed, again.committed, computed) == (3, 0, [])
    assert again.complete
    assert (run(5).committed, computed) == (2, [3, 4])
    assert audit(tmp_path / "j").ok


def test_an_illegal_move_inside_a_stage_ends_it_with_the_five_fields_and_the_diagnostics():
    stage = Stage(lambda item: item, workers=1, windows=WindowLimits(count=10))

    def sabotage(batch: CommitBatch) -> None:
        flow = stage._flow
        assert flow is not None
        flow._windows[0].sequence.dispatch(batch.first, 0)

    stage.settings = __import__("dataclasses").replace(stage.settings, commit=sabotage)
    with pytest.raises(StageFault) as caught:
        stage.run(range(5))
    fields = caught.value.fields
    assert {"seq", "prior", "attempted", "owner", "at_ms", "diagnostics"} <= set(fields)
    assert fields["prior"] == "TERMINAL_SUCCESS"


@pytest.mark.parametrize(
    "wrong",
    [
        {"lane": "fibers"},
        {"lane": "asyncio"},
        {"workers": 0},
        {"windows": {"count": 0}},
        {"timeout": "soon"},
    ],
    ids=str,
)
def test_settings_that_cannot_work_are_refused_at_once(wrong: dict):
    if "windows" in wrong:
        with pytest.raises(BadInput):
            WindowLimits(**wrong["windows"])
    else:
        with pytest.raises(BadInput):
            Stage(lambda item: item, **wrong)


def test_no_thread_and_no_file_is_left_behind(tmp_path: Path):
    def open_files() -> set[str]:
        return {str(link.readlink()) for link in Path("/proc/self/fd").iterdir() if link.is_symlink()}

    before = threading.active_count()
    Stage(lambda item: item, journal=tmp_path / "j", name="c", workers=8).run(range(100))
    assert threading.active_count() == before
    assert str(tmp_path / "j") not in open_files()


def test_a_stage_runs_once_at_a_time():
    gate = threading.Event()
    begun = threading.Event()

    def compute(item: int) -> int:
        begun.set()
        gate.wait(10)
        return item

    stage = Stage(compute, workers=1)
    runner = threading.Thread(target=stage.run, args=([1],))
    runner.start()
    assert begun.wait(10)
    with pytest.raises(BadInput):
        stage.run([2])
    gate.set()
    runner.join(10)
    assert stage.run([3]).complete


def test_a_journal_that_cannot_be_opened_is_a_clear_error(tmp_path: Path):
    with pytest.raises(JournalError, match="cannot be opened"):
        Stage(len, journal=tmp_path / "nowhere" / "j").run(["a"])


def test_windows_are_the_same_in_a_resumed_run(tmp_path: Path):
    items = [3, 9, 1, 1, 1, 1, 7, 2, 2, 8, 1]
    limits = WindowLimits(count=4, cost=10)
    fresh = Intake(WindowPlan(limits, float, None), None, None)
    expected = [fresh.describe(item).window for item in items]
    journal = tmp_path / "j"
    Stage(abs, journal=journal, windows=limits, cost_of=float).run(items[:6])
    opened = Journal(journal, "abs", 0)
    resumed = Intake(WindowPlan(limits, float, None), None, opened)
    for item in items[:6]:
        resumed.pass_over(item)
    assert not resumed.passing
    assert [resumed.describe(item).window for item in items[6:]] == expected[6:]
    opened.abandon()


def test_every_public_name_can_be_imported():
    import tallystick.stage

    assert sorted(tallystick.stage.__all__) == sorted(tallystick.stage._HOMES)
    for name in tallystick.stage.__all__:
        assert getattr(tallystick.stage, name).__name__ == name
    with pytest.raises(AttributeError):
        _ = tallystick.stage.nothing


def test_a_slow_commit_function_holds_up_no_retry():
    """The compute lane needs nothing from the commit lane: a backoff ends while a commit goes on."""
    tried_again = threading.Event()
    tries: list[int] = []

    def compute(item: int) -> int:
        if item == 1:
            tries.append(item)
            if len(tries) == 1:
                raise OSError("hiccup")
            tried_again.set()
        return item

    def commit(batch: CommitBatch) -> None:
        if batch.first == 0:
            assert tried_again.wait(10)

    policy = RetryPolicy(attempts_max=2, base_ms=50, jitter=0.0)
    assert Stage(compute, commit=commit, workers=2, retry=policy).run(range(2)).ok


@pytest.mark.parametrize("lane", ["threads", "asyncio"])
def test_backoffs_that_end_together_are_taken_by_as_many_workers_as_there_are(lane: str):
    together = threading.Barrier(3)
    tries: dict[int, int] = {}

    def first_time(item: int) -> bool:
        tries[item] = tries.get(item, 0) + 1
        return tries[item] == 1

    def compute(item: int) -> int:
        if first_time(item):
            raise OSError("hiccup")
        together.wait(10)  # passes only when all three are computed at once
        return item

    async def compute_async(item: int) -> int:
        if first_time(item):
            raise OSError("hiccup")
        await asyncio.to_thread(together.wait, 10)
        return item

    policy = RetryPolicy(attempts_max=2, base_ms=20, jitter=0.0, retryable=frozenset({"OSError"}))
    function = compute if lane == "threads" else compute_async
    summary = Stage(function, workers=3, retry=policy).run(range(3))
    assert summary.ok, summary


def test_a_batch_whose_delivery_is_on_record_is_not_delivered_again(tmp_path: Path):
    first, second = Committed(), Committed()
    Stage(abs, commit=first, journal=tmp_path / "j").run(range(5))
    summary = Stage(abs, commit=second, journal=tmp_path / "j").run(range(5))
    assert len(first.outcomes) == 5
    assert second.outcomes == []
    assert summary.redelivered == 0
