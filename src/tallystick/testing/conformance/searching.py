"""What people look for: any filter, in windows of a bounded size; and who wanted what is in the facts."""

from __future__ import annotations

import msgspec

from tallystick.core.verbs.holds import Hold
from tallystick.core.watching.searching import JobSearch
from tallystick.store.api import CancelJob, ClaimedJob, ForkJob, HoldJob, ResumeJob, Searched, Store
from tallystick.store.inspection import Narrowed, watched
from tallystick.testing.conformance.drafts import FRESH, claim, claimed, done, fail, held_job, submission
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


def claimed_job(subject: Subject, job_id: str, handler: str = "pay", **columns: str) -> ClaimedJob:
    """Submit a job, and let a worker claim it."""
    done(subject.store, submission(subject.clock, job_id, handler=handler, **columns))
    (held,) = claimed(subject.store, claim(handlers=((handler, ""),)))
    assert held.fence.job_id == job_id
    return held


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

    def test_held_jobs_are_found_by_what_holds_them_however_many_others_are_held(
        self, subject: Subject
    ) -> None:
        store, clock = subject.store, subject.clock
        holds = [Hold.IN_DOUBT, Hold.MISMATCH, *[Hold.PAUSED] * 4]
        for number, hold in enumerate(holds):
            done(store, submission(clock, f"0{number}", queue="slow" if number == 0 else "default"))
            done(store, HoldJob(f"0{number}", hold, "for this test"))
        for number in range(6, 9):
            done(store, submission(clock, f"0{number}", tenant_id="acme"))
            done(store, HoldJob(f"0{number}", Hold.IN_DOUBT, "for this test"))

        def held(*holds: Hold, limit: int = 9, before: str | None = None) -> list[str]:
            rows = seen(store).held_jobs("default", holds, before=before, limit=limit)
            return [row.job_id for row in rows]

        assert held(Hold.IN_DOUBT, limit=1) == ["00"]
        assert held(Hold.PAUSED, Hold.MISMATCH, limit=2) == ["05", "04"]
        assert held(Hold.PAUSED, Hold.MISMATCH, before="03") == ["02", "01"]
        assert held(Hold.REFUSED) == []
        assert found(store, ALL._replace(is_held=True)) == ["05", "04", "03", "02", "01", "00"]
        assert found(store, ALL._replace(is_held=True), window=6) == ["05", "04", "03", "02", "01", "00"]
        assert found(store, ALL._replace(is_held=True), limit=3, window=4) == ["05", "04", "03"]
        # The window is one of held jobs of this tenant.
        assert found(store, ALL._replace(is_held=True, queue="slow"), window=6) == ["00"]

    def test_an_error_is_looked_for_in_a_window_of_jobs_that_match_the_other_filters(
        self, subject: Subject
    ) -> None:
        store, clock = subject.store, subject.clock
        for number in range(8):
            job = claimed_job(subject, f"0{number}", "rare" if number in (0, 1, 7) else "pay")
            done(store, fail(job, clock)._replace(error_message=f"no label {number}"))
            done(store, submission(clock, f"0{number}x", handler="rare", queue="aside"))
        label, rare = ALL._replace(error="label"), ALL._replace(error="LABEL", workflow="rare")
        assert found(store, label, window=3) == ["07", "06", "05"]
        assert found(store, ALL._replace(error="label 0"), window=8) == ["00"]
        # Three windows of jobs with an error are gone through for one window of those that match the others.
        assert found(store, rare, window=2) == ["07"]
        assert found(store, rare, window=3) == ["07", "01", "00"]
        assert found(store, rare._replace(error="label 0"), window=2) == []
        first = seen(store).jobs_found(rare, before=None, limit=9, window=2)
        assert first.reached == "02"
        assert seen(store).jobs_found(rare, before="02", limit=9, window=2).rows[0].job_id == "01"

    def test_dead_letters_are_found_by_themselves(self, subject: Subject) -> None:
        store, clock = subject.store, subject.clock
        for number in range(3):
            done(store, fail(claimed_job(subject, f"0{number}"), clock))
        done(store, submission(clock, "03"))
        assert found(store, ALL._replace(is_dead=True), window=3) == ["02", "01", "00"]
        done(store, ForkJob("01", FRESH.new(), None, retry=True))
        assert found(store, ALL._replace(is_dead=True)) == ["02", "00"]
        assert found(store, JobSearch("acme", is_dead=True)) == []
        assert found(store, JobSearch(None, is_dead=True)) == ["02", "00"]
        dead = [
            store.dead(tenant_id=tenant, handler=None, after=None, limit=9) for tenant in ("default", None)
        ]
        assert [[row.job_id for row in rows] for rows in dead] == [["02", "00"]] * 2

    def test_late_and_lost_jobs_are_found_for_their_tenant(self, subject: Subject) -> None:
        store, clock = subject.store, subject.clock
        past = clock.wall_ms() + 1_000
        for number in range(4):
            tenant = "acme" if number == 3 else "default"
            done(store, submission(clock, f"0{number}", tenant_id=tenant, deadline_at=past + number))
        clock.advance(10_000)
        late = seen(store).late_jobs("acme", limit=1)
        assert ([row.job_id for row in late.rows], late.reached) == (["03"], None)
        assert [row.job_id for row in seen(store).late_jobs("default", limit=2).rows] == ["00", "01"]
        cut = seen(store).late_jobs("acme", limit=1, window=2)
        assert (cut.rows, cut.reached) == ([], "01")
        for number in range(4, 7):
            claimed_job(subject, f"0{number}", "lost", tenant_id="acme" if number == 6 else "default")
        assert seen(store).lost_jobs("acme", limit=9) == []
        clock.advance(3_600_000)
        assert [row.job_id for row in seen(store).lost_jobs("acme", limit=1)] == ["06"]
        assert [row.job_id for row in seen(store).lost_jobs("default", limit=9)] == ["04", "05"]

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
