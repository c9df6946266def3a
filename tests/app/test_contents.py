"""Two calls with the same arguments are the same call, whichever way their sets were written."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import pytest

from tallystick import gather
from tallystick.app.contents import settled
from tallystick.errors import IdempotencyConflict, NotCanonical

# Two that fall into one place of a set's table: the first to come is the first to be written.
ONE, OTHER = {0, 8}, {8, 0}


class Label(msgspec.Struct, frozen=True, rename="camel", tag=True):
    its_tags: frozenset[object]


@dataclass(frozen=True, slots=True)
class Parcel:
    codes: set[int]
    note: str = "x"


class Foreign:
    """As pydantic gives its data."""

    def __init__(self, codes: set[int]) -> None:
        self.codes = codes

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Foreign) and self.codes == other.codes

    __hash__ = None

    @classmethod
    def model_validate(cls, data: dict[str, list[int]]) -> Foreign:
        return cls(set(data["codes"]))

    def model_dump(self, mode: str) -> dict[str, object]:
        codes = list(self.codes) if mode == "json" else self.codes
        return {"codes": codes, "more": [{"in": codes}], "name": "n"}


MAKE = [
    (set[int], lambda codes: codes),
    (dict[str, list[int | tuple[set[int]]] | None], lambda codes: {"b": [1, (codes,)], "a": None}),
    (Label, lambda codes: Label(frozenset(codes))),
    (list[Parcel], lambda codes: [Parcel(codes)]),
    (set[frozenset[int] | str | None], lambda codes: {frozenset(codes), "text", None}),
    (tuple[Label, ...], lambda codes: (Label(frozenset(codes)), Label(frozenset()))),
    (Foreign, Foreign),
]


def test_the_two_are_equal_and_written_differently():
    assert ONE == OTHER
    assert list(ONE) != list(OTHER)


@pytest.mark.parametrize(("annotation", "make"), MAKE)
def test_a_key_is_one_job_whichever_way_a_set_is_written(app, annotation, make):
    @app.workflow
    def flow(value) -> None: ...

    flow.fn.__annotations__ = {"value": annotation, "return": None}
    keyed = flow.opts(idempotency_key="k")
    first, second = keyed.submit(make(ONE)), keyed.submit(make(OTHER))
    assert (first.id, second.created) == (second.id, False)
    with pytest.raises(IdempotencyConflict):
        keyed.submit(make({0, 9}))
    by_content = flow.opts(idempotent=True)
    assert by_content.submit(make(ONE)).id == by_content.submit(make(OTHER)).id
    assert by_content.submit(make({0, 9})).created


def test_jobs_of_a_list_are_the_same_whichever_way_a_set_is_written(app):
    @app.workflow(idempotent=True)
    def flow(codes: set[int]) -> None: ...

    first, second, third = flow.submit_many([(ONE,), (OTHER,), ({1},)])
    assert first.id == second.id != third.id
    assert not second.created


def test_a_payload_keeps_the_order_of_dicts_and_is_hashed_without_it(timed, hand):
    @timed.workflow(idempotent=True)
    def flow(prices: dict[str, set[int]]) -> list[str]:
        return list(prices)

    job = flow.submit({"b": ONE, "a": {1}})
    assert flow.submit({"a": {1}, "b": OTHER}).id == job.id
    hand.work()
    assert job.result(5) == ["b", "a"]


def test_a_child_with_a_key_may_be_given_sets(timed, hand):
    @timed.workflow(idempotent=True)
    def leaf(codes: set[int]) -> int:
        return sum(codes)

    @timed.workflow
    def parent() -> int:
        return sum(gather(leaf.child(ONE), leaf.child(OTHER)))

    job = parent.submit()
    hand.work_all()
    assert job.result(5) == 16


@pytest.mark.parametrize("value", [{"a": [1, (2, "b")]}, Parcel(1), Label("x"), 7, None])
def test_a_value_without_sets_is_left_as_it_is(value):
    assert settled(value) is value


def test_what_is_nested_too_deep_is_refused_and_not_followed(app):
    @app.workflow(idempotent=True)
    def flow(value) -> None: ...

    value: object = 1
    for _ in range(700):
        value = [value]
    with pytest.raises(NotCanonical):
        flow.submit(value)
