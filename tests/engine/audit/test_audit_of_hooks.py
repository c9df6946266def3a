"""A hook that a newer program declares counts for jobs in flight, and is no change of their books."""

from __future__ import annotations

from tallystick import Tally
from tallystick.testing.stepping import check_store


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
        assert check_store(newer) == []
    finally:
        older.close()
        newer.close()
