"""What cannot be known of one annotation costs nothing of the others."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar

from tallystick.app.annotations import hints_of_class, hints_of_function

if TYPE_CHECKING:
    from decimal import Decimal


@dataclass
class Order:
    number: int


def test_a_name_for_type_checkers_costs_its_own_parameter_alone(timed, hand):
    @timed.step
    def load(rate: Decimal) -> Order:
        return Order(int(rate))

    @timed.workflow
    def flow(when: datetime, rate: Decimal, order: Order) -> list[str]:
        return [type(value).__name__ for value in (when, rate, order, load(rate))]

    job = flow.submit(datetime(2026, 1, 2, tzinfo=UTC), 1, Order(2))
    hand.work_all()
    assert job.result(5) == ["datetime", "int", "Order", "Order"]


def test_annotations_that_cannot_be_looked_up_leave_plain_data(timed, hand):
    def flow(one, two, three, four):
        return [type(value).__name__ for value in (one, two, three, four)]

    flow.__annotations__ = {
        "one": "Missing",
        "two": "datetime.Missing",
        "three": "a price, in cents",
        "four": "Order",
    }
    job = timed.workflow(flow).submit({"a": 1}, [2], 3, Order(4))
    hand.work_all()
    assert job.result(5) == ["dict", "list", "int", "Order"]


class Base:
    limit: ClassVar[int] = 3
    first: datetime


class Derived(Base):
    second: Decimal
    third: Order


def test_a_class_has_the_annotations_that_it_inherits_too():
    assert hints_of_class(Derived) == {
        "limit": ClassVar[int],
        "first": datetime,
        "second": Any,
        "third": Order,
    }


def test_a_partial_with_a_name_is_a_function_as_any_other(timed, hand):
    def bill(order: Order, when: datetime, rate: int) -> int:
        assert type(when) is datetime
        return order.number * rate

    async def fetch(page: Order, site: str) -> Order:
        return Order(page.number + len(site))

    billed = timed.step(name="bill")(functools.partial(bill, rate=2))
    fetched = timed.step(name="fetch")(functools.partial(fetch, site="a"))

    def sums(first: Order, second: Order) -> int:
        return first.number + billed(second, datetime(2026, 1, 2, tzinfo=UTC))

    async def pages(first: Order, second: Order) -> Order:
        return await fetched(Order(first.number + second.number))

    jobs = [
        timed.workflow(name="sums")(functools.partial(sums, Order(1))).submit(Order(2)),
        timed.workflow(name="pages")(functools.partial(pages, second=Order(3))).submit(Order(4)),
    ]
    hand.work_all()
    assert [job.result(5) for job in jobs] == [5, Order(8)]


def test_a_partial_has_the_annotations_of_its_function():
    def bill(order: Order, rate: Decimal) -> int:
        return order.number * int(rate)

    assert hints_of_function(functools.partial(bill, rate=2)) == {"order": Order, "rate": Any, "return": int}
