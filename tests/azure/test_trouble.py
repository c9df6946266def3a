"""The service is busy, answers are lost, many processes want the same job, and processes are killed."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

from tallystick.clock import SystemClock, VirtualClock
from tallystick.core.lifecycles import JOB, JobState
from tallystick.core.remote.plans import Heard, Hearing
from tallystick.core.remote.requests import AckStep, AnswerStep, CancelProtocol, MarkSent
from tallystick.engine.audit.jobs import audit
from tallystick.errors import StoreBusy, StoreError
from tallystick.store.azure import client
from tallystick.store.azure.store import AzureStore
from tallystick.testing.azurite_server import Azurite
from tallystick.testing.conformance.drafts import FRESH, done
from tallystick.testing.conformance.protocol_runs import OK, RunningProtocol, command
from tests.azure.emulator import fresh_prefix
from tests.azure.proxy import BUSY, LOST, TORN, Proxy, between
from tests.azure.proxy import OK as FINE
from tests.azure.subject import AzureSubject
from tests.azure.worlds import judge, run_out

pytestmark = pytest.mark.slow


@pytest.fixture
def proxy(azurite: Azurite, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    with between(azurite.port) as one:
        monkeypatch.setenv("TALLYSTICK_AZURE_CONNECTION_STRING", azurite.connection(one.port))
        monkeypatch.setattr(client, "_PAUSE_SECONDS", 0.01)
        yield one


@pytest.fixture
def troubled(azurite: Azurite, proxy: Proxy) -> Iterator[AzureSubject]:
    made = AzureSubject(azurite.url(fresh_prefix()))
    yield made
    made.close()


@pytest.mark.parametrize("fate", [BUSY, LOST, TORN])
@pytest.mark.parametrize("every", [2, 3])
def test_a_job_comes_to_its_end_through_a_service_that_is_in_trouble(
    troubled: AzureSubject, proxy: Proxy, fate: str, every: int
):
    proxy.decide = lambda number: fate if number % every == 0 else FINE
    run = RunningProtocol(troubled, 2)
    for _step in range(2):
        run.publish()
        run.ack()
        run.answer()
    proxy.decide = lambda _number: FINE
    assert proxy.troubles > 10
    assert run.states() == ("SUCCEEDED", ["SUCCEEDED", "SUCCEEDED"])
    assert [fact.type for fact in troubled.store.history(run.job_id)].count("result") == 2
    judge(troubled)


@pytest.mark.parametrize("fate", [BUSY, LOST, TORN])
def test_the_tables_are_made_by_a_service_that_is_in_trouble(azurite: Azurite, proxy: Proxy, fate: str):
    proxy.decide = lambda number: fate if number % 2 else FINE
    made = AzureSubject(azurite.url(fresh_prefix()))
    assert proxy.troubles > 3
    RunningProtocol(made)
    made.close()


@pytest.mark.parametrize("create", [True, False])
def test_a_right_that_cannot_sign_is_told_at_once(azurite: Azurite, create: bool):
    wrong = azurite.connection().replace(azurite.key, "no-key-at-all!")
    for _time in range(2):
        with pytest.raises(StoreError, match="AzureSigningError") as refused:
            AzureStore(azurite.url("never"), SystemClock(), create=create, credential=wrong)
        assert not isinstance(refused.value, StoreBusy)
        assert "no-key" not in str(refused.value)


def test_a_service_that_stays_busy_is_told_and_nothing_is_half_done(
    troubled: AzureSubject, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
):
    run = RunningProtocol(troubled)
    fence = run.fence
    monkeypatch.setattr(client, "SENT_MAX", 2)
    proxy.decide = lambda _number: BUSY
    (refused,) = troubled.store.apply([(AckStep(fence),)])
    assert isinstance(refused, StoreBusy)
    proxy.decide = lambda _number: FINE
    assert run.ack().heard is Heard.ACCEPTED
    judge(troubled)


def test_many_processes_at_one_job_are_answered_once(subject: AzureSubject):
    run = RunningProtocol(subject)
    fence, heard, lock = run.fence, list[Hearing](), threading.Lock()
    stores = [subject.open(subject.clock) for _ in range(6)]
    requests = [MarkSent(fence), AckStep(fence), AnswerStep(fence, OK, "next"), CancelProtocol(run.job_id)]

    def storm(number: int, store: AzureStore) -> None:
        for request in requests[number % 4 :] + requests:
            outcome = done(store, request)
            assert isinstance(outcome, Hearing)
            with lock:
                heard.append(outcome)

    threads = [threading.Thread(target=storm, args=each) for each in enumerate(stores)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for store in stores:
        store.close()
    assert len(heard) == sum(len(requests[number % 4 :]) + 4 for number in range(6))
    assert JobState(run.picture.job.state) in JOB.final
    facts = [fact.type for fact in subject.store.history(run.job_id)]
    assert facts.count("result") <= 1
    run_out(subject)
    judge(subject)


WORKER = """
import random, sys
from tallystick.clock import SystemClock
from tallystick.store.azure.store import AzureStore
from tests.azure.test_trouble import trouble

trouble(AzureStore(sys.argv[1], SystemClock()), sys.argv[2].split(","), random.Random(int(sys.argv[3])))
"""


def trouble(store: AzureStore, jobs: list[str], chance: random.Random) -> None:
    """Say to jobs what may be said to them, until killed."""
    from tallystick.core.remote.requests import ExpireStep, StepFence

    while True:
        job_id = chance.choice(jobs)
        picture = store.protocol(job_id)
        active = None if picture is None else picture.active
        if active is None:
            continue
        fence = StepFence(job_id, active.step_id, active.attempt_no, active.lease_id or "")
        request = chance.choice(
            [
                MarkSent(fence),
                AckStep(fence),
                AnswerStep(fence, OK, FRESH.new()),
                ExpireStep(job_id, FRESH.new()),
            ]
        )
        store.apply([(request,)])


@pytest.mark.long
def test_six_processes_at_the_same_jobs_are_killed_and_the_books_are_true(azure_url: str):
    chance, clock = random.Random(1), SystemClock()
    store = AzureStore(azure_url, clock)
    commands = [command(3) for _ in range(60)]
    for outcome in store.apply([(each,) for each in commands]):
        assert isinstance(outcome, Hearing), outcome
    jobs = [each.job_id for each in commands]
    words = [sys.executable, "-c", WORKER, azure_url, ",".join(jobs)]
    crew = [subprocess.Popen([*words, str(number)]) for number in range(6)]
    kills, until = 0, clock.monotonic() + 120
    try:
        while clock.monotonic() < until and len(store.finished(jobs)) < len(jobs):
            victim = chance.randrange(6)
            with suppress(subprocess.TimeoutExpired):
                crew[victim].wait(chance.uniform(0.3, 1.5))
            crew[victim].send_signal(signal.SIGKILL)
            crew[victim].wait()
            kills += 1
            crew[victim] = subprocess.Popen([*words, str(kills + 10)])
    finally:
        for each in crew:
            each.kill()
            each.wait()
    sys.stdout.write(f"{kills} kills, {len(store.finished(jobs))} of {len(jobs)} jobs ended by then\n")
    assert kills > 5
    later = VirtualClock()
    later.advance(clock.wall_ms() + 100_000_000 - later.wall_ms())
    subject = AzureSubject(azure_url)
    subject.clock.advance(later.wall_ms() - subject.clock.wall_ms())
    run_out(subject)
    judge(subject)
    assert {JobState(job.state) for job in subject.jobs()} <= JOB.final
    assert not audit(store).findings
    subject.close()
    store.close()
