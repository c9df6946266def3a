"""A hook that a newer program declares counts for jobs in flight, and is no change of their books."""

from __future__ import annotations

from tallystick import Tally
from tallystick.engine.audit.whole_store import verify


def test_a_job_that_a_program_with_other_hooks_has_claimed_is_true(url):
    older, newer = Tally(url), Tally(url)
    told = []

    @older.workflow
    def flow() -> None: ...

    @newer.workflow(name="flow")
    def same() -> None: ...

    @newer.on_succeeded
    def succeeded(job) -> None:
        told.append(job.id)

    job = flow.submit()
    try:
        with newer.worker():
            job.result(30)
        assert told == [job.id]
        assert verify(newer.runtime().store).findings == []
    finally:
        older.close()
        newer.close()
