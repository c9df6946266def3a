"""The rules of a stage under every schedule: ordered, bounded, and never blocked at the head of the line."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tallystick.core.lifecycles import SlotState
from tallystick.core.retry import RetryPolicy
from tallystick.errors import StageFault
from tallystick.stage.flow import Flow, Ticket
from tallystick.stage.outcome import CANCEL, FAIL, SKIP, SUCCESS, Result
from tallystick.stage.sequence.policy import SlotPolicy
from tallystick.stage.windows import WindowLimits, WindowPlan

POLICY = SlotPolicy(lease_ms=1_000, offer_ms=None, retry=RetryPolicy(attempts_max=2, base_ms=5, jitter=0.0))
ONE_BYTE = Result(SUCCESS, size_bytes=1)
BROKEN = Result(FAIL, size_bytes=1, error_names=("OSError", "Exception"))


@dataclass
class Model:
    """One schedule: the flow, what the world still holds, and what was committed."""

    total: int
    active: int
    window: int
    workers: int
    buffer_bytes: float
    fail_first_try_of: int = -1
    now: int = 0
    admitted: int = 0
    held: list[Ticket] = field(default_factory=list)
    committed: list[int] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    buffered_max: int = 0

    def __post_init__(self) -> None:
        self.flow = Flow(first=0, active=self.active, policy=POLICY, buffer_bytes=self.buffer_bytes)
        if not self.total:
            self.flow.end_input()

    def enabled(self) -> list[str]:
        """Return what somebody could do now; the flow itself says no to what it holds back."""
        steps = []
        if self.admitted < self.total and self.has_room():
            steps.append("admit")
        if len(self.held) < self.workers and self.startable():
            steps.append("take")
        steps += [f"finish {index}" for index in range(len(self.held))]
        if self.flow.ready(1):
            steps.append("commit")
        due = self.flow.next_due_ms()
        if due is not None and due > self.now:
            steps.append("wait")
        return steps

    def has_room(self) -> bool:
        number = self.admitted // self.window
        windows = self.flow._windows
        return (
            any(window.number == number for window in windows)
            or len([w for w in windows if w.sequence.committed_count != len(w.items)]) < self.active
        )

    def startable(self) -> bool:
        # A question without a change: the same conditions as `take`, from outside.
        flow = self.flow
        due = flow._again or (flow._waiting and flow._waiting[0][0] <= self.now)
        if due:
            seqs = [seq for at, seq in flow._waiting if at <= self.now] + flow._again
            seq = min(seqs)
        elif flow._next_fresh < flow._end:
            seq = flow._next_fresh
        else:
            return False
        return flow.buffered_bytes < self.buffer_bytes or seq == flow.next_commit

    def do(self, step: str) -> None:
        self.steps.append(step)
        verb, _, which = step.partition(" ")
        flow = self.flow
        match verb:
            case "admit":
                assert flow.admit(f"item-{self.admitted}", "", self.admitted // self.window, self.now)
                self.admitted += 1
                if self.admitted == self.total:
                    flow.end_input()
            case "take":
                ticket = flow.take("w", self.now)
                assert ticket is not None, self.steps
                self.held.append(ticket)
            case "finish":
                ticket = self.held.pop(int(which))
                broken = ticket.seq == self.fail_first_try_of and ticket.attempt == 1
                assert flow.report(ticket, BROKEN if broken else ONE_BYTE, self.now)
            case "commit":
                for found in flow.peek(flow.ready(2), math.inf):
                    self.committed.append(found.outcome.seq)
                flow.commit(len(self.committed) - flow.next_commit)
            case "wait":
                due = flow.next_due_ms()
                assert due is not None
                self.now = due
        self.check()

    def check(self) -> None:
        flow = self.flow
        self.buffered_max = max(self.buffered_max, flow.buffered_bytes)
        assert self.committed == list(range(len(self.committed)))
        assert len(flow._windows) <= self.active
        assert flow.buffered_bytes <= self.buffer_bytes + self.workers, self.steps
        # The head of the line is never held back: if it can be started, `take` would give it out.
        head = flow.next_commit
        if head < flow._end and flow._windows[0].sequence.state(head) is SlotState.DISPATCHED:
            waiting = {seq for at, seq in flow._waiting if at > self.now}
            if head not in waiting:
                assert self.startable(), self.steps

    def key(self) -> tuple[object, ...]:
        """Return what decides the future, so that a search visits it once."""
        flow = self.flow
        return (
            self.admitted,
            flow.next_commit,
            tuple((w.first, w.sequence.states()) for w in flow._windows),
            tuple(sorted((t.seq, t.attempt) for t in self.held)),
            tuple(sorted((seq, at <= self.now) for at, seq in flow._waiting)),
            tuple(sorted(flow._again)),
        )


@pytest.mark.parametrize("fails", [-1, 0, 2])
@pytest.mark.parametrize("buffer_bytes", [1, 2, math.inf])
@pytest.mark.parametrize(("active", "window"), [(1, 1), (1, 3), (2, 1), (2, 2), (3, 2)])
def test_no_schedule_deadlocks_and_all_of_them_commit_in_order(active, window, buffer_bytes, fails):
    """An exhaustive search over all schedules of five items and two workers, with one failing attempt."""
    settings_of = {
        "total": 5,
        "active": active,
        "window": window,
        "workers": 2,
        "buffer_bytes": buffer_bytes,
        "fail_first_try_of": fails,
    }
    seen: set[tuple[object, ...]] = set()
    frontier: list[list[str]] = [[]]
    ends = 0
    while frontier:
        path = frontier.pop()
        model = Model(**settings_of)
        for step in path:
            model.do(step)
        key = model.key()
        if key in seen:
            continue
        seen.add(key)
        steps = model.enabled()
        if model.flow.is_done:
            assert model.committed == [0, 1, 2, 3, 4]
            ends += 1
            continue
        assert steps, f"deadlock after {path}\n{model.flow.diagnostics()}"
        frontier += [[*path, step] for step in steps]
    assert ends >= 1
    assert len(seen) > 15, "the search looked at next to nothing"


@settings(max_examples=150)
@given(
    st.tuples(st.integers(0, 24), st.integers(1, 3), st.integers(1, 6)),
    st.integers(1, 5),
    st.sampled_from([1, 3, 10, math.inf]),
    st.integers(-1, 20),
    st.data(),
)
def test_random_finishing_orders_commit_in_order_within_bounds(shape, workers, buffer_bytes, fails, data):
    total, active, window = shape
    model = Model(total, active, window, workers, buffer_bytes, fails)
    while not model.flow.is_done:
        steps = model.enabled()
        assert steps, f"deadlock after {model.steps}"
        model.do(data.draw(st.sampled_from(steps)))
    assert model.committed == list(range(total))
    assert model.flow.buffered_bytes == 0


@settings(max_examples=150)
@given(
    st.tuples(st.integers(1, 25), st.integers(1, 2), st.integers(1, 6)),
    st.integers(1, 4),
    st.integers(0, 60),
    st.data(),
)
def test_a_stop_at_any_moment_leaves_every_seq_terminal_and_no_lease(shape, workers, moment, data):
    total, active, window = shape
    model = Model(total, active, window, workers, math.inf)
    for _ in range(moment):
        steps = model.enabled()
        if not steps:
            break
        model.do(data.draw(st.sampled_from(steps)))
    flow = model.flow
    flow.stop(model.now)
    finishing = data.draw(st.integers(0, len(model.held)))
    for _ in range(finishing):
        # Also a failure that would be tried again, if the stage were not stopping.
        assert flow.report(model.held.pop(), data.draw(st.sampled_from([ONE_BYTE, BROKEN])), model.now)
    flow.force(model.now)
    for late in model.held:
        assert not flow.report(late, ONE_BYTE, model.now)
    while count := flow.ready(99):
        model.committed += [found.outcome.seq for found in flow.peek(count, math.inf)]
        flow.commit(count)
    assert flow.is_settled
    for window_left in flow._windows:
        counts = window_left.sequence.counts()
        assert counts[SlotState.DISPATCHED] == counts[SlotState.IN_FLIGHT] == counts[SlotState.UNSEEN] == 0
    assert model.committed == list(range(len(model.committed)))


def test_the_bytes_limit_holds_back_everything_but_the_head_of_the_line():
    flow = Flow(first=0, active=2, policy=POLICY, buffer_bytes=10)
    for number in range(6):
        flow.admit(number, "", 0, 0)
    head = flow.take("slow", 0)
    second = flow.take("fast", 0)
    assert head is not None
    assert second is not None
    flow.report(second, Result(SUCCESS, size_bytes=10), 0)
    assert flow.take("fast", 0) is None, "the buffer is full"
    flow.report(head, BROKEN, 0)
    assert flow.take("fast", 4) is None, "the backoff of the head is not over"
    again = flow.take("fast", 5)
    assert again is not None
    assert again.seq == 0
    assert flow.buffered_bytes == 10
    flow.report(again, Result(SUCCESS, size_bytes=10), 5)
    flow.commit(flow.ready(10))
    assert flow.buffered_bytes == 0
    following = flow.take("fast", 5)
    assert following is not None
    assert following.seq == 2


def test_no_more_windows_are_opened_than_may_be_active():
    flow = Flow(first=0, active=2, policy=POLICY, buffer_bytes=math.inf)
    assert flow.admit("a", "", 0, 0)
    assert flow.admit("b", "", 1, 0)
    assert not flow.admit("c", "", 2, 0)
    for _ in range(2):
        ticket = flow.take("w", 0)
        assert ticket is not None
        flow.report(ticket, ONE_BYTE, 0)
    flow.commit(flow.ready(10))
    assert flow.admit("c", "", 2, 0), "a window is committed, and its place is free"
    assert not flow.admit("d", "", 3, 0)


def test_a_failure_after_a_stop_is_not_tried_again():
    flow = Flow(first=0, active=2, policy=POLICY, buffer_bytes=math.inf)
    flow.admit("a", "", 0, 0)
    ticket = flow.take("w", 0)
    assert ticket is not None
    flow.stop(1)
    assert flow.report(ticket, BROKEN, 2)
    assert flow.is_settled
    assert ticket.window.sequence.state(0) is SlotState.TERMINAL_CANCEL
    assert flow.ready(1) == 0, "it is left to the next run"


def test_a_retry_goes_before_fresh_items_and_the_lowest_first():
    flow = Flow(first=0, active=2, policy=POLICY, buffer_bytes=math.inf)
    for number in range(4):
        flow.admit(number, "", 0, 0)
    zero, one = flow.take("a", 0), flow.take("b", 0)
    assert zero is not None
    assert one is not None
    flow.report(one, BROKEN, 0)
    flow.report(zero, BROKEN, 1)
    order = [ticket.seq for _ in range(4) if (ticket := flow.take("a", 10)) is not None]
    assert order == [0, 1, 2, 3]


def test_skip_cancel_and_fail_are_outcomes_that_are_committed_like_any_other():
    flow = Flow(first=0, active=2, policy=POLICY, buffer_bytes=math.inf)
    ends = [SKIP, CANCEL, FAIL, SUCCESS]
    for number in range(4):
        flow.admit(number, "", 0, 0)
    for end in ends:
        ticket = flow.take("w", 0)
        assert ticket is not None
        assert flow.report(ticket, Result(end, error_names=("NoRetry",)), 0)
    found = flow.peek(flow.ready(10), math.inf)
    assert [one.outcome.state for one in found] == ends
    flow.commit(4)
    flow.end_input()
    assert flow.is_done


def test_a_batch_is_cut_by_bytes_and_never_empty():
    flow = Flow(first=0, active=2, policy=POLICY, buffer_bytes=math.inf)
    for number in range(4):
        flow.admit(number, "", 0, 0)
        ticket = flow.take("w", 0)
        assert ticket is not None
        flow.report(ticket, Result(SUCCESS, size_bytes=6), 0)
    assert len(flow.peek(flow.ready(10), 13)) == 2
    assert len(flow.peek(flow.ready(10), 1)) == 1


def test_diagnostics_name_what_everything_waits_for():
    flow = Flow(first=10, active=2, policy=POLICY, buffer_bytes=math.inf)
    for number in range(5):
        flow.admit(number, "", number // 3, 0)
    tickets = [flow.take("w", 0) for _ in range(4)]
    for ticket in tickets[2:]:
        assert ticket is not None
        flow.report(ticket, Result(SUCCESS, size_bytes=7), 0)
    found = flow.diagnostics()
    assert (found.next_commit, found.highest_seen) == (10, 14)
    assert (found.terminal, found.in_flight, found.commit_lag) == (2, 2, 2)
    assert (found.oldest_blocked, found.oldest_blocked_state) == (10, "IN_FLIGHT")
    assert found.buffered_bytes == 14
    assert [(w.number, w.slots, w.in_flight, w.terminal) for w in found.windows] == [
        (0, 3, 2, 1),
        (1, 2, 0, 1),
    ]
    assert "oldest blocked seq 10 (IN_FLIGHT)" in str(found)


def test_a_broken_invariant_carries_the_diagnostics():
    flow = Flow(first=0, active=2, policy=POLICY, buffer_bytes=math.inf)
    flow.admit("x", "", 0, 0)
    with pytest.raises(StageFault) as caught:
        flow.commit(1)
    found = caught.value.fields["diagnostics"]
    assert isinstance(found, dict)
    assert set(found) == {
        "next_commit",
        "highest_seen",
        "terminal",
        "in_flight",
        "windows",
        "oldest_blocked",
        "oldest_blocked_state",
        "buffered_bytes",
        "commit_lag",
    }


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=40), st.integers(1, 6))
def test_windows_depend_on_the_items_alone_and_keep_their_limits(items, count):
    limits = WindowLimits(count=count, cost=12, bytes=15)

    def plan() -> list[int]:
        made = WindowPlan(limits, lambda item: item[0], lambda item: item[1])
        return [made.place(item) for item in items]

    numbers = plan()
    assert numbers == plan()
    assert numbers == sorted(numbers)
    for number in set(numbers):
        inside = [item for item, where in zip(items, numbers, strict=True) if where == number]
        assert len(inside) == 1 or (
            len(inside) <= count and sum(c for c, _ in inside) <= 12 and sum(b for _, b in inside) <= 15
        )
