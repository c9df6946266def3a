"""What must be true of forks and retries: nothing lost, nothing made twice, every copy like its origin."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tests.crash.sweep import facts
from tests.crash.sweep.books import Books
from tests.crash.sweep.place import Place


def broken(books: Books) -> Iterator[str]:
    """Say where a copy has no origin, or a retry and the job in whose place it is do not know each other."""
    for job_id, name, occurrence, origin in books.copies:
        if origin is None:
            yield f"the copy {name}#{occurrence} in {job_id} is like no record of another job"
    for job_id, (_retry_of, retried_as) in books.forks.items():
        if retried_as is not None and books.forks.get(retried_as, (None,))[0] != job_id:
            yield f"{job_id} was retried as {retried_as}, which does not know of it"


def twice(books: Books) -> Iterator[str]:
    """Say which job was retried by more than one."""
    handlers = {job.job_id: job.handler for job in books.jobs}
    made = Counter(retry_of for retry_of, _as in books.forks.values() if retry_of is not None)
    for job_id, count in made.items():
        if count > 1 and handlers.get(job_id) == facts.RETRIED:
            yield f"{job_id} was retried {count} times"


def lost(place: Place, books: Books) -> Iterator[str]:
    """Say which fork or retry was acknowledged and is not there."""
    for job_id, id_, outcome in place.sent():
        if id_ in (facts.RETRY_ID, facts.FORK_ID) and books.forks.get(outcome, (None,))[0] != job_id:
            yield f"{job_id}: its {id_} was acknowledged as {outcome} and is not there"
