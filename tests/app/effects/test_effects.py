"""Effects: intent first, called once under a key, and never guessed."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from tallystick import Key, NotDone, Retry, StepFailed, wait
from tallystick.errors import BadInput, JobFailed, NotResolved, OutsideWorkflow
from tallystick.testing.stepping import LEASE_MS, Death, cancel_overdue, check_books, die, reclaim
from tests.patience import wait_until

TIMEOUT_MS = 2_000
CALL_LEASE_MS = TIMEOUT_MS + 5_000


class Declined(Exception):
    reason: str

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Provider:
    """What is outside: it acts once for each call, and does not know of keys."""

    def __init__(self) -> None:
        self.acted: list[tuple[str, int]] = []
        self.then = lambda: None

    def charge(self, key: str, amount: int) -> str:
        self.acted.append((key, amount))
        self.then()
        return f"receipt {len(self.acted)}"


@pytest.fixture
def provider():
    return Provider()


@pytest.fixture
def shop(timed, provider):
    """A workflow that charges once; what the call does is up to the provider."""

    @timed.effect(key="charge:{order}", timeout="2s", raises=[Declined], retry=Retry(3, first="1ms"))
    def charge(key: Key, order: int, amount: int = 5) -> str:
        return provider.charge(key, amount)

    @timed.step
    def note(text: str) -> str:
        return text

    @timed.workflow
    def order(number: int, amount: int = 5) -> str:
        try:
            return note(charge(number, amount))
        except Declined as declined:
            return f"declined: {declined.reason}"
        except StepFailed as failed:
            return f"{failed.error_code} after {failed.tries}: {failed}"

    order.charge = charge
    return order


def rows(app, query: str) -> list[tuple]:
    with app.connect() as db:
        return [tuple(row) for row in db.execute(query)]


def keys(app) -> list[tuple]:
    return rows(
        app,
        "select key, state, phase, outcome, result, calls, ended_by from effect_keys order by created_at, 1",
    )


def units(app) -> list[tuple]:
    return rows(
        app,
        "select unit, attempt, status, reason from attempts where unit <> '' order by job_id, unit, attempt",
    )


def told(job, name: str) -> list[dict]:
    """What the facts of a job say that have this name."""
    return [msgspec.json.decode(fact.payload) for fact in job.history() if fact.name == name]


def test_a_call_returns_and_is_on_the_books(timed, hand, shop, provider):
    seen = []
    provider.then = lambda: seen.append((keys(timed), units(timed), check_books(timed)))
    job = shop.submit(7)
    assert hand.work() == "EndJob"
    assert job.result(1) == "receipt 1"
    # In the call the intent is durable, and the right to act is exclusive.
    assert seen == [
        (
            [("charge:7", "COMMITTED", "CALLING", None, None, 1, None)],
            [("0/charge#1", 1, "COMMITTED", None)],
            [],
        )
    ]
    assert keys(timed) == [("charge:7", "DONE", "ENDED", "HAPPENED", '"receipt 1"', 1, "call")]
    assert units(timed) == [("0/charge#1", 1, "DONE", None)]
    assert (provider.acted, check_books(timed)) == ([("charge:7", 5)], [])
    (intent,) = told(job, "intent")
    ((args,),) = rows(timed, "select args_hash from effect_keys")
    assert (intent["key"], intent["args"], intent["moves"]) == (
        "charge:7",
        args,
        "LEASED>IN_PROGRESS>COMMITTED",
    )


def test_a_recorded_call_is_not_made_again(timed, hand, provider, shop):
    lives = iter((False, True))

    @timed.workflow
    def twice() -> str:
        first = shop.charge(1)
        if not next(lives):
            die()
        return first

    job = twice.submit()
    assert hand.work() == "died"
    assert hand.expire() == 1
    assert hand.work() == "EndJob"
    assert (job.result(1), len(provider.acted), check_books(timed)) == ("receipt 1", 1, [])


def test_another_job_with_the_same_call_gets_what_was_recorded(timed, hand, shop, provider):
    first, second = shop.submit(7), shop.submit(7)
    assert (hand.work(), hand.work()) == ("EndJob", "EndJob")
    assert (first.result(1), second.result(1)) == ("receipt 1", "receipt 1")
    assert (provider.acted, check_books(timed)) == ([("charge:7", 5)], [])
    assert sorted(status for _unit, _attempt, status, _reason in units(timed)) == ["ABORTED", "DONE"]
    assert "DUPLICATE_COMMIT" in [reason for *_about, reason in units(timed)]


def test_one_key_with_other_arguments_is_a_conflict_that_names_both_hashes(timed, hand, shop, provider):
    shop.submit(7)
    hand.work()
    ((first,),) = rows(timed, "select args_hash from effect_keys")
    other = shop.submit(7, 6)
    assert hand.work() == "EndJob"
    error = other.result(1)
    assert error.startswith("EFFECT_CONFLICT after 1")
    (intent,) = told(other, "intent")
    assert (first in error, intent["args"] in error, first != intent["args"]) == (True, True, True)
    assert (provider.acted, check_books(timed)) == ([("charge:7", 5)], [])


def in_doubt(app, hand, clock) -> None:
    """Let the leases of the job and of its call run out, and the sweep see it."""
    hand.expire()
    reclaim(app)
    while hand.work() != "idle":
        pass
    clock.advance(CALL_LEASE_MS)
    reclaim(app)


def test_an_error_of_the_provider_is_a_refusal_and_frees_the_key(timed, hand, shop, provider):
    def decline() -> None:
        raise Declined("no money")

    provider.then = decline
    job = shop.submit(7)
    assert hand.work() == "EndJob"
    assert job.result(1) == "declined: no money"
    assert [row[:4] for row in keys(timed)] == [("charge:7", "DONE", "ENDED", "REFUSED")]
    provider.then = lambda: None
    again = shop.submit(7)
    hand.work()
    assert (again.result(1), check_books(timed)) == ("receipt 2", [])
    assert [row[3] for row in keys(timed)] == ["REFUSED", "HAPPENED"]


def test_what_was_certainly_not_done_is_called_again_under_the_same_key(timed, hand, shop, provider):
    def busy() -> None:
        if len(provider.acted) < 3:
            provider.acted[-1] = ("nothing", 0)
            raise NotDone("busy")

    provider.then = busy
    job = shop.submit(7)
    assert hand.work() == "EndJob"
    assert (job.result(1), check_books(timed)) == ("receipt 3", [])
    assert keys(timed) == [("charge:7", "DONE", "ENDED", "HAPPENED", '"receipt 3"', 3, "call")]
    assert [fact["try"] for fact in told(job, "try")] == [1, 2]
    leases = [fact["lease"] for fact in told(job, "call")]
    assert len({*leases}) == 2


def test_tries_that_are_spent_leave_the_key_free(timed, hand, shop, provider):
    def busy() -> None:
        raise NotDone("busy")

    provider.then = busy
    job = shop.submit(7)
    assert hand.work() == "EndJob"
    assert job.result(1).startswith("NOT_DONE after 3: charge failed after 3 tries: NotDone: busy")
    assert [(row[3], row[5]) for row in keys(timed)] == [("NOT_DONE", 3)]
    provider.then = lambda: None
    again = shop.submit(7)
    hand.work()
    assert (again.result(1), check_books(timed)) == ("receipt 4", [])


def test_an_error_that_is_declared_safe_is_called_again(timed, hand):
    calls = []

    @timed.effect(key="mail:{to}", retry=Retry(2, first="1ms"), safe_errors=[ConnectionRefusedError])
    def mail(key: Key, to: str) -> int:
        calls.append(to)
        if len(calls) == 1:
            raise ConnectionRefusedError("nobody listens")
        return len(calls)

    @timed.workflow
    def send() -> int:
        return mail("ann")

    job = send.submit()
    assert (hand.work(), job.result(1), check_books(timed)) == ("EndJob", 2, [])


def test_a_long_pause_before_the_next_call_holds_no_worker(timed, hand, clock):
    calls = []

    @timed.effect(key="mail:{to}", retry=Retry(2, first="1m"))
    def mail(key: Key, to: str) -> int:
        calls.append(to)
        if len(calls) == 1:
            raise NotDone("later")
        return len(calls)

    @timed.workflow
    def send() -> int:
        return mail("ann")

    job = send.submit()
    assert hand.work() == "EndAttempt"
    assert (hand.work(), [row[2] for row in keys(timed)], check_books(timed)) == ("idle", ["RESTING"], [])
    clock.advance(60_000)
    assert (hand.work(), job.result(1), check_books(timed)) == ("EndJob", 2, [])


@pytest.mark.parametrize("moment", ["in the call", "an error that says nothing"])
def test_what_nobody_knows_holds_the_job_until_a_person_says_so(timed, hand, shop, provider, clock, moment):
    def vanish() -> None:
        raise Death if moment == "in the call" else OSError("connection reset")

    provider.then = vanish
    job = shop.submit(7)
    hand.work()
    if moment == "in the call":
        in_doubt(timed, hand, clock)
    row = job.row()
    assert (row.hold, row.state, hand.work(), check_books(timed)) == ("IN_DOUBT", "IN_PROGRESS", "idle", [])
    assert ("charge:7" in row.hold_reason, "tally resolve" in row.hold_reason) == (True, True)
    assert "tally resolve" in job.why()
    assert [row[2:4] for row in keys(timed)] == [("IN_DOUBT", None)]
    # Neither time nor sweeps nor a resumption make a guess.
    clock.advance(10 * CALL_LEASE_MS)
    assert reclaim(timed) == 0
    job.resume()
    assert (hand.work(), job.row().hold, len(provider.acted), check_books(timed)) == (
        "Await",
        "IN_DOUBT",
        1,
        [],
    )
    assert job.resolve(happened="receipt 1", by="ann").name == "DONE"
    assert (job.row().hold, check_books(timed)) == (None, [])
    assert (hand.work(), job.result(1), provider.acted) == ("EndJob", "receipt 1", [("charge:7", 5)])
    assert keys(timed) == [("charge:7", "DONE", "ENDED", "HAPPENED", '"receipt 1"', 1, "ann")]
    (answer,) = told(job, "resolve")
    assert (answer["by"], answer["says"]) == ("ann", "HAPPENED")
    assert check_books(timed) == []


def test_a_person_says_that_it_did_not_happen_and_it_is_called_again(timed, hand, shop, provider, clock):
    provider.then = die
    job = shop.submit(7)
    hand.work()
    in_doubt(timed, hand, clock)
    provider.then = lambda: None
    assert job.resolve(did_not_happen=True).name == "AGAIN"
    assert check_books(timed) == []
    assert (hand.work(), job.result(1)) == ("EndJob", "receipt 2")
    assert keys(timed) == [("charge:7", "DONE", "ENDED", "HAPPENED", '"receipt 2"', 2, "call")]
    assert check_books(timed) == []


def test_when_no_tries_are_left_what_did_not_happen_has_failed(timed, hand, provider, clock):
    @timed.effect(key="charge:{order}", timeout="2s")
    def charge(key: Key, order: int) -> str:
        return provider.charge(key, order)

    @timed.workflow
    def order(number: int) -> str:
        return charge(number)

    provider.then = die
    job = order.submit(1)
    hand.work()
    in_doubt(timed, hand, clock)
    assert job.resolve(did_not_happen=True).name == "DONE"
    assert hand.work() == "EndJob"
    with pytest.raises(JobFailed, match="was not done"):
        job.result(1)
    assert [row[3] for row in keys(timed)] == ["NOT_DONE"]
    assert check_books(timed) == []


def test_a_person_has_it_called_again_whatever_happened(timed, hand, provider, clock):
    @timed.effect(key="charge:{order}", timeout="2s")
    def charge(key: Key, order: int) -> str:
        return provider.charge(key, order)

    @timed.workflow
    def order(number: int) -> str:
        return charge(number)

    provider.then = die
    job = order.submit(1)
    hand.work()
    in_doubt(timed, hand, clock)
    provider.then = lambda: None
    assert job.resolve(retry=True).name == "AGAIN"
    assert (hand.work(), job.result(1), check_books(timed)) == ("EndJob", "receipt 2", [])


def test_nobody_answers_while_a_holder_may_be_at_it(timed, hand, shop, provider, clock):
    refused = []

    def ask() -> None:
        with pytest.raises(NotResolved) as error:
            job.resolve(happened="x")
        refused.append(error.value.message)

    provider.then = ask
    job = shop.submit(7)
    assert hand.work() == "EndJob"
    assert refused == [f"job {job.id}: a worker may be at it right now: try again when its time is over"]
    with pytest.raises(NotResolved, match="no effect of this job is in doubt"):
        job.resolve(did_not_happen=True)
    for bad in ({}, {"happened": 1, "retry": True}):
        with pytest.raises(BadInput, match="say one thing"):
            job.resolve(**bad)
    assert check_books(timed) == []


def test_several_in_doubt_are_answered_one_by_one_and_the_hold_goes_with_the_last(timed, hand, clock):
    @timed.effect(key="{what}", timeout="2s")
    async def act(key: Key, what: str) -> str:
        die()

    @timed.workflow
    async def both() -> list[str]:
        return list(await asyncio.gather(act("a"), act("b")))

    job = both.submit()
    assert hand.work() == "died"
    in_doubt(timed, hand, clock)
    phases = {row[0]: row[2] for row in keys(timed)}
    assert set(phases.values()) == {"IN_DOUBT"}
    assert job.row().hold == "IN_DOUBT"
    if len(phases) == 2:
        with pytest.raises(NotResolved, match="say which one"):
            job.resolve(happened="x")
        job.resolve(happened="1", key="a")
        assert job.row().hold == "IN_DOUBT"
        job.resolve(happened="2", effect="act#2")
    else:
        job.resolve(happened="1", key="a")
    assert (job.row().hold, check_books(timed)) == (None, [])


def test_an_async_effect_in_an_async_workflow(timed, hand, provider):
    @timed.effect(key="charge:{order}", timeout="2s")
    async def charge(key: Key, order: int) -> str:
        await asyncio.sleep(0)
        return provider.charge(key, order)

    @timed.effect(key="mail:{order}")
    def mail(key: Key, order: int) -> str:
        return provider.charge(key, order)

    @timed.workflow
    async def order(number: int) -> list[str]:
        return [await charge(number), await mail.aio(number)]

    job = order.submit(3)
    assert (hand.work(), job.result(1)) == ("EndJob", ["receipt 1", "receipt 2"])
    assert (provider.acted, check_books(timed)) == ([("charge:3", 3), ("mail:3", 3)], [])


def test_a_call_that_takes_too_long_is_in_doubt(timed, hand):
    @timed.effect(key="slow:{n}", timeout="20ms")
    async def slow(key: Key, n: int) -> int:
        await asyncio.sleep(5)
        return n

    @timed.workflow
    async def flow() -> int:
        return await slow(1)

    job = flow.submit()
    hand.work()
    assert (job.row().hold, check_books(timed)) == ("IN_DOUBT", [])
    assert "longer than 20 ms" in job.row().hold_reason


def test_before_and_after_a_wait(timed, hand, shop, provider):
    @timed.workflow
    def around() -> list[str]:
        first = shop.charge(1)
        wait("go", bool)
        return [first, shop.charge(2)]

    job = around.submit()
    assert hand.work() == "Await"
    assert check_books(timed) == []
    job.send("go", True)
    assert (hand.work(), job.result(1), check_books(timed)) == ("EndJob", ["receipt 1", "receipt 2"], [])


def test_a_fork_gets_what_was_recorded_under_the_key(timed, hand, shop, provider):
    job = shop.submit(7)
    hand.work()
    fork = job.fork(at="charge")
    assert (hand.work(), fork.result(1), len(provider.acted)) == ("EndJob", "receipt 1", 1)
    assert check_books(timed) == []


def test_a_cancelled_job_ends_when_it_is_known_what_came_of_its_effect(timed, hand, shop, provider, clock):
    provider.then = die
    job = shop.submit(7)
    hand.work()
    in_doubt(timed, hand, clock)
    assert job.cancel() == "CANCELLING"
    assert (job.row().state, check_books(timed)) == ("CANCELLING", [])
    clock.advance(LEASE_MS)
    cancel_overdue(timed)
    assert (job.row().state, len(provider.acted), check_books(timed)) == ("CANCELLING", 1, [])
    job.resolve(happened="receipt 1", by="ann")
    cancel_overdue(timed)
    assert (job.row().state, check_books(timed)) == ("CANCELLED", [])
    assert keys(timed) == [("charge:7", "DONE", "ENDED", "HAPPENED", '"receipt 1"', 1, "ann")]


def test_what_never_happened_ends_with_a_cancelled_job(timed, hand, clock):
    @timed.effect(key="mail:{to}", retry=Retry(2, first="1m"))
    def mail(key: Key, to: str) -> int:
        raise NotDone("later")

    @timed.workflow
    def send() -> int:
        return mail("ann")

    job = send.submit()
    hand.work()
    assert job.cancel() == "CANCELLED"
    assert [row[2:4] for row in keys(timed)] == [("ENDED", "NOT_DONE")]
    assert check_books(timed) == []


def test_a_cancelled_job_ends_when_none_of_its_effects_has_happened(app):
    @app.effect(key="cut:{n}")
    async def cut(key: Key, n: int) -> int:
        raise ConnectionResetError("cut")

    @app.effect(key="busy:{n}", retry=Retry(2, first="1h"))
    async def busy(key: Key, n: int) -> int:
        raise NotDone("busy")

    @app.workflow
    async def both() -> list[int]:
        return await asyncio.gather(busy(1), cut(1))

    with app.worker():
        job = both.submit()
        wait_until(lambda: sorted(row[2] for row in keys(app)) == ["IN_DOUBT", "RESTING"], "one is in doubt")
    assert job.cancel() == "CANCELLING"
    job.resolve(did_not_happen=True, by="ann")
    cancel_overdue(app)
    assert (job.row().state, check_books(app)) == ("CANCELLED", [])
    assert [row[2:4] for row in keys(app)] == 2 * [("ENDED", "NOT_DONE")]


def test_declarations_that_cannot_work_are_refused(timed):
    with pytest.raises(BadInput, match="takes no key"):

        @timed.effect(key="a")
        def nothing() -> None: ...

    with pytest.raises(BadInput, match="names order, and it takes number"):

        @timed.effect(key="charge:{order}")
        def charge(key: Key, number: int) -> None: ...

    with pytest.raises(BadInput, match="every call of fixed would have the key"):

        @timed.effect(key="same")
        def fixed(key: Key, number: int) -> None: ...


def test_outside_a_workflow_there_is_no_key(shop):
    with pytest.raises(OutsideWorkflow, match="needs the key that a workflow gives it"):
        shop.charge(1)
    assert shop.charge.fn(Key("k"), 1, 2) == "receipt 1"
