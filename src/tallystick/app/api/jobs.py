"""The jobs of a store: one by its id, many by what they have in common, and one signal to all of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

from tallystick.app.api.control import state_named
from tallystick.app.api.job import Job
from tallystick.app.api.runtime import Runtime
from tallystick.app.api.sending import deliver_all, deliver_all_async, signals
from tallystick.app.replay.context import refuse_inside
from tallystick.app.running.twins import twin_of
from tallystick.app.values.codec import Codec
from tallystick.core.lifecycles import JobState
from tallystick.core.limits import PAGE_ROWS_MAX, check_name, check_storable
from tallystick.defaults import TENANT
from tallystick.store.api import Delivered


class Jobs(ABC):
    """What a Tally knows of jobs that others may have submitted."""

    @abstractmethod
    def runtime(self, *, create: bool = True) -> Runtime:
        """Return the open store; a Tally opens it on first use."""

    def job(self, job_id: str) -> Job[Any]:
        """Return a job by its id; whether there is one is known when it is asked for something."""
        return Job(self.runtime, check_storable("job id", job_id), lambda: Codec(Any), created=False)

    def dead(
        self,
        *,
        workflow: str | None = None,
        after: Job[Any] | None = None,
        limit: int = PAGE_ROWS_MAX,
        tenant: str = TENANT,
    ) -> list[Job[Any]]:
        """Return the dead letters, newest first: jobs that have failed and were not retried.

        `after` is the last job of the page before.
        """
        rows = self.runtime().store.dead(
            tenant_id=check_name("tenant", tenant),
            handler=_wanted("workflow", workflow),
            after=None if after is None else after.id,
            limit=min(limit, PAGE_ROWS_MAX),
        )
        return [self.job(row.job_id) for row in rows]

    dead_aio = twin_of(dead)

    def jobs(
        self,
        *,
        tag: str | None = None,
        workflow: str | None = None,
        states: Sequence[JobState | str] = (),
        after: Job[Any] | None = None,
        limit: int = 100,
        tenant: str = TENANT,
    ) -> list[Job[Any]]:
        """Return a page of jobs of a tenant, newest first: with this tag, of this workflow, in these states.

        `after` is the last job of the page before.
        """
        rows = self.runtime().store.jobs(
            tenant_id=check_name("tenant", tenant),
            states=[state_named(state) for state in states],
            handler=_wanted("workflow", workflow),
            after=None if after is None else after.id,
            limit=min(limit, PAGE_ROWS_MAX),
            tag=_wanted("tag", tag),
        )
        return [self.job(row.job_id) for row in rows]

    jobs_aio = twin_of(jobs)

    def send_many(
        self,
        jobs: Iterable[Job[Any]],
        name: str,
        value: object = None,
        *,
        id: str | None = None,  # noqa: A002 (the word that users know)
    ) -> list[Delivered]:
        """Send one signal to many jobs, sharing flushes; durable for all of them when this returns.

        With an `id` a repeated sending is the same signal for each job. If a job does not exist the others
        get theirs, and `NotFound` is raised.
        """
        refuse_inside("send to many jobs")
        runtime = self.runtime()
        return deliver_all(runtime, signals(runtime, [job.id for job in jobs], name, value, id))

    async def send_many_aio(
        self,
        jobs: Iterable[Job[Any]],
        name: str,
        value: object = None,
        *,
        id: str | None = None,  # noqa: A002 (the word that users know)
    ) -> list[Delivered]:
        """Send one signal to many jobs without blocking the event loop."""
        refuse_inside("send to many jobs")
        runtime = self.runtime()
        return await deliver_all_async(runtime, signals(runtime, [job.id for job in jobs], name, value, id))


def _wanted(kind: str, text: str | None) -> str | None:
    return None if text is None else check_storable(kind, text)
