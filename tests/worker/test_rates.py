"""A worker keeps the rate of a queue: it looks when the next token is there, and begins no job before."""

from __future__ import annotations

import sys
from itertools import pairwise
from types import SimpleNamespace

import pytest

from tallystick import Tally
from tallystick.clock import VirtualClock
from tallystick.worker.options import WorkerOptions
from tallystick.worker.roles.look import LookForWork

PER_SECOND, EACH_MS = 20, 50
JOBS = 40
TRIES = 4


def instants_of_claims(app: Tally, queue: str, number: int = JOBS) -> list[int]:
    """Return when jobs of a queue with a rate were claimed, by the store's clock; forty take two seconds."""
    app.queue(queue, rate=f"{PER_SECOND}/1s")

    @app.workflow(queue=queue, name=queue)
    def mail(n: int) -> int:
        return n

    jobs = mail.submit_many([(n,) for n in range(number)])
    with app.worker(queues=[queue], concurrency=16):
        for job in jobs:
            job.result(timeout=300)
    with app.transaction() as db:
        rows = db.execute("select a.started_at from attempts a join jobs j on j.job_id = a.job_id")
        return sorted(at for (at,) in rows)[-len(jobs) :]


@pytest.mark.slow
def test_a_worker_keeps_a_rate_and_never_exceeds_it(app, url):
    """On a machine that has other work one try may be slow."""
    # PostgreSQL notes the instant of a claim in a later statement than the one that looks at the bucket.
    late_ms, kept = 0 if url.startswith("sqlite") else 250, list[float]()
    for n in range(TRIES):
        claims = instants_of_claims(app, f"emails-{n}")
        assert all(at - claims[0] >= count * EACH_MS - late_ms for count, at in enumerate(claims))
        kept.append((JOBS - 1) * EACH_MS / (claims[-1] - claims[0]))
        if kept[-1] >= 0.85:
            return
    pytest.fail(f"of its rate a worker keeps {max(kept):.0%} at best")


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_over_a_minute_and_a_half_a_worker_keeps_its_rate_within_two_percent(app):
    """With a burst of one; the machine may have other work, and then one try may be slow."""
    kept = list[float]()
    for n in range(TRIES):
        claims = instants_of_claims(app, f"long-{n}", 1_800)
        assert all(at - claims[0] >= count * EACH_MS for count, at in enumerate(claims))
        assert min(after - before for before, after in pairwise(claims)) >= EACH_MS // 2
        kept.append((len(claims) - 1) * EACH_MS / (claims[-1] - claims[0]))
        sys.stdout.write(f"{kept[-1]:.2%} of {PER_SECOND}/1s in {(claims[-1] - claims[0]) / 1000:.0f} s\n")
        if kept[-1] >= 0.98:
            return
    pytest.fail(f"of its rate a worker keeps {max(kept):.1%} at best")


def test_a_token_that_comes_while_a_claim_is_on_its_way_is_claimed_at_once():
    """The claim was a moment too early. The instant of the next token is asked for when it is answered."""
    worker = Watched()
    look = LookForWork(worker, retry=0.5)
    look.run()
    worker.idle = False
    worker.clock.advance(2)
    look.run()
    assert (worker.pokes, worker.asked) == (1, []), "the claim is on its way"
    assert look.rest < 0.01
    worker.idle, worker.rest = True, 0
    look.run()
    look.run()
    assert (worker.pokes, worker.asked) == (2, [3])
    worker.rest = 50
    look.run()
    look.run()
    assert (worker.pokes, worker.asked) == (2, [3, 1])
    assert 0.003 < look.rest <= 0.05
    worker.clock.advance(50)
    look.run()
    assert worker.pokes == 3, "the token is there"


class Watched(SimpleNamespace):
    """A worker of one queue with a rate that counts its looks, and the queues of its store."""

    def __init__(self) -> None:
        super().__init__(
            clock=VirtualClock(),
            options=WorkerOptions(queues=("emails",)),
            idle=True,
            running={},
            claim_failed=False,
            limited=frozenset(),
        )
        self.store, self.pokes, self.rest, self.asked = Books(self), 0, 50, list[int]()

    def poke(self) -> None:
        self.pokes += 1


class Books:
    """What a look asks of a store, for a worker that says how long its queue rests."""

    def __init__(self, worker: Watched) -> None:
        self._worker = worker
        self.queues = self.queue = self.taken_slots = self.pulse

    def pulse(self) -> int:
        return 1

    def next_due(self, _queues: object, _after: int) -> None:
        return None

    def limited(self) -> list[str]:
        return ["emails"]

    def rest_of(self, _names: object, *, asked_ms: int) -> int:
        self._worker.asked.append(asked_ms)
        return self._worker.rest
