"""The compound primitive: semaphore, marker and closer digit, in one statement, in order, once."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tallystick.core.decisions import count_down_all
from tallystick.errors import SemaphoreUnderflow, StaleLease
from tallystick.store.api import CountDown, Outcome
from tallystick.testing.conformance.drafts import FRESH, done, fail, held_job, outcome_of
from tallystick.testing.conformance.race import race
from tallystick.testing.conformance.subject import Subject

ENTERED = 10_000_000_001
"""The digits of a message whose work is durable and whose step 2 is not."""

COUNTED = ENTERED + 10**9
CLOSER = COUNTED + 10**11
GROUP = "gather"
WHOLE_JOB = ""


of_a_group_and_of_a_job = pytest.mark.parametrize("kind", [GROUP, WHOLE_JOB])


class Obligations:
    """A semaphore with its messages, planted by hand: a group's, or a whole job's."""

    def __init__(self, subject: Subject, kind: str, semaphore: int, messages: int) -> None:
        """Plant a job that is under way, the semaphore, and messages that have done their work."""
        self.subject, self.kind = subject, kind
        self.job_id = FRESH.new()
        now = subject.clock.wall_ms()
        columns = {"handler": "pay", "payload": "{}", "created_at": now, "updated_at": now}
        subject.plant("jobs", job_id=self.job_id, state="IN_PROGRESS", semaphore=semaphore, **columns)
        group = {"kind": "group", "state": "IN_PROGRESS", "ledger": 2_100_000_000_002, "created_at": now}
        subject.plant("steps", job_id=self.job_id, name=GROUP, occurrence=1, semaphore=semaphore, **group)
        self.guids = [self.message(number) for number in range(messages)]

    def message(self, number: int, ledger: int = ENTERED) -> str:
        """Plant one more message of this semaphore."""
        guid = f"{self.job_id}:{number}"
        about = {"name": self.kind, "kind": "child", "created_at": self.subject.clock.wall_ms()}
        self.subject.plant("messages", guid=guid, job_id=self.job_id, occurrence=1, ledger=ledger, **about)
        return guid

    def request(self, guid: str, delta: int = -1, threshold: int = 0) -> CountDown:
        """Return the request of one message."""
        return CountDown(self.job_id, 0, self.kind, 1 if self.kind else 0, guid, delta, threshold)

    def apply(self, deltas: list[int], threshold: int) -> list[Outcome | BaseException]:
        """Move by every delta in one flush, a message each."""
        moves = zip(self.guids, deltas, strict=True)
        return self.subject.store.apply([(self.request(guid, delta, threshold),) for guid, delta in moves])

    @property
    def semaphore(self) -> int:
        """Return how many obligations are open."""
        table = "steps" if self.kind else "jobs"
        (row,) = [row for row in self.subject.rows(table) if row["job_id"] == self.job_id]
        return int(row["semaphore"])

    @property
    def ledgers(self) -> dict[str, int]:
        """Return the digits of every message."""
        rows = [row for row in self.subject.rows("messages") if row["job_id"] == self.job_id]
        return {row["guid"]: row["ledger"] for row in rows}

    @property
    def closers(self) -> list[str]:
        """Return the messages with the closer digit."""
        return [guid for guid, ledger in self.ledgers.items() if ledger == CLOSER]


class CountDowns:
    """Requests on one semaphore apply in order; the one that causes the threshold is the closer."""

    @of_a_group_and_of_a_job
    @pytest.mark.parametrize("threshold", [0, 1])
    @pytest.mark.parametrize("closers", [2, 3, 10, 100])
    def test_of_many_closers_in_one_flush_one_hits(
        self, subject: Subject, kind: str, closers: int, threshold: int
    ) -> None:
        open_here = Obligations(subject, kind, semaphore=closers, messages=closers)
        hits = open_here.apply([-1] * closers, threshold)
        assert hits == [left == threshold for left in range(closers - 1, -1, -1)]
        assert open_here.semaphore == 0
        assert open_here.closers == [open_here.guids[hits.index(True)]]
        assert sorted(set(open_here.ledgers.values())) == [COUNTED, CLOSER]

    @of_a_group_and_of_a_job
    def test_an_underflow_in_the_middle_fails_alone(self, subject: Subject, kind: str) -> None:
        open_here = Obligations(subject, kind, semaphore=2, messages=5)
        outcomes = open_here.apply([-1, -5, -1, -1, +1], 0)
        assert [type(outcome) for outcome in outcomes] == [
            bool,
            SemaphoreUnderflow,
            bool,
            SemaphoreUnderflow,
            bool,
        ]
        assert [outcomes[index] for index in (0, 2, 4)] == [False, True, False]
        assert open_here.semaphore == 1
        assert [open_here.ledgers[open_here.guids[index]] for index in (1, 3)] == [ENTERED] * 2

    @of_a_group_and_of_a_job
    def test_a_message_counts_once_however_often_it_is_delivered(self, subject: Subject, kind: str) -> None:
        open_here = Obligations(subject, kind, semaphore=3, messages=2)
        first, second = open_here.guids
        requests = [open_here.request(guid) for guid in (first, first, second, first)]
        outcomes = subject.store.apply([(request,) for request in requests])
        assert [outcomes[0], outcomes[2]] == [False, False]
        assert all(isinstance(outcomes[index], StaleLease) for index in (1, 3))
        assert isinstance(outcome_of(subject.store, requests[0]), StaleLease)
        assert open_here.semaphore == 1

    @of_a_group_and_of_a_job
    def test_a_message_whose_work_is_not_durable_cannot_count(self, subject: Subject, kind: str) -> None:
        open_here = Obligations(subject, kind, semaphore=1, messages=0)
        early = open_here.message(1, ledger=1)
        assert isinstance(outcome_of(subject.store, open_here.request(early)), StaleLease)
        assert isinstance(outcome_of(subject.store, open_here.request("nobody")), StaleLease)
        assert (open_here.semaphore, open_here.ledgers) == (1, {early: 1})

    @of_a_group_and_of_a_job
    def test_a_message_of_another_job_cannot_count(self, subject: Subject, kind: str) -> None:
        mine, other = Obligations(subject, kind, 1, 1), Obligations(subject, kind, 1, 1)
        assert isinstance(outcome_of(subject.store, mine.request(other.guids[0])), StaleLease)
        assert (mine.semaphore, other.semaphore, other.closers) == (1, 1, [])

    @of_a_group_and_of_a_job
    def test_standing_at_the_threshold_is_no_hit(self, subject: Subject, kind: str) -> None:
        open_here = Obligations(subject, kind, semaphore=1, messages=2)
        assert open_here.apply([0, 0], 1) == [False, False]
        assert open_here.closers == []

    @of_a_group_and_of_a_job
    def test_a_count_down_fails_with_its_bundle(self, subject: Subject, kind: str) -> None:
        open_here = Obligations(subject, kind, semaphore=2, messages=2)
        one, two = (open_here.request(guid) for guid in open_here.guids)
        assert isinstance(outcome_of(subject.store, one, two, one), StaleLease)
        assert open_here.semaphore == 2
        assert done(subject.store, one, two) is True
        assert open_here.semaphore == 0

    @of_a_group_and_of_a_job
    @given(
        before=st.integers(0, 6),
        deltas=st.lists(st.integers(-4, 4), min_size=1, max_size=12),
        threshold=st.integers(0, 3),
    )
    @settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
    def test_every_flush_agrees_with_the_rules(
        self, subject: Subject, kind: str, before: int, deltas: list[int], threshold: int
    ) -> None:
        open_here = Obligations(subject, kind, semaphore=before, messages=len(deltas))
        expected = count_down_all(before, deltas, threshold)
        outcomes = open_here.apply(deltas, threshold)
        for outcome, move in zip(outcomes, expected, strict=True):
            if move is None:
                assert isinstance(outcome, SemaphoreUnderflow)
            else:
                assert outcome is move.hit
        assert open_here.semaphore == ([before] + [move.after for move in expected if move])[-1]

    @of_a_group_and_of_a_job
    def test_four_processes_find_one_closer(self, subject: Subject, kind: str) -> None:
        open_here = Obligations(subject, kind, semaphore=60, messages=60)
        shares = [[open_here.job_id, kind, 0, open_here.guids[start::4]] for start in range(4)]
        hits = [guid for share in race(subject.url, "close", shares) for guid in share]
        assert hits == open_here.closers
        assert len(hits) == 1
        assert open_here.semaphore == 0


class CountDownsUnderKills:
    """A process dies at any point of a count-down; whoever delivers again finishes, with one closer."""

    def test_a_kill_at_every_point_leaves_one_closer_in_the_end(self, subject: Subject) -> None:
        for point in subject.crash_points:
            for visit in (1, 3):
                open_here = Obligations(subject, GROUP, semaphore=3, messages=3)
                arguments = [[open_here.job_id, GROUP, 0, open_here.guids]]
                assert race(subject.url, "close", arguments, crash_at=f"{point}:{visit}") == [None], point
                counted = [ledger for ledger in open_here.ledgers.values() if ledger != ENTERED]
                assert open_here.semaphore == 3 - len(counted)
                subject.store.apply([(open_here.request(guid),) for guid in open_here.guids])
                assert (open_here.semaphore, len(open_here.closers)) == (0, 1), point

    def test_nothing_counts_for_a_job_or_a_group_that_has_ended(self, subject: Subject) -> None:
        held = held_job(subject.store, subject.clock)
        job_id, now = held.fence.job_id, subject.clock.wall_ms()
        group = {
            "kind": "group",
            "state": "SUCCEEDED",
            "created_at": now,
            "completed_at": now,
            "semaphore": 2,
        }
        subject.plant("steps", job_id=job_id, name=GROUP, occurrence=1, **group)
        message = {"kind": "child", "created_at": now, "ledger": ENTERED}
        subject.plant("messages", guid="late", job_id=job_id, name=GROUP, occurrence=1, **message)
        done(subject.store, fail(held, subject.clock))
        for name, occurrence in ((WHOLE_JOB, 0), (GROUP, 1)):
            request = CountDown(job_id, 0, name, occurrence, "late", +1, 0)
            assert isinstance(outcome_of(subject.store, request), StaleLease)
        assert subject.rows("messages")[0]["ledger"] == ENTERED
