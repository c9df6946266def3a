"""What people did, and who they were: acts on jobs, queues and schedules that named their author."""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import UTC, datetime
from typing import Any, NamedTuple

from tallystick.app.api.job import Job
from tallystick.app.api.runtime import Runtime
from tallystick.app.running.twins import twin_of
from tallystick.core.limits import PAGE_ROWS_MAX, check_storable
from tallystick.core.watching.acts import About, Act
from tallystick.errors import BadInput
from tallystick.store.api import searched


class ActView(NamedTuple):
    """One act: `who` did `verb` to the job, queue or schedule `name`, and `told` is what else was said."""

    seq: int
    at: datetime
    about: str
    name: str
    verb: str
    who: str
    told: str


class Acts(ABC):
    """What a Tally knows of the people who look after it."""

    @abstractmethod
    def runtime(self, *, create: bool = True) -> Runtime:
        """Return the open store; a Tally opens it on first use."""

    def acts(
        self,
        *,
        job: Job[Any] | str | None = None,
        queue: str | None = None,
        schedule: str | None = None,
        after: ActView | None = None,
        limit: int = 100,
    ) -> list[ActView]:
        """Return what people did, to anything or to one job, queue or schedule, the newest first.

        An act is kept if its author was named (`by=`), in the transaction that does it. `after` is the last
        one of the page before. What was said to a job goes with it when it is pruned.
        """
        job_id = job.id if isinstance(job, Job) else job
        named = {About.JOB: job_id, About.QUEUE: queue, About.SCHEDULE: schedule}
        asked = [(about, name) for about, name in named.items() if name is not None]
        if len(asked) > 1:
            raise BadInput("ask for the acts on one job, one queue or one schedule, or on all of them")
        about, name = ([asked[0][0]], check_storable("name", asked[0][1])) if asked else (list(About), None)
        before = None if after is None else after.seq
        store = searched(self.runtime().store)
        return [_view(act) for act in store.acts(about, name, before=before, limit=min(limit, PAGE_ROWS_MAX))]

    acts_aio = twin_of(acts)


def _view(act: Act) -> ActView:
    seq, at, *rest = act
    return ActView(seq, datetime.fromtimestamp(at / 1000, UTC), *rest)
