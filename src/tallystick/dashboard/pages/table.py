"""Every page and form of the dashboard, as data: routes and tests are made of this table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from tallystick.core.remote.keys import ADMIN, READ
from tallystick.dashboard.answers import Answer
from tallystick.dashboard.pages.account import first, log_out, tenant
from tallystick.dashboard.pages.acting import VERBS, acting
from tallystick.dashboard.pages.attention import attention, verify_newest
from tallystick.dashboard.pages.job import job, payload, verify_job
from tallystick.dashboard.pages.jobs import bulk, do_bulk, find, jobs
from tallystick.dashboard.pages.lifecycles import lifecycles
from tallystick.dashboard.pages.outside import effects, outbox, redrive_directive
from tallystick.dashboard.pages.overview import act_on_queue, overview, queues, workers
from tallystick.dashboard.pages.runs import artifact, run, runs
from tallystick.dashboard.pages.schedules import act_on_schedule, schedules
from tallystick.dashboard.visits import Visit


class Place(NamedTuple):
    """One address: who may come, and what answers. Without a scope any session will do.

    Places for operators need the scope `admin` and no other.
    """

    method: str
    path: str
    handler: Callable[[Visit], Answer]
    scope: str = READ
    operator: bool = False
    menu: str = ""

    @property
    def name(self) -> str:
        """Return what the route is called."""
        return f"{self.method} {self.path}"


PLACES: Final = (
    Place("GET", "/", first, "", menu="overview"),
    Place("GET", "/overview", overview, operator=True, menu="overview"),
    Place("GET", "/jobs", jobs, menu="jobs"),
    Place("GET", "/find", find),
    Place("GET", "/jobs/{job_id}", job, menu="jobs"),
    Place("GET", "/jobs/{job_id}/payload/{what}", payload, menu="jobs"),
    Place("POST", "/jobs/{job_id}/verify", verify_job, menu="jobs"),
    *(
        Place("POST", f"/jobs/{{job_id}}/{name}", acting(name), verb.scope, menu="jobs")
        for name, verb in VERBS.items()
    ),
    Place("GET", "/bulk/{verb}", bulk, ADMIN, menu="jobs"),
    Place("POST", "/bulk/{verb}", do_bulk, ADMIN, menu="jobs"),
    Place("GET", "/attention", attention, menu="attention"),
    Place("POST", "/attention/verify", verify_newest, operator=True, menu="attention"),
    Place("GET", "/effects", effects, menu="effects"),
    Place("GET", "/outbox", outbox, menu="outbox"),
    Place("POST", "/outbox/redrive", redrive_directive, ADMIN, menu="outbox"),
    Place("GET", "/queues", queues, operator=True, menu="queues"),
    Place("POST", "/queues/{queue}/{verb}", act_on_queue, operator=True, menu="queues"),
    Place("GET", "/workers", workers, operator=True, menu="workers"),
    Place("GET", "/schedules", schedules, operator=True, menu="schedules"),
    Place("POST", "/schedules/{schedule}/{verb}", act_on_schedule, operator=True, menu="schedules"),
    Place("GET", "/runs", runs, operator=True, menu="runs"),
    Place("GET", "/runs/{run_id}", run, operator=True, menu="runs"),
    Place("GET", "/runs/{run_id}/artifacts/{name:path}", artifact, operator=True, menu="runs"),
    Place("GET", "/lifecycles", lifecycles, menu="lifecycles"),
    Place("POST", "/tenant", tenant, ""),
    Place("POST", "/logout", log_out, ""),
)
