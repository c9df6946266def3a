"""Whose a job is: told when it is submitted, and inherited by all that it starts."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from tallystick import Job, Tally, Tx, gather
from tallystick.errors import BadInput, BadName, JobFailed


def make(tmp_path: Path) -> Tally:
    app = Tally(f"sqlite:///{tmp_path / 'books.db'}")

    @app.workflow
    def child(n: int) -> int:
        return n

    @app.workflow
    def alone() -> None:
        return None

    @app.tx
    def inside(db: Tx) -> str:
        return alone.opts(within=db).submit().id

    @app.step
    def fails() -> None:
        raise ValueError("no")

    @app.workflow
    def parent(*, ends_badly: bool = False) -> list[str]:
        gather(child.child(1), child.child(2))
        ids = [alone.opts(detached=True).submit().id, inside()]
        if ends_badly:
            fails()
        return ids

    @app.workflow
    def strays() -> None:
        child.opts(tenant="other").child(1).result()

    return app


def tenant_of(job: Job) -> str:
    return job.row().tenant_id


def test_jobs_belong_to_the_tenant_that_was_named_and_lists_show_one_tenant(tmp_path: Path):
    with closing(make(tmp_path)) as app:
        child = app.workflows["child", ""]
        mine, usual = child.opts(tenant="acme").submit(1), child.submit(1)
        assert (tenant_of(mine), tenant_of(usual)) == ("acme", "default")
        assert app.jobs(tenant="acme") == [mine]
        assert app.jobs() == [usual]
        assert app.jobs(tenant="nobody") == []


def test_one_key_of_two_tenants_is_two_jobs(tmp_path: Path):
    with closing(make(tmp_path)) as app:
        child = app.workflows["child", ""]
        first, second = (
            child.opts(tenant=tenant, idempotency_key="k").submit(1) for tenant in ("acme", "other")
        )
        assert first != second
        assert child.opts(tenant="acme", idempotency_key="k").submit(1) == first


def test_all_that_a_job_starts_belongs_to_its_tenant(tmp_path: Path):
    with closing(make(tmp_path)) as app, app.worker():
        job = app.workflows["parent", ""].opts(tenant="acme").submit()
        started = [app.job(job_id) for job_id in job.result()]
        assert len(job.children()) == 3
        assert {tenant_of(each) for each in [*started, *job.children()]} == {"acme"}
        assert len(app.jobs(tenant="acme")) == 5


def test_forks_and_retries_stay_with_the_tenant(tmp_path: Path):
    with closing(make(tmp_path)) as app, app.worker():
        job = app.workflows["parent", ""].opts(tenant="acme").submit(ends_badly=True)
        with pytest.raises(JobFailed):
            job.result()
        again = job.retry()
        with pytest.raises(JobFailed):
            again.result()
        fork = job.fork(at="fails")
        assert (tenant_of(again), tenant_of(fork)) == ("acme", "acme")
        assert app.dead(tenant="acme")
        assert not app.dead()


def test_no_workflow_starts_a_job_of_another_tenant(tmp_path: Path):
    with closing(make(tmp_path)) as app, app.worker():
        job = app.workflows["strays", ""].opts(tenant="acme").submit()
        with pytest.raises(JobFailed, match="cannot start one of the tenant other"):
            job.result()


def test_a_tenant_is_a_name(tmp_path: Path):
    with closing(make(tmp_path)) as app:
        with pytest.raises(BadName):
            app.workflows["child", ""].opts(tenant="a b").submit(1)
        with pytest.raises(BadInput):
            app.jobs(tenant="")
