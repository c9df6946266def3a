"""Remote steps in workflows: what a service returns or fails with comes back as from a step."""

from __future__ import annotations

import msgspec
import pytest

from tallystick import Retry, StepFailed, gather
from tallystick.errors import BadInput, JobFailed, OutsideWorkflow
from tallystick.testing.remote_hand import Heard, RemoteHand, expire_remote
from tallystick.testing.stepping import check_books

MINUTE = 60_000


class Parcel(msgspec.Struct):
    sku: str
    boxes: int


class OutOfStock(Exception):
    sku: str
    left: int

    def __init__(self, sku: str, left: int) -> None:
        super().__init__(sku, left)
        self.sku, self.left = sku, left


@pytest.fixture
def shop(timed):
    """A workflow with one remote step between two of its own."""
    made = []

    @timed.step
    def note(what: str) -> None:
        made.append(what)

    @timed.remote("warehouse", raises=[OutOfStock])
    def pick(order: int, sku: str = "a-1") -> Parcel:
        raise NotImplementedError

    @timed.workflow
    def order(number: int) -> str:
        note(f"before {number}")
        try:
            parcel = pick(number)
        except OutOfStock as short:
            return f"{short.left} left of {short.sku}"
        except StepFailed as failed:
            return f"{failed.error_code} after {failed.tries}: {failed}"
        note(f"after {number}")
        return f"{parcel.boxes} of {parcel.sku}"

    order.made = made
    return order


@pytest.fixture
def warehouse(timed):
    return RemoteHand(timed, "warehouse")


def ended(timed, hand, job) -> str:
    """Let the workflow go on to its end, and return what it says."""
    assert hand.work() == "EndJob"
    assert check_books(timed) == []
    return job.result(5)


def test_a_value_comes_back_by_its_annotation(timed, hand, shop, warehouse):
    job = shop.submit(7)
    assert hand.work() == "Await"
    assert (hand.work(), check_books(timed)) == ("idle", [])
    directive = warehouse.take()
    assert directive.row.step_id == "0/pick#1"
    assert directive.row.outbox_id == f"{job.id}:0/pick#1:1"
    assert directive.payload == {"order": 7, "sku": "a-1"}
    assert check_books(timed) == []
    assert directive.ack() is Heard.ACCEPTED
    assert check_books(timed) == []
    assert directive.succeed({"sku": "a-1", "boxes": 2}) is Heard.ACCEPTED
    assert check_books(timed) == []
    assert ended(timed, hand, job) == "2 of a-1"
    assert shop.made == ["before 7", "after 7"]
    assert directive.succeed({"sku": "a-1", "boxes": 2}) is Heard.DUPLICATE
    assert directive.succeed({"sku": "a-1", "boxes": 3}) is Heard.CONFLICT
    assert directive.ack() is Heard.DUPLICATE
    assert directive.beat().heard is Heard.STALE
    assert check_books(timed) == []


def test_the_row_of_a_workflow_counts_claims_and_names_the_step_that_was_opened_last(timed, hand):
    @timed.remote("warehouse")
    def pick(n: int) -> int: ...

    @timed.workflow
    def order() -> int:
        return sum(gather(pick.later(1), pick.later(2))) + pick(3)

    def row() -> tuple:
        with timed.connect() as db:
            about = "attempts_total, current_step_id, current_step_index"
            (found,) = db.execute(f"select {about} from jobs where job_id = '{job.id}'")
        return tuple(found)

    job, hands = order.submit(), RemoteHand(timed, "warehouse")
    assert row() == (0, None, None)
    hand.work()
    assert row() == (1, "0/pick#2", None)
    for _ in range(2):
        hands.take().succeed(1)
    hand.work()
    assert row() == (2, "0/pick#3", None)
    hands.take().succeed(1)
    hand.work()
    assert (job.result(5), row()) == (3, (3, "0/pick#3", None))
    assert check_books(timed) == []


def test_a_result_overtakes_its_ack(timed, hand, shop, warehouse):
    job = shop.submit(7)
    hand.work()
    assert warehouse.take().succeed({"sku": "b", "boxes": 1}) is Heard.ACCEPTED
    assert ended(timed, hand, job) == "1 of b"


def test_the_error_of_a_worker_is_that_of_the_step(timed, hand, shop, warehouse):
    job = shop.submit(1)
    hand.work()
    warehouse.take().fail("BROKEN_SCANNER", "the scanner is broken")
    assert ended(timed, hand, job) == (
        "BROKEN_SCANNER after 1: pick failed after 1 try: BROKEN_SCANNER: the scanner is broken"
    )


def test_a_declared_error_is_built_again_from_its_details(timed, hand, shop, warehouse):
    job = shop.submit(1)
    hand.work()
    warehouse.take().fail("OutOfStock", "too few", sku="a-1", left=3)
    assert ended(timed, hand, job) == "3 left of a-1"


def test_a_result_that_does_not_fit_is_a_failure_of_the_step(timed, hand, shop, warehouse):
    job = shop.submit(1)
    hand.work()
    warehouse.take().succeed({"sku": "a-1"})
    assert "boxes" in ended(timed, hand, job)


def test_three_attempts_one_and_five_minutes_apart(timed, clock, hand, shop, warehouse):
    job = shop.submit(1)
    hand.work()
    for attempt, wait_ms in ((1, MINUTE), (2, 5 * MINUTE)):
        directive = warehouse.take()
        assert directive.row.attempt_no == attempt
        assert directive.fail("BUSY", "later", again=True) is Heard.ACCEPTED
        assert hand.work() == "idle"
        clock.advance(wait_ms - 1)
        assert (expire_remote(timed), warehouse.look()) == (0, None)
        clock.advance(1)
        assert expire_remote(timed) == 1
        assert check_books(timed) == []
        assert directive.succeed() is Heard.CONFLICT
        assert directive.ack() is Heard.STALE
    assert warehouse.take().fail("BUSY", "never", again=True) is Heard.ACCEPTED
    assert ended(timed, hand, job).startswith("BUSY after 3")


def test_attempts_and_times_are_as_declared(timed, clock, hand):
    @timed.remote("warehouse", ack="2s", lease="1m", retry=Retry(2, first="10s"))
    def pick() -> int:
        raise NotImplementedError

    @timed.workflow
    def order() -> int:
        return pick()

    warehouse = RemoteHand(timed, "warehouse")
    job = order.submit()
    hand.work()
    warehouse.take()
    clock.advance(2_000)
    assert expire_remote(timed) == 1
    clock.advance(10_000)
    assert expire_remote(timed) == 1
    directive = warehouse.take()
    directive.ack()
    clock.advance(59_000)
    assert directive.beat().heard is Heard.ACCEPTED
    clock.advance(59_999)
    assert expire_remote(timed) == 0
    clock.advance(1)
    assert directive.beat().heard is Heard.EXPIRED
    assert expire_remote(timed) == 1
    assert hand.work() == "EndJob"
    with pytest.raises(JobFailed, match="LEASE_TIMEOUT"):
        job.result(5)
    assert check_books(timed) == []


def test_nobody_acknowledges_or_asks(timed, clock, hand, shop, warehouse):
    job = shop.submit(1)
    hand.work_all()
    for _ in range(3):
        warehouse.take()
        clock.advance(30_000)
        expire_remote(timed)
        clock.advance(5 * MINUTE)
        expire_remote(timed)
    assert hand.work() == "EndJob"
    assert job.result(5).startswith("ACK_TIMEOUT after 3")
    unasked = shop.submit(2)
    hand.work()
    clock.advance(86_400_000)
    assert expire_remote(timed) == 1
    assert warehouse.look() is None
    assert hand.work() == "EndJob"
    assert unasked.result(5).startswith("DISPATCH_FAILED after 1")
    assert check_books(timed) == []


def test_what_cannot_be_is_refused_where_it_is_declared(timed):
    with pytest.raises(BadInput, match="its body would never run"):

        @timed.remote("warehouse")
        def works() -> int:
            return 7

    with pytest.raises(BadInput, match="leave out on="):
        timed.remote("warehouse", retry=Retry(2, on=[ValueError]), name="choosy")(nothing)
    with pytest.raises(BadInput, match="has no time"):
        timed.remote("warehouse", ack=0, name="hasty")(nothing)

    @timed.remote("warehouse")
    def refuses() -> int:
        raise NotImplementedError

    @timed.remote("warehouse")
    async def waits() -> None:
        """Say nothing."""

    with pytest.raises(OutsideWorkflow, match="only a workflow can wait for it"):
        refuses()
    with pytest.raises(OutsideWorkflow, match="only a workflow can wait for it"):
        waits()


def nothing() -> None: ...


def test_a_step_does_not_call_a_remote_step(timed, hand):
    @timed.remote("warehouse")
    def pick() -> int:
        raise NotImplementedError

    @timed.step
    def nested() -> int:
        return pick()

    @timed.workflow
    def order() -> int:
        return nested()

    job = order.submit()
    hand.work()
    with pytest.raises(JobFailed, match="only in a workflow"):
        job.result(5)


def test_a_workspace_that_comes_with_a_result_is_not_that_of_the_directive(timed, hand, shop, warehouse):
    job = shop.submit(7)
    assert hand.work() == "Await"
    said = warehouse.take().succeed({"sku": "a-1", "boxes": 2}, workspace="s3://left/7")
    assert said is Heard.ACCEPTED
    assert check_books(timed) == []
    assert ended(timed, hand, job) == "2 of a-1"
