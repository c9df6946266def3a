"""A protocol job that failed is retried, and one is forked: what succeeded is kept, the rest asked for."""

from __future__ import annotations

import json

import pytest

from tallystick import RemoteStep
from tallystick.app.remote.redriving import redrive
from tallystick.errors import NoSuchStep, NotFailed, NotFound
from tallystick.testing.remote_hand import RemoteHand, expire_remote
from tallystick.testing.stepping import check_books

DAY = 86_400_000
COMMAND = {
    "tenant_id": "acme",
    "request_type": "scan",
    "input_ref": "in",
    "output_ref": "out",
    "payload": {"steps": {"embed": {"size": 3}}},
    "schema_version": "v1",
    "correlation_id": "c1",
}


@pytest.fixture
def scan(timed):
    steps = [RemoteStep(name, service=name) for name in ("ocr", "embed", "index")]
    return timed.protocol("scan", request_types=["scan"], steps=steps)


def do(timed, service, value):
    directive = RemoteHand(timed, service).take()
    directive.ack()
    assert directive.succeed(value).name == "ACCEPTED"
    return directive


def states(timed, job):
    return {row.step_id: row.state for row in timed.runtime().store.inspect().protocol(job.id).steps}


def test_a_dead_letter_is_redriven_once_in_the_place_of_its_job(timed, clock, scan):
    job = scan.submit(COMMAND)
    do(timed, "ocr", 1)
    clock.advance(DAY)
    expire_remote(timed)
    assert (job.state(), job.row().error_code) == ("FAILED_FINAL", "DISPATCH_FAILED")
    dead = f"{job.id}:embed:1"
    with pytest.raises(NotFound):
        redrive(timed, dead, "other")
    made = redrive(timed, dead)
    again = redrive(timed, dead)
    assert (made.created, again.created, again.id) == (True, False, made.id)
    assert states(timed, made) == {"ocr": "SUCCEEDED", "embed": "DISPATCHING", "index": "PENDING"}
    assert check_books(timed) == []
    assert scan.submit(COMMAND).id == made.id
    assert timed.dead() == []
    directive = do(timed, "embed", 2)
    assert (directive.row.job_id, directive.payload) == (made.id, {"size": 3})
    do(timed, "index", 3)
    assert made.result(5) == 3
    assert states(timed, job) == {"ocr": "SUCCEEDED", "embed": "FAILED_FINAL", "index": "CANCELLED"}
    assert check_books(timed) == []
    with pytest.raises(NotFailed):
        redrive(timed, f"{made.id}:embed:1")


def test_a_retry_begins_with_the_step_that_failed_and_keeps_what_came_before_with_its_digits(timed, scan):
    job = scan.submit({**COMMAND, "idempotency_key": "k1"})
    do(timed, "ocr", {"pages": 2})
    RemoteHand(timed, "embed").take().fail("BAD_MODEL", "no such model")
    assert job.state() == "FAILED_FINAL"
    retry = job.retry()
    assert job.retry().id == retry.id
    inspection = timed.runtime().store.inspect()
    before, after = inspection.protocol(job.id), inspection.protocol(retry.id)
    assert [step.ledger for step in after.steps] == [before.steps[0].ledger, 1_100_000_000_000, 0]
    assert after.steps[0].result == before.steps[0].result
    assert (after.job.semaphore, after.job.attempts_total, after.job.correlation_id) == (2, 2, "c1")
    assert (after.job.root_ledger, after.job.start_ledger) == (
        before.job.root_ledger,
        before.job.start_ledger,
    )
    (fact,) = retry.history()
    told = json.loads(fact.payload)
    assert (fact.name, told["fork_of"], told["at"], told["retry"], told["copied"]) == (
        "fork",
        job.id,
        "embed",
        True,
        1,
    )
    assert retry.row().retry_of == job.id
    assert scan.submit({**COMMAND, "idempotency_key": "k1"}).id == retry.id
    do(timed, "embed", 2)
    do(timed, "index", 3)
    assert retry.result(5) == 3
    assert check_books(timed) == []


def test_a_fork_asks_again_for_a_step_that_has_succeeded_and_for_none_behind_an_open_one(timed, scan):
    job = scan.submit(COMMAND)
    do(timed, "ocr", 1)
    for where in ("index", "nothing"):
        with pytest.raises(NoSuchStep, match=r"its steps: ocr \(SUCCEEDED\), embed \(DISPATCHING\)"):
            job.fork(at=where)
    fork = job.fork(at="ocr", id="again")
    assert (job.fork(at="ocr", id="again").id, fork.id != job.id) == (fork.id, True)
    assert states(timed, fork) == {"ocr": "DISPATCHING", "embed": "PENDING", "index": "PENDING"}
    assert scan.submit(COMMAND).id == job.id
    fork.cancel()
    assert (fork.state(), job.state()) == ("CANCELLED", "IN_PROGRESS")
    beside = job.fork(at="embed")
    assert states(timed, beside)["ocr"] == "SUCCEEDED"
    assert check_books(timed) == []
    with pytest.raises(NotFailed):
        job.retry()


def test_a_fork_of_a_fork_has_whole_books_of_its_own(timed, clock, scan):
    job = scan.submit(COMMAND)
    do(timed, "ocr", 1)
    do(timed, "embed", 2)
    do(timed, "index", 3)
    first = job.fork(at="index")
    clock.advance(DAY)
    expire_remote(timed)
    second = redrive(timed, f"{first.id}:index:1")
    do(timed, "index", 4)
    assert (job.result(5), second.result(5), first.state()) == (3, 4, "FAILED_FINAL")
    assert check_books(timed) == []
