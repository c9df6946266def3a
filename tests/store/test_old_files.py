"""Files of an older revision are opened and worked off: what is due ends as it would have there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tallystick import Tally
from tallystick.core.lifecycles import JOB
from tallystick.engine.audit import audit
from tallystick.errors import NotFound
from tests.fixtures import shop
from tests.old_files import OldJob, old_clock, old_jobs, restore_postgres, sqlite_file
from tests.patience import wait_until
from tests.postgres.subject import fresh_schema

OPEN_OR_GONE = (
    "pruned",
    "its lease is live",
    "queued for later",
    "sleeps on",
    "cancelling, its lease is live",
)


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def app(store: str, request: pytest.FixtureRequest) -> Iterator[Tally]:
    if store == "sqlite":
        url = f"sqlite:///{sqlite_file(request.getfixturevalue('tmp_path'))}"
    else:
        url = restore_postgres(request.getfixturevalue("server"), fresh_schema())
    tally = Tally(url, clock=old_clock(store))
    shop.declare(tally)
    shop.mended.set()
    yield tally
    tally.close()


def test_jobs_of_an_old_file_come_to_the_end_that_they_would_have_come_to(app: Tally, store: str) -> None:
    jobs = old_jobs(store)
    with app.worker(queues=shop.QUEUES, lease="3s"):
        # Children first: one that its parent does not wait for is cancelled when its parent ends.
        for old in sorted(jobs, key=lambda old: -old.id.count(".")):
            for name, value in old.signals.items():
                app.job(old.id).send(name, value)
            if "." in old.id and old.state in JOB.final:
                wait_until(lambda old=old: app.job(old.id).state() == old.state, f"{old.state}: {old.case}")
        for old in jobs:
            if old.state in JOB.final:
                wait_until(lambda old=old: app.job(old.id).state() == old.state, f"{old.state}: {old.case}")
            if old.state == "SUCCEEDED":
                assert app.job(old.id).result(5) == old.result, old.case
        assert {old.case: found(app, old) for old in jobs} == {old.case: old.state for old in jobs}
        for old in (old for old in jobs if old.resumed is not None):
            app.job(old.id).resume()
            assert app.job(old.id).result(30) == old.resumed, old.case
    assert shop.effects(app) == 2, "what a tx has written is written once"
    assert {old.case for old in jobs if found(app, old) not in JOB.final} == set(OPEN_OR_GONE)
    # Jobs whose chain was broken in the old file: they are the only ones that are found, and all of them.
    broken = {old.id: old.case for old in jobs if old.case.startswith("place ")}
    findings = audit(app.runtime().store).findings
    assert {broken.get(finding.job_id, finding) for finding in findings} == set(broken.values())


def test_an_open_job_whose_chain_is_broken_is_held_until_a_person_has_looked(app: Tally, store: str) -> None:
    open_ones = [old for old in old_jobs(store) if old.state and old.state not in JOB.final]
    held = {old.case: app.job(old.id).row() for old in open_ones}
    for case in ("place doubled, open", "place missing, open"):
        assert held[case].hold == "MISMATCH"
        assert "a place twice or not at all" in str(held[case].hold_reason)
    assert sorted(case for case, row in held.items() if row.hold == "MISMATCH") == [
        "held",
        "place doubled, open",
        "place missing, open",
    ]


def found(app: Tally, old: OldJob) -> str | None:
    try:
        return app.job(old.id).state()
    except NotFound:
        return None
