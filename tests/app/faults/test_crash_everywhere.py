"""`crash_everywhere`, as users have it: what survives every kill, and what it finds in what does not."""

from __future__ import annotations

import os
from contextlib import ExitStack

import pytest

from tallystick import Happened, Key, Retry, Tally, Tx, aio, gather, sleep, wait
from tallystick.errors import BadInput, Misuse
from tallystick.testing import CrashReport, CrashTrial, crash_everywhere, note
from tests.postgres.databases import SCHEMA, lent_database

pytestmark = pytest.mark.timeout(240)


@pytest.fixture
def shop() -> Tally:
    """A Tally that nothing was done with yet: its address is never opened."""
    return Tally("sqlite:////nowhere/at/all.db")


def tables(app: Tally) -> None:
    with app.transaction() as db:
        db.execute("create table payments (cents integer)")


def payments(app: Tally) -> list[tuple[object, ...]]:
    with app.connect() as db:
        return list(db.execute("select cents from payments"))


def places(report: CrashReport, kind: str) -> list[int]:
    """Return the numbers of the commits of a kind at which it was killed."""
    return [int(place.partition(":")[2]) for (place,) in report.places if place.startswith(f"{kind}:")]


def make_checkout(app: Tally):
    @app.step(retry=Retry(3, first="3s"))
    def quote(order: int) -> int:
        note("quoted")
        return 995 + order

    @app.tx
    def pay(db: Tx, cents: int) -> None:
        db.execute("insert into payments values (:cents)", {"cents": cents})

    @app.workflow
    def checkout(order: int) -> int:
        cents = quote(order)
        pay(cents)
        return cents

    return checkout


def test_a_workflow_is_killed_before_and_after_every_commit_and_pays_once(shop):
    def check(trial: CrashTrial) -> None:
        assert payments(shop) == [(1037,)]
        assert trial.job.result() == 1037
        assert trial.notes in (["quoted"], ["quoted", "quoted"])

    report = crash_everywhere(make_checkout(shop), 42, prepare=lambda: tables(shop), check=check)
    before, after = (places(report, f"sqlite.commit.{side}") for side in ("before", "after"))
    # The claim, the step, the transaction, and the return.
    assert before == after == [1, 2, 3, 4]
    assert report.kills == 8
    assert str(report) == "checkout: 8 kills in 8 trials, all survived"


@pytest.mark.slow
def test_so_it_is_on_a_server(shop, server):
    with ExitStack() as stack:

        def fresh() -> str:
            database = stack.enter_context(lent_database(server))
            return server.url(database=database, schema=SCHEMA, options=f"-c%20search_path%3D{SCHEMA}")

        def check(_trial: CrashTrial) -> None:
            assert payments(shop) == [(1037,)]

        report = crash_everywhere(
            make_checkout(shop), 42, prepare=lambda: tables(shop), check=check, fresh=fresh
        )
    assert places(report, "postgres.tx_commit.before") == places(report, "postgres.tx_commit.after") == [1]
    assert len(places(report, "postgres.commit.before")) >= 3


@pytest.mark.slow
def test_waits_sleeps_pauses_and_children_take_no_time(shop):
    tries = []

    @shop.step(retry=Retry(3, first="4s"))
    def flaky() -> str:
        tries.append(1)
        note("tried")
        if len(tries) == 1:
            raise ValueError("not yet")
        return "done"

    @shop.workflow
    def leaf(number: int) -> int:
        return number

    @shop.workflow
    def long() -> list[object]:
        answer = wait("approve", bool, timeout="7d")
        late = wait("never", bool, timeout="30d")
        sleep("90d")
        return [answer, late, flaky(), *gather(leaf.child(1), leaf.child(2))]

    def check(trial: CrashTrial) -> None:
        assert trial.job.result() == [True, None, "done", 1, 2]

    report = crash_everywhere(long, signals=[("approve", True)], check=check)
    assert report.kills >= 20


def test_a_step_that_pays_by_itself_is_found_out(shop):
    @shop.step
    def pay() -> None:
        with shop.transaction() as db:
            db.execute("insert into payments values (5)")

    @shop.workflow
    def careless() -> None:
        pay()

    def check(_trial: CrashTrial) -> None:
        assert payments(shop) == [(5,)]

    with pytest.raises(AssertionError) as found:
        crash_everywhere(careless, prepare=lambda: tables(shop), check=check)
    text = str(found.value)
    # Durable, and the worker died before the step was recorded: by its own commit, and by that of the record.
    assert text.startswith("careless: 2 of ")
    assert "killed at sqlite.transaction.after:1: " in text
    assert "killed at sqlite.commit.before:2: " in text
    assert "in check" in text


@pytest.mark.slow
def test_another_result_or_another_end_is_found_out(shop, tmp_path):
    asked = tmp_path / "asked"

    @shop.step
    def number() -> int:
        with asked.open("a") as file:
            file.write(".")
        return len(asked.read_text())

    @shop.workflow
    def counting() -> int:
        return number()

    @shop.workflow(attempts=1)
    def impatient() -> int:
        return 1

    with pytest.raises(
        AssertionError, match=r"killed at sqlite\.commit\.before:1: it ended with 2, not with 1"
    ):
        crash_everywhere(counting)
    assert crash_everywhere(counting, same_result=False).kills == 6
    with pytest.raises(AssertionError, match=r"the job is FAILED_FINAL, not SUCCEEDED: .*ATTEMPTS_SPENT"):
        crash_everywhere(impatient)


@pytest.mark.slow
def test_the_worker_that_takes_over_is_killed_too(shop):
    @shop.workflow
    def plain() -> int:
        return 7

    once = crash_everywhere(plain)
    twice = crash_everywhere(plain, deaths=2)
    assert [each for each in twice.places if len(each) == 1] == list(once.places)
    assert len(twice.places) > 3 * len(once.places)
    assert twice.kills == sum(map(len, twice.places))


@pytest.mark.slow
def test_async_workflows_and_effects_with_a_probe(shop):
    @shop.effect(key="charge:{order}", probe=lambda _key, order: Happened(f"receipt {order}"), timeout="2s")
    async def charge(key: Key, order: int) -> str:
        note("charged")
        return f"receipt {order}"

    @shop.workflow
    async def order(number: int) -> str:
        await aio.sleep("1h")
        return await charge(number)

    def check(trial: CrashTrial) -> None:
        assert trial.notes in (["charged"], [])
        assert len(trial.killed_at) <= 1

    assert crash_everywhere(order, 7, check=check).kills >= 8


@pytest.mark.slow
def test_an_effect_that_cannot_be_probed_asks_a_person_where_that_is_allowed(shop):
    @shop.effect(key="mail:{order}", timeout="2s")
    def mail(key: Key, order: int) -> str:
        note("sent")
        return "sent"

    @shop.workflow
    def letter(order: int) -> str:
        return mail(order)

    with pytest.raises(AssertionError, match="held"):
        crash_everywhere(letter, 7)

    def check(trial: CrashTrial) -> None:
        assert trial.notes.count("sent") <= 1

    assert crash_everywhere(letter, 7, check=check, may_ask=True).kills >= 6


def test_what_goes_wrong_without_a_crash_is_said_first(shop):
    @shop.workflow
    def waits() -> bool | None:
        return wait("approve", bool)

    with pytest.raises(
        AssertionError, match="waits went wrong without any crash: the job does not end: it has waited"
    ):
        crash_everywhere(waits)
    with pytest.raises(BadInput, match="deaths is 1 or 2, not 3"):
        crash_everywhere(waits, deaths=3)
    with pytest.raises(BadInput, match="is for SQLite and PostgreSQL, not for azure"):
        crash_everywhere(waits, fresh=lambda: "azure://account/prefix")


def test_a_process_that_hangs_is_ended_and_named(shop):
    @shop.step
    def hangs() -> None:
        os.read(os.pipe()[0], 1)  # nothing ever comes

    @shop.workflow
    def stuck() -> None:
        hangs()

    with pytest.raises(AssertionError, match=r"stuck went wrong without any crash: .* did not end in 1 s"):
        crash_everywhere(stuck, seconds=1)


def test_an_app_in_use_is_refused(tmp_path):
    app = Tally(f"sqlite:///{tmp_path / 'used.db'}")

    @app.workflow
    def flow() -> None:
        return None

    flow.submit()
    with pytest.raises(Misuse, match="close it"):
        crash_everywhere(flow)
    app.close()
    note("outside of a trial nothing happens")
