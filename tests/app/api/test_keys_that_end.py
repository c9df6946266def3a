"""Keys that end with their job: reuse, unique, debounce, replace, and a signal that starts one."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress

import pytest

from tallystick import Tally, wait
from tallystick.errors import BadInput, IdempotencyConflict, InvariantBroken, JobFailed, KeyInUse, Misuse
from tallystick.testing.stepping import check_books, open_store


@pytest.fixture
def mail(timed):
    @timed.workflow
    def mail(name: str) -> str:
        if name == "bad":
            raise ValueError(name)
        return name

    return mail


@pytest.fixture
def waiting(timed):
    @timed.workflow
    def waiting(name: str) -> str:
        return name + wait("go", str)

    return waiting


def kinds_of_facts(app: Tally, job_id: str) -> list[str]:
    return [event.name for event in app.job(job_id).history()]


def test_a_key_makes_a_new_job_when_its_job_has_ended(timed, hand, mail):
    keyed = mail.opts(idempotency_key="k", reuse="after_end")
    first = keyed.submit("a")
    assert not keyed.submit("a").created
    with pytest.raises(IdempotencyConflict):
        keyed.submit("b")
    hand.work_all()
    second = keyed.submit("b")
    assert second.created
    assert second.id != first.id
    hand.work_all()
    third = keyed.submit("b")
    hand.work_all()
    assert [job.result() for job in (first, second, third)] == ["a", "b", "b"]
    assert check_books(timed) == []


def test_after_success_a_job_that_failed_keeps_its_key(timed, hand, mail):
    keyed = mail.opts(idempotency_key="k", reuse="after_success")
    first = keyed.submit("bad")
    hand.work_all()
    again = keyed.submit("bad")
    assert (again.id, again.created) == (first.id, False)
    with pytest.raises(JobFailed):
        again.result()
    other = mail.opts(idempotency_key="good", reuse="after_success")
    before = other.submit("a")
    hand.work_all()
    assert other.submit("a").id != before.id


def test_while_a_job_is_active_a_second_submission_is_that_job(timed, hand, waiting):
    unique = waiting.opts(idempotency_key="k", unique="while_active")
    first = unique.submit("a")
    hand.work_all()
    second = unique.submit("b")
    assert (second.id, second.created) == (first.id, False)
    by_content = waiting.opts(unique="while_active")
    assert by_content.submit("c").id == by_content.submit("c").id
    assert by_content.submit("c").id != by_content.submit("d").id
    first.send("go", "!")
    hand.work_all()
    assert first.result() == "a!"
    assert unique.submit("b").created
    assert check_books(timed) == []


def test_of_debounced_submissions_the_newest_arguments_win_when_it_is_quiet(timed, clock, hand, mail):
    calm = mail.opts(idempotency_key="k", debounce="30s", max_wait="70s")
    first = calm.submit("a")
    for name in "bc":
        clock.advance(20_000)
        again = calm.submit(name)
        assert (again.id, again.created) == (first.id, False)
        assert hand.work() == "idle"
    clock.advance(20_000)
    assert calm.submit("d").id == first.id
    clock.advance(10_000)
    assert hand.work() == "EndJob"
    assert first.result() == "d"
    later = calm.submit("e")
    assert later.created
    clock.advance(30_000)
    hand.work_all()
    assert later.result() == "e"
    assert check_books(timed) == []


def test_a_debounced_job_that_has_waited_long_enough_keeps_its_place_in_a_queue_that_is_late(
    timed, clock, hand
):
    order = []

    @timed.workflow(queue="emails")
    def mail(name: str) -> None:
        order.append(name)

    timed.queue("emails", rate="1/1h", order="fifo")
    timed.declare_queues()
    hand.queues = ("emails",)
    mail.submit("first")
    hand.work_all()
    calm = mail.opts(idempotency_key="k", debounce="30s", max_wait="1m")
    job = calm.submit("a")
    clock.advance(70_000)
    mail.submit("other")
    for name in "bc":
        clock.advance(10_000)
        assert calm.submit(name).id == job.id
    assert check_books(timed) == []
    clock.advance(3_600_000)
    hand.work_all()
    assert order == ["first", "c"]
    assert check_books(timed) == []


def test_arguments_are_replaced_only_before_the_first_claim(timed, hand, waiting):
    held = waiting.opts(idempotency_key="k", replace=True)
    first = held.submit("a")
    assert held.submit("b").id == first.id
    assert kinds_of_facts(timed, first.id) == ["submit", "replace"]
    assert hand.work() == "Await"
    with pytest.raises(KeyInUse, match="can be replaced only before it is claimed"):
        held.submit("c")
    first.send("go", "!")
    hand.work_all()
    assert first.result() == "b!"
    with pytest.raises(KeyInUse):
        held.submit("c")
    assert check_books(timed) == []


def test_a_plain_submission_meets_the_arguments_that_have_replaced_the_first(timed, hand, mail):
    first = mail.opts(idempotency_key="k", replace=True).submit("a")
    mail.opts(idempotency_key="k", replace=True).submit("b")
    assert mail.opts(idempotency_key="k").submit("b").id == first.id
    with pytest.raises(IdempotencyConflict):
        mail.opts(idempotency_key="k").submit("a")


def test_what_was_replaced_is_missed_if_somebody_changes_it(timed, mail):
    mail.opts(idempotency_key="k", replace=True).submit("a")
    mail.opts(idempotency_key="k", replace=True).submit("b")
    assert check_books(timed) == []
    with timed.transaction() as db:
        db.execute("update jobs set payload = replace(payload, 'b', 'x')")
    assert {finding.check for finding in check_books(timed)} == {"birth", "content"}


def test_a_signal_goes_to_the_active_job_or_starts_one(timed, hand, waiting):
    keyed = waiting.opts(idempotency_key="k")
    first = keyed.send_or_start("go", "1", "a")
    assert first.created
    hand.work_all()
    assert first.result() == "a1"
    second = asyncio.run(keyed.send_or_start_aio("other", "x", "b"))
    assert second.created
    hand.work_all()
    third = keyed.send_or_start("go", "2", "c")
    assert (third.id, third.created) == (second.id, False)
    hand.work_all()
    assert second.result() == "b2"
    assert check_books(timed) == []


RULES = {
    "never": {"reuse": "never"},
    "after_end": {"reuse": "after_end"},
    "after_success": {"reuse": "after_success"},
    "unique": {"unique": "while_active"},
    "debounce": {"debounce": "30s"},
    "replace": {"replace": True},
}


@pytest.mark.parametrize("has_ended", [False, True], ids=["active", "ended"])
@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_a_key_of_another_workflow_is_a_conflict_under_every_rule(timed, clock, hand, mail, rule, has_ended):
    @timed.workflow
    def letter(name: str) -> str:
        return f"letter to {name}"

    first = mail.opts(idempotency_key="k", **rule).submit("a")
    if has_ended:
        clock.advance(30_000)
        hand.work_all()
    with pytest.raises(
        IdempotencyConflict, match=r"workflow mail\b.* for letter use another key"
    ) as conflict:
        letter.opts(idempotency_key="k", **rule).submit("a")
    assert conflict.value.fields["job_id"] == first.id
    assert "replace" not in kinds_of_facts(timed, first.id)
    clock.advance(30_000)
    hand.work_all()
    assert first.result() == "a"
    assert check_books(timed) == []


def test_a_signal_does_not_go_to_the_job_of_another_workflow(timed, hand, mail, waiting):
    first = waiting.opts(idempotency_key="k").submit("a")
    hand.work_all()
    with pytest.raises(IdempotencyConflict, match="mail use another key"):
        mail.opts(idempotency_key="k").send_or_start("go", "1", "a")
    with pytest.raises(IdempotencyConflict, match="workflow waiting"):
        asyncio.run(mail.opts(idempotency_key="k").send_or_start_aio("go", "1", "a"))
    hand.work_all()
    assert "signal" not in kinds_of_facts(timed, first.id)
    assert check_books(timed) == []


def test_in_a_transaction_a_key_of_another_workflow_is_a_conflict_too(timed, hand, mail, waiting):
    first = waiting.opts(idempotency_key="k").submit("a")
    with timed.transaction() as db, pytest.raises(IdempotencyConflict, match="workflow waiting"):
        mail.opts(idempotency_key="k", unique="while_active", within=db).submit("a")
    assert [job.id for job in timed.jobs()] == [first.id]


def test_async_submissions_know_the_same_rules(timed, hand, mail):
    async def main() -> tuple[str, str]:
        keyed = mail.opts(idempotency_key="k", replace=True)
        return (await keyed.submit_aio("a")).id, (await keyed.submit_aio("b")).id

    first, second = asyncio.run(main())
    assert first == second
    hand.work_all()
    assert timed.job(first).result() == "b"


def test_in_a_transaction_a_key_changes_hands_with_the_rest_of_it(timed, hand, mail):
    mail.opts(idempotency_key="k", reuse="after_end").submit("a")
    hand.work_all()
    with suppress(ZeroDivisionError), timed.transaction() as db:
        mail.opts(idempotency_key="k", reuse="after_end", within=db).submit("b")
        raise ZeroDivisionError
    with timed.transaction() as db:
        job = mail.opts(idempotency_key="k", reuse="after_end", within=db).submit("c")
    hand.work_all()
    assert job.result() == "c"
    assert check_books(timed) == []


@pytest.mark.parametrize(
    "options",
    [
        {"reuse": "sometimes"},
        {"unique": "always"},
        {"debounce": "30s"},
        {"replace": True},
        {"idempotency_key": "k", "debounce": "30s", "max_wait": "10s"},
        {"idempotency_key": "k", "debounce": 0},
        {"idempotency_key": "k", "max_wait": "10s"},
        {"idempotency_key": "k", "replace": True, "unique": "while_active"},
    ],
)
def test_rules_that_make_no_sense_are_refused(mail, options):
    with pytest.raises(BadInput):
        mail.opts(**options)


def test_rules_are_for_single_submissions_outside_of_workflows(timed, hand, mail):
    with pytest.raises(BadInput):
        mail.opts(unique="while_active").submit_many([("a",)])
    with pytest.raises(BadInput):
        mail.send_or_start("go", 1, "a")

    @timed.workflow
    def outer() -> str:
        try:
            return mail.opts(detached=True, unique="while_active").submit("a").id
        except Misuse as refused:
            return refused.code

    job = outer.submit()
    hand.work_all()
    assert job.result() == "MISUSE"


def test_of_many_threads_that_submit_one_key_one_makes_the_job(url):
    def submit(app: Tally, made: list[bool], start: threading.Barrier) -> None:
        @app.workflow
        def once(name: str) -> str:
            return name

        start.wait()
        unique = [once.opts(idempotency_key=f"k{n}", unique="while_active") for n in range(20)]
        made.extend(workflow.submit("a").created for workflow in unique)

    apps, made, start = [Tally(url) for _ in range(3)], list[bool](), threading.Barrier(3)
    open_store(apps[0])
    threads = [threading.Thread(target=submit, args=(app, made, start)) for app in apps]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made.count(True) == 20
    assert len(made) == 60
    assert check_books(apps[0]) == []
    for app in apps:
        app.close()


def test_a_key_of_a_job_that_is_not_there_is_an_error_and_no_endless_search(timed, mail):
    job = mail.opts(idempotency_key="k", reuse="after_end").submit("a")
    with timed.transaction() as db:
        db.execute("update idempotency set job_id = 'gone'")
    with pytest.raises(InvariantBroken, match="belongs to job gone, which is not in the store"):
        mail.opts(idempotency_key="k", reuse="after_end").submit("b")
    assert job.created
