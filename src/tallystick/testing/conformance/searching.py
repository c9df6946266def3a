"""What people look for: any filter, in windows of a bounded size; and who wanted what is in the facts."""

from __future__ import annotations

import msgspec

from tallystick.core.verbs.holds import Hold
from tallystick.core.watching.searching import JobSearch
from tallystick.store.api import CancelJob, ForkJob, HoldJob, ResumeJob, Searched, Store
from tallystick.store.inspection import Narrowed, watched
from tallystick.testing.conformance.drafts import FRESH, done, fail, held_job, submission
from tallystick.testing.conformance.subject import Subject

ALL = JobSearch("default")


def seen(store: Store) -> Searched:
    """Return the store as those see it who look for something."""
    assert isinstance(store, Searched)
    return store


def found(store: Store, search: JobSearch, **about: int) -> list[str]:
    """Return what one page of a search has."""
    limit, window = about.get("limit", 100), about.get("window", 100)
    rows, reached = seen(store).jobs_found(search, before=None, limit=limit, window=window)
    for known in (None, reached):
        counted = seen(store).count_found(search, before=None, limit=limit, window=window, reached=known)
        assert counted == (len(rows), reached)
    return [row.job_id for row in rows]


def by_of(store: Store, job_id: str, kind: str) -> object:
    """Return who wanted what the newest fact of a kind says."""
    facts = [fact for fact in store.history(job_id) if fact.type == kind]
    return msgspec.json.decode(facts[-1].payload).get("by")


class Searching:
    """Filters, windows and pages."""

    def test_each_filter_finds_what_has_it(self, subject: Subject) -> None:
        store, clock = subject.store, subject.clock
        made = [
            submission(clock, "01", key="k1", tags='["red"]', idempotency_key="k1"),
            submission(clock, "02", handler="other", queue="slow", tags='["red","blue"]'),
            submission(clock, "03", tenant_id="acme"),
        ]
        for each in made:
            done(store, each)
        at = clock.wall_ms()
        clock.advance(1_000)
        done(store, submission(clock, "04"))
        done(store, HoldJob("04", Hold.PAUSED, "for this test"))
        assert found(store, ALL) == ["04", "02", "01"]
        assert found(store, ALL._replace(states=["QUEUED"])) == ["04", "02", "01"]
        assert found(store, ALL._replace(states=["SUCCEEDED"])) == []
        assert found(store, ALL._replace(workflow="other")) == ["02"]
        assert found(store, ALL._replace(queue="slow")) == ["02"]
        assert found(store, ALL._replace(tag="red")) == ["02", "01"]
        assert found(store, ALL._replace(tag="red", queue="slow")) == ["02"]
        assert found(store, ALL._replace(tag="green")) == []
        assert found(store, ALL._replace(key="k1")) == ["01"]
        assert found(store, ALL._replace(key="k2")) == []
        assert found(store, ALL._replace(is_held=True)) == ["04"]
        assert found(store, ALL._replace(since=at + 1)) == ["04"]
        assert found(store, JobSearch("acme")) == ["03"]
        assert found(store, JobSearch(None)) == ["04", "03", "02", "01"]
        assert found(store, JobSearch(None, tag="red")) == ["02", "01"]
        assert found(store, JobSearch(None, key="k1")) == ["01"]
        narrowed = watched(store).jobs_narrowed(
            Narrowed(roots=True), tenant_id=None, states=(), handler=None, after=None, limit=9
        )
        assert [row.job_id for row in narrowed] == ["04", "03", "02", "01"]
        assert [row.job_id for row in seen(store).held_jobs("default", before=None, limit=9)] == ["04"]
        assert seen(store).held_jobs("acme", before=None, limit=9) == []

    def test_jobs_made_before_an_instant_are_found_by_it(self, subject: Subject) -> None:
        at = f"{subject.clock.wall_ms():012x}"
        job_id = f"{at[:8]}-{at[8:]}-7000-8000-000000000001"
        done(subject.store, submission(subject.clock, job_id))
        assert found(subject.store, ALL._replace(until=subject.clock.wall_ms() + 1)) == [job_id]
        assert found(subject.store, ALL._replace(until=subject.clock.wall_ms())) == []

    def test_an_error_is_found_by_a_part_of_its_text_in_small_or_capital_letters(
        self, subject: Subject
    ) -> None:
        job = held_job(subject.store, subject.clock)
        done(subject.store, fail(job, subject.clock)._replace(error_message="A Strange thing"))
        assert found(subject.store, ALL._replace(error="strange THING")) == [job.fence.job_id]
        assert found(subject.store, ALL._replace(error="100%")) == []

    def test_a_window_ends_where_it_says_and_the_next_one_goes_on_there(self, subject: Subject) -> None:
        store = subject.store
        for number in range(5):
            done(store, submission(subject.clock, f"0{number}", queue="slow" if number == 0 else "default"))
        slow, before, looks = ALL._replace(queue="slow"), None, 0
        while True:
            page = seen(store).jobs_found(slow, before=before, limit=9, window=2)
            looks += 1
            if page.rows or page.reached is None:
                break
            before = page.reached
        assert ([row.job_id for row in page.rows], looks) == (["00"], 3)
        assert seen(store).jobs_found(slow, before=None, limit=9, window=2).reached == "03"
        assert seen(store).count_found(ALL, before=None, limit=3, window=9) == (3, None)

    def test_a_fact_says_who_wanted_it(self, subject: Subject) -> None:
        store, clock = subject.store, subject.clock
        for job_id in ("one", "two"):
            done(store, submission(clock, job_id))
        done(store, HoldJob("one", Hold.PAUSED, "for this test", by="ada"))
        done(store, ResumeJob("one", by="bob"))
        done(store, CancelJob("one", 0, by="eve"))
        assert [by_of(store, "one", kind) for kind in ("hold", "resume", "cancel")] == ["ada", "bob", "eve"]
        fork = FRESH.new()
        done(store, ForkJob("two", fork, None, by="ada"))
        assert by_of(store, fork, "fork") == "ada"
        done(store, HoldJob("two", Hold.PAUSED, "for this test"))
        assert by_of(store, "two", "hold") is None
