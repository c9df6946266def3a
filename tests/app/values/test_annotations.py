"""An annotation that means nothing at run time is refused where a value is to be given back by it."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from tallystick.app.values.annotations import UnknownAnnotation, hints_of_class, hints_of_function
from tallystick.errors import BadInput

if TYPE_CHECKING:
    from decimal import Decimal


@dataclass
class Order:
    number: int


@pytest.mark.parametrize("annotation", ["Missing", "datetime.Missing", "a price, in cents", "list[Decimal]"])
@pytest.mark.parametrize("name", ["value", "return"])
def test_an_annotation_that_means_nothing_at_run_time_is_refused_at_declaration(timed, annotation, name):
    def flow(value): ...

    flow.__annotations__ = {name: annotation}
    with pytest.raises(BadInput, match="means nothing at run time: import the name outside of TYPE_CHECKING"):
        timed.workflow(flow)


def test_a_step_may_take_what_only_type_checkers_know_and_not_return_it(timed, hand):
    @timed.step
    def load(rate: Decimal) -> Order:
        return Order(int(rate))

    with pytest.raises(BadInput, match="the result of rate is annotated as Decimal"):

        @timed.step
        def rate() -> Decimal: ...  # type: ignore[empty-body]  # only its annotation is read

    @timed.workflow
    def flow(when: datetime, order: Order) -> list[str]:
        return [type(value).__name__ for value in (when, order, load(2))]

    job = flow.submit(datetime(2026, 1, 2, tzinfo=UTC), Order(2))
    hand.work_all()
    assert job.result(5) == ["datetime", "Order", "Order"]


def top(value: Later | Never_) -> None: ...  # type: ignore[name-defined]  # noqa: F821 (that is what is tested)


def test_a_name_that_a_module_defines_later_is_looked_up_when_it_is_needed(timed):
    """`Never_` is never defined: neither a submission nor a worker goes on with it."""
    flow = timed.workflow(top)
    with pytest.raises(BadInput, match=r"the argument value of top is annotated as Later \| Never_"):
        flow.submit(1)
    with pytest.raises(BadInput, match="the argument value of top"), timed.worker():
        pass


class Later: ...


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

    found = hints_of_function(functools.partial(bill, rate=2))
    assert found == {"order": Order, "rate": UnknownAnnotation("Decimal"), "return": int}
