"""The books of jobs that wait can be checked again, and replay gives what the first run gave."""

from __future__ import annotations

from tallystick.app.children import gather
from tallystick.app.waits import sleep_sync, wait_sync
from tallystick.testing.conformance.drafts import check_chain


def run_all(hand):
    while hand.work() != "idle":
        continue


def test_the_chain_of_a_job_that_waited_and_joined_can_be_computed_again(timed, hand, clock):
    @timed.workflow
    def child(n: int) -> int:
        return n

    @timed.workflow
    def parent() -> int:
        wait_sync("go", bool, timeout="1h")
        sleep_sync("1m")
        return sum(gather(child.child(1), child.child(2)))

    job = parent.submit()
    hand.work()
    clock.advance(1_000)
    job.send("go", True)
    hand.work()
    clock.advance(60_000)
    run_all(hand)
    assert job.result(5) == 3
    check_chain(timed.runtime().store.history(job.id))
