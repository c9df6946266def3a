"""A tree that is cancelled, a deadline that passes: all below is asked at once, and then not claimed."""

from __future__ import annotations

import pytest

from tallystick.core.lifecycles import JobState
from tallystick.core.limits import DEPTH_MAX
from tallystick.errors import TooDeep
from tallystick.store.api import CancelJob, CancelUnclaimed, ClaimedJob, Deliver, Interrupted, Overdue, Wait
from tallystick.testing.conformance.drafts import (
    claim,
    claimed,
    done,
    fail,
    finish,
    held_job,
    outcome_of,
    release,
    submission,
)
from tallystick.testing.conformance.promises.families import spawning
from tallystick.testing.conformance.promises.suspending import waiting
from tallystick.testing.conformance.subject import Subject
from tallystick.testing.expected_digits import CLOSED, WORD_CLOSED

GRACE_MS = 5_000


def tree(subject: Subject) -> tuple[ClaimedJob, ClaimedJob]:
    """Return a parent and its first child, which run; its second child and the child's child are queued."""
    held = held_job(subject.store, subject.clock)
    done(subject.store, spawning(subject, held, 2))
    (child,) = claimed(subject.store, claim(1))
    done(subject.store, spawning(subject, child, 1))
    return held, child


def states(subject: Subject) -> dict[str, object]:
    """Return the state of each job by which of its siblings it is, at each level."""
    return {_place(row.job_id): row.state for row in subject.jobs()}


def _place(job_id: str) -> str:
    return "/".join(str(int(part)) for part in job_id.split(".")[3::3]) or "top"


def end_all(subject: Subject) -> int:
    """End what is overdue now, as a worker does, and return how many jobs that were."""
    found = subject.store.overdue(100)
    for job_id, late in found:
        done(subject.store, CancelJob(job_id, GRACE_MS, force=not late, late=late))
    return len(found)


class Trees:
    """What becomes of everything below a job that ends or is asked to."""

    @pytest.mark.parametrize("how", ["cancel", "end", "fail"])
    def test_what_is_below_a_job_is_asked_with_it_and_what_nobody_runs_is_not_claimed(
        self, subject: Subject, how: str
    ) -> None:
        store = subject.store
        held, child = tree(subject)
        if how == "cancel":
            assert done(store, CancelJob(held.fence.job_id, GRACE_MS)) is JobState.CANCELLING
        else:
            end = finish(held, subject.clock) if how == "end" else fail(held, subject.clock)
            done(store, end._replace(waited=True))
        below = {place: state for place, state in states(subject).items() if place != "top"}
        assert below == dict.fromkeys(("0", "1", "0/0"), "CANCELLING")
        assert claimed(store, claim(9)) == []
        # What runs has its grace, what does not run has none.
        assert end_all(subject) == 2
        assert states(subject)["0"] == "CANCELLING"
        assert states(subject)["1"] == states(subject)["0/0"] == "CANCELLED"
        done(store, finish(child, subject.clock)._replace(waited=True, parent=child.parent))
        assert states(subject)["0"] == "CANCELLED"
        assert end_all(subject) == 0

    def test_the_digits_of_a_job_that_is_ended_with_its_parent_are_those_of_any_cancelled_job(
        self, subject: Subject
    ) -> None:
        held, _child = tree(subject)
        done(subject.store, CancelJob(held.fence.job_id, GRACE_MS))
        end_all(subject)
        ended = [row for row in subject.jobs() if row.state == "CANCELLED"]
        assert [row.root_ledger for row in ended] == [CLOSED] * 2
        words = {row.guid: row.ledger for row in subject.messages()}
        assert [words[f"cancel:{row.job_id}"] for row in ended] == [WORD_CLOSED] * 2
        facts = [subject.store.history(row.job_id)[-1].payload for row in ended]
        assert all('"job":"QUEUED>CANCELLING>CANCELLED"' in fact for fact in facts)

    def test_jobs_that_nobody_held_end_as_one_list_and_all_others_stay(self, subject: Subject) -> None:
        store, held = subject.store, held_job(subject.store, subject.clock)
        done(store, spawning(subject, held, 4))
        (child,) = claimed(store, claim(1))
        asked = tuple(row.job_id for row in subject.jobs() if row.job_id != held.fence.job_id)
        assert done(store, CancelUnclaimed((*asked, "nobody"))) == frozenset(), "none was asked to end"
        done(store, CancelJob(held.fence.job_id, GRACE_MS))
        assert done(store, CancelUnclaimed(asked)) == frozenset(), "the parent has not ended"
        done(store, finish(held, subject.clock)._replace(waited=True))
        *queued, signalled = (job_id for job_id in asked if job_id != child.fence.job_id)
        done(store, Deliver("g", signalled, "signal", "go", "1"))
        assert done(store, CancelUnclaimed(asked)) == frozenset(queued)
        assert done(store, CancelUnclaimed(asked)) == frozenset(), "once"
        (row,) = [row for row in subject.jobs() if row.job_id == queued[0]]
        assert (row.state, row.attempt, row.root_ledger) == ("CANCELLED", 1, CLOSED)
        assert end_all(subject) == 1
        assert states(subject)["0"] == "CANCELLING"

    def test_a_grace_that_is_over_ends_what_still_runs_below(self, subject: Subject) -> None:
        held, child = tree(subject)
        done(subject.store, CancelJob(held.fence.job_id, GRACE_MS))
        end_all(subject)
        assert subject.store.overdue(9) == []
        at = subject.store.next_end()
        assert at == subject.clock.wall_ms() + GRACE_MS
        subject.clock.advance(GRACE_MS)
        assert end_all(subject) == 2
        assert set(states(subject).values()) == {"CANCELLED"}
        assert subject.store.next_end() is None
        (told,) = subject.store.interrupted([child.fence.job_id])
        assert told == Interrupted(child.fence.job_id, asked=False, hold=None, ended=True)

    def test_a_job_that_is_asked_while_it_waits_is_not_woken_any_more(self, subject: Subject) -> None:
        store = subject.store
        held, child = tree(subject)
        assert done(store, waiting(child, subject.clock, Wait("wait", "go", 1, None))) is None
        done(store, CancelJob(held.fence.job_id, GRACE_MS))
        done(store, Deliver("g", child.fence.job_id, "signal", "go", "1"))
        assert claimed(store, claim(9)) == []
        assert end_all(subject) == 3

    def test_a_job_that_gives_itself_back_while_it_is_asked_is_taken_up_to_clean_up(
        self, subject: Subject
    ) -> None:
        held, child = tree(subject)
        done(subject.store, CancelJob(held.fence.job_id, GRACE_MS))
        done(subject.store, release(child, subject.clock))
        (again,) = claimed(subject.store, claim(9))
        assert again.cancelling

    def test_a_job_that_is_asked_to_end_starts_no_children(self, subject: Subject) -> None:
        held = held_job(subject.store, subject.clock)
        done(subject.store, CancelJob(held.fence.job_id, GRACE_MS))
        assert done(subject.store, spawning(subject, held, 2)) is JobState.CANCELLING
        assert list(states(subject)) == ["top"]
        assert subject.steps() == []

    def test_children_that_are_born_in_the_flush_of_the_cancellation_are_asked_too(
        self, subject: Subject
    ) -> None:
        held = held_job(subject.store, subject.clock)
        cancel = (CancelJob(held.fence.job_id, GRACE_MS),)
        subject.store.apply([(spawning(subject, held, 2),), cancel, (claim(9),)])
        assert states(subject) == dict.fromkeys(("top", "0", "1"), "CANCELLING")

    def test_a_detached_job_knows_its_parent_and_is_left_alone(self, subject: Subject) -> None:
        store = subject.store
        held = held_job(store, subject.clock, lease_ms=60_000)
        plain = submission(subject.clock, "free")
        free = plain.job._replace(parent_job_id=held.fence.job_id, detached=1)
        done(store, plain._replace(job=free))
        done(store, CancelJob(held.fence.job_id, GRACE_MS))
        done(store, finish(held, subject.clock)._replace(waited=True))
        (taken,) = claimed(store, claim(9))
        assert (taken.fence.job_id, taken.parent) == ("free", None)
        done(store, finish(taken, subject.clock))
        (row,) = [row for row in subject.jobs() if row.job_id == "free"]
        assert (row.state, row.parent_job_id) == ("SUCCEEDED", held.fence.job_id)
        assert subject.messages() == []

    def test_recursion_without_an_end_is_refused_at_its_depth(self, subject: Subject) -> None:
        deep = "j" + ".0.1.00000000" * DEPTH_MAX
        done(subject.store, submission(subject.clock, deep))
        (held,) = claimed(subject.store, claim(1))
        refused = outcome_of(subject.store, spawning(subject, held, 1))
        assert isinstance(refused, TooDeep)
        assert f"at most {DEPTH_MAX} parents" in refused.message


class Deadlines:
    """A deadline ends a job wherever it stands."""

    def test_a_queued_job_is_cancelled_when_its_deadline_has_passed_and_not_before(
        self, subject: Subject
    ) -> None:
        store, clock = subject.store, subject.clock
        plain = submission(clock, "late")
        done(store, plain._replace(job=plain.job._replace(deadline_at=clock.wall_ms() + 100)))
        assert store.next_end() == clock.wall_ms() + 100
        assert store.overdue(9) == []
        assert done(store, CancelJob("late", GRACE_MS, late=True)) is JobState.QUEUED
        clock.advance(100)
        assert claimed(store, claim(9)) == []
        assert store.overdue(9) == [Overdue("late", late=True)]
        assert end_all(subject) == 1
        (row,) = subject.jobs()
        assert (row.state, row.error_code) == ("CANCELLED", "DEADLINE")
        assert '"code":"DEADLINE"' in store.history("late")[-1].payload
        assert store.next_end() is None

    def test_a_running_job_has_its_grace_after_its_deadline(self, subject: Subject) -> None:
        store, clock = subject.store, subject.clock
        held = self._running(subject, 100)
        clock.advance(100)
        end_all(subject)
        (row,) = subject.jobs()
        assert (row.state, row.error_code) == ("CANCELLING", "DEADLINE")
        written = done(store, finish(held, clock))
        assert getattr(written, "error_code", None) == "DEADLINE"
        (row,) = subject.jobs()
        assert (row.state, row.error_code, row.result) == ("CANCELLED", "DEADLINE", None)

    def test_children_have_the_time_of_their_parent_unless_they_are_detached(self, subject: Subject) -> None:
        store, clock = subject.store, subject.clock
        held = self._running(subject, 1_000)
        clock.advance(400)
        spawn = spawning(subject, held, 3)
        own = [None, clock.wall_ms() + 100, None]
        children = [
            (job._replace(deadline_at=deadline, detached=int(index == 2)), fact)
            for index, ((job, fact), deadline) in enumerate(zip(spawn.children, own, strict=True))
        ]
        done(store, spawn._replace(children=tuple(children)))
        left = {_place(row.job_id): row.deadline_at for row in subject.jobs()}
        end = left.pop("top")
        assert left == {"0": end, "1": clock.wall_ms() + 100, "2": None}
        clock.advance(600)
        end_all(subject)
        codes = {_place(row.job_id): row.error_code for row in subject.jobs()}
        assert codes == {"top": "DEADLINE", "0": "DEADLINE", "1": "DEADLINE", "2": None}

    def test_a_waiting_job_is_cancelled_and_what_it_waits_for_is_dropped(self, subject: Subject) -> None:
        store, clock = subject.store, subject.clock
        held = self._running(subject, 100)
        assert done(store, waiting(held, clock, Wait("wait", "go", 1, None))) is None
        clock.advance(100)
        end_all(subject)
        (job,), (wait,) = subject.jobs(), subject.steps()
        assert (job.state, job.error_code, wait.state) == ("CANCELLED", "DEADLINE", "CANCELLED")

    def _running(self, subject: Subject, deadline_ms: int) -> ClaimedJob:
        clock = subject.clock
        plain = submission(clock, "job")
        job = plain.job._replace(deadline_at=clock.wall_ms() + deadline_ms)
        done(subject.store, plain._replace(job=job))
        (held,) = claimed(subject.store, claim(1))
        return held
