"""Lists of submissions that differ in their ids and payloads alone: all of a list, or none."""

from __future__ import annotations

from tallystick.clock import Clock
from tallystick.store.api import SubmitJobs
from tallystick.testing.conformance.drafts import (
    FRESH,
    bundles,
    check_chain,
    claim,
    claimed,
    done,
    finish,
    outcome_of,
    submission,
)
from tallystick.testing.conformance.pictures import JobPicture
from tallystick.testing.conformance.subject import Subject

# More than a store sends at once, and no multiple of what it sends.
MANY = 450


def alike(clock: Clock, count: int, **columns: object) -> SubmitJobs:
    """Return so many submissions, each with a payload of its own."""
    like = submission(clock, "like", **columns)  # type: ignore[arg-type]  # tests name columns, each with its own type
    return SubmitJobs(like, FRESH.many(count), [f'{{"n":{number}}}' for number in range(count)])


class SubmitMany:
    """What a list of submissions makes durable, and what it leaves when one of them cannot be."""

    def test_each_of_a_list_is_a_job_like_one_submitted_alone(self, subject: Subject) -> None:
        wish = alike(subject.clock, MANY, tags='["a"]', priority=3, queue="mail")
        alone = submission(subject.clock, tags='["a"]', priority=3, queue="mail")
        assert subject.store.apply(bundles(wish, alone)) == [None, None]
        rows = {row["job_id"]: row for row in subject.books()[JobPicture]}
        other = rows.pop(alone.job.job_id)
        assert list(rows) == list(wish.job_ids)
        payloads = {job.job_id: job.payload for job in subject.jobs()}
        assert [payloads[job_id] for job_id in wish.job_ids] == wish.payloads
        for job_id in wish.job_ids:
            row = rows[job_id]
            differs = {name for name in row if row[name] != other[name]}
            assert differs == {"job_id", "payload", "head_hash"}
            history = subject.store.history(job_id)
            assert [event.type for event in history] == ["submit"]
            assert row["head_hash"] == history[0].event_hash
            check_chain(history)
        tagged = subject.store.jobs(
            tenant_id="default", states=(), handler=None, after=None, limit=MANY, tag="a"
        )
        assert len(tagged) == MANY

    def test_jobs_of_a_list_are_claimed_and_end_like_others(self, subject: Subject) -> None:
        wish = alike(subject.clock, 3)
        held = subject.store.apply(bundles(wish, claim(3)))[1]
        assert isinstance(held, list)
        assert [job.fence.job_id for job in held] == wish.job_ids
        assert [job.payload for job in held] == wish.payloads
        for job in held:
            done(subject.store, finish(job, subject.clock))
            check_chain(subject.store.history(job.fence.job_id))

    def test_a_list_waits_as_long_as_it_was_told(self, subject: Subject) -> None:
        now = subject.clock.wall_ms()
        wish = alike(subject.clock, 2, ready_at=now + 5_000)
        done(subject.store, wish)
        assert claimed(subject.store, claim(2)) == []
        subject.clock.advance(5_000)
        assert len(claimed(subject.store, claim(2))) == 2

    def test_a_list_with_one_that_cannot_be_leaves_none_and_spoils_nobody_elses(
        self, subject: Subject
    ) -> None:
        there = submission(subject.clock)
        done(subject.store, there)
        good, wrong = alike(subject.clock, 3), alike(subject.clock, MANY)
        wrong = wrong._replace(job_ids=[*wrong.job_ids[:-1], there.job.job_id])
        after = submission(subject.clock)
        outcomes = subject.store.apply(bundles(good, wrong, after))
        assert [outcomes[0], outcomes[2]] == [None, None]
        assert isinstance(outcomes[1], BaseException)
        kept = {row.job_id for row in subject.jobs()}
        assert kept == {there.job.job_id, *good.job_ids, after.job.job_id}
        assert isinstance(outcome_of(subject.store, wrong), BaseException)
        assert {row.job_id for row in subject.facts()} == kept
