"""Queues whose jobs keep their slots while they wait, on both stores."""

from __future__ import annotations

from tallystick import wait
from tallystick.errors import SlotsAreHeld


def test_a_queue_with_held_slots_keeps_them_while_its_jobs_wait(timed, hand):
    @timed.workflow(queue="emails")
    def mail(name: str) -> str:
        return name + wait("go", str)

    timed.queue("emails", concurrency=1, hold_slots=True)
    timed.declare_queues()
    hand.queues = ("emails",)
    first, second = mail.submit("a"), mail.submit("b")
    assert [hand.work(), hand.work()] == ["Await", "idle"]
    assert timed.queues.get("emails").running == 1
    first.send("go", "1")
    assert [hand.work(), hand.work()] == ["EndJob", "Await"]
    second.send("go", "2")
    hand.work_all()
    assert (first.result(), second.result()) == ("a1", "b2")


def test_slots_that_are_held_no_longer_are_free_while_their_jobs_wait(timed, hand):
    @timed.workflow(queue="emails")
    def mail() -> str:
        return wait("go", str)

    timed.queue("emails", concurrency=1, hold_slots=True)
    timed.declare_queues()
    hand.queues = ("emails",)
    first, second = mail.submit(), mail.submit()
    assert [hand.work(), hand.work()] == ["Await", "idle"]
    timed.queues.set("emails", hold_slots=False)
    assert timed.queues.get("emails").running == 0
    first.send("go", "1")
    assert [hand.work(), hand.work()] == ["EndJob", "Await"]
    second.send("go", "2")
    hand.work_all()
    assert (first.result(), second.result()) == ("1", "2")


def test_a_job_that_runs_when_its_queue_begins_to_hold_slots_keeps_its_own(timed, hand):
    @timed.workflow(queue="emails")
    def mail() -> str:
        return wait("go", str)

    timed.queue("emails", concurrency=1)
    timed.declare_queues()
    hand.queues = ("emails",)
    first = mail.submit()
    mail.submit()
    running = hand.claim()
    timed.queues.set("emails", hold_slots=True)
    assert [hand.run(running), hand.work()] == ["Await", "idle"]
    first.send("go", "1")
    assert [hand.work(), hand.work()] == ["EndJob", "Await"]


def test_a_child_cannot_wait_for_the_slot_that_its_parent_holds(timed, hand):
    @timed.workflow(queue="emails")
    def child() -> int:
        return 1

    @timed.workflow(queue="emails")
    def parent() -> str:
        try:
            return str(child.child().result())
        except SlotsAreHeld as refused:
            return refused.code

    timed.queue("emails", concurrency=1, hold_slots=True)
    timed.declare_queues()
    hand.queues = ("emails",)
    job = parent.submit()
    hand.work_all()
    assert job.result() == "SLOTS_ARE_HELD"
