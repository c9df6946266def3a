"""Arguments reach the function as they were given, or are refused where they are given."""

from __future__ import annotations

import asyncio
import enum
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import pytest
from pydantic import BaseModel, Field, PrivateAttr, SecretStr

from tallystick import Tally
from tallystick.errors import BadInput, BadValue, IdempotencyConflict
from tallystick.testing.stepping import SteppedWorker


class Login(BaseModel):
    name: str
    password: SecretStr


class Account(BaseModel):
    name: str
    note: str = Field(default="", exclude=True)


class Marked(BaseModel):
    name: str
    _mark: int = PrivateAttr(default=0)


@dataclass
class Person:
    name: str


@dataclass
class Employee(Person):
    salary: int


class Bare:
    """Has no `==` of its own."""

    def __init__(self, name: str) -> None:
        self.name = name


@dataclass
class Holder:
    bare: Bare
    names: list[str] = field(default_factory=list)


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"] = "dog"
    tricks: list[str]


Pet = Annotated[Cat | Dog, Field(discriminator="kind")]


class Colour(enum.StrEnum):
    RED = "red"


def marked(value: int) -> Marked:
    made = Marked(name="a")
    made._mark = value
    return made


CHANGED = [
    (Login, Login(name="a", password=SecretStr("x")), "value.password"),
    (SecretStr, SecretStr("x"), "value"),
    (Account, Account(name="a", note="kept"), "value.note"),
    (Marked, marked(1), "value"),
    (Person, Employee("a", 3), "value"),
    (list[Person], [Person("a"), Employee("b", 3)], "value[1]"),
    (dict[str, Person], {"x": Employee("b", 3)}, "value['x']"),
    (list[int], (1, 2), "value"),
    (Any, (1, 2), "value"),
    (Any, {"a": [1, (2,)]}, "value['a'][1]"),
    (Any, {1: "a"}, "value"),
    (Any, Person("a"), "value"),
    (Any, {1, 2}, "value"),
    (Person, {"name": "a"}, "value"),
]


@pytest.mark.parametrize(("annotation", "value", "path"), CHANGED, ids=lambda part: str(part)[:40])
def test_an_argument_that_would_arrive_changed_is_refused_with_its_path(app, annotation, value, path):
    @app.workflow
    def flow(value) -> None: ...

    flow.fn.__annotations__ = {"value": annotation}
    for refused in (lambda: flow.submit(value), lambda: flow.submit_many([(value,)])):
        with pytest.raises(BadValue) as caught:
            refused()
        assert f"the argument {path} of flow" in str(caught.value) or "asterisks" in str(caught.value)
    assert list(app.jobs()) == []


SAME = [
    (Account, Account(name="a")),
    (Pet, Dog(tricks=["sit"])),
    (list[Pet], [Cat(lives=9), Dog(tricks=[])]),
    (Path, Path("a/b")),
    (Person, Person("a")),
    (Person | None, Person("a")),
    (tuple[int, ...], (1, 2)),
    (set[int], {1, 2}),
    (dict[int, str], {1: "a"}),
    (str, Colour.RED),
    (Colour, Colour.RED),
    (dict[str, int], defaultdict(int, a=1)),
    (float, 1),
    (Any, [None, True, 1, 1.5, "x", {"a": []}]),
]


@pytest.mark.parametrize(("annotation", "value"), SAME, ids=lambda part: str(part)[:40])
def test_an_argument_that_comes_back_equal_is_kept(timed, hand, annotation, value):
    seen = []

    @timed.workflow
    def flow(value) -> None:
        seen.append(value)

    flow.fn.__annotations__ = {"value": annotation}
    job = flow.submit(value)
    hand.work()
    job.result(5)
    assert seen == [value]


def test_a_type_of_ones_own_is_kept_as_declared_and_compared_by_that(timed, hand):
    seen = []
    timed.codec(Bare, name_of, Bare)

    @timed.step
    def load(name: str) -> Bare:
        return Bare(name)

    @timed.workflow
    def flow(one: Bare, holder: Holder) -> str:
        seen.append((one.name, holder.bare.name, holder.names))
        return load("c").name

    job = flow.submit(Bare("a"), Holder(Bare("b"), ["n"]))
    hand.work()
    assert job.result(5) == "c"
    assert seen == [("a", "b", ["n"])]
    with pytest.raises(BadInput, match="declared already"):
        timed.codec(Bare, str, Bare)
    with pytest.raises(BadInput, match="a Person is data already"):
        timed.codec(Person, str, Person)


def name_of(bare: Bare) -> str:
    return bare.name


@pytest.mark.parametrize("calls", [["Al"], [{"name": "Al"}], [3], "Al"])
def test_a_list_of_jobs_takes_tuples_or_lists_of_arguments_and_nothing_else(app, calls):
    @app.workflow
    def greet(name: str) -> str:
        return name

    with pytest.raises(BadInput, match="a tuple or list of arguments for each job of greet"):
        greet.submit_many(calls)
    assert list(app.jobs()) == []


def test_a_list_of_jobs_takes_mappings_if_told_so(timed, hand):
    @timed.workflow
    def greet(name: str, times: int = 1) -> str:
        return name * times

    with pytest.raises(BadInput, match="a mapping of arguments for each job of greet, not a tuple"):
        greet.submit_many([("Al",)], kwargs=True)
    jobs = greet.submit_many([{"name": "Al"}, {"times": 2, "name": "Bo"}], kwargs=True)
    jobs += greet.submit_many([("Cy",), ["Di", 3]])
    jobs += asyncio.run(greet.submit_many_aio([{"name": "Ed"}], kwargs=True))
    hand.work_all()
    assert [job.result(5) for job in jobs] == ["Al", "BoBo", "Cy", "DiDiDi", "Ed"]


def test_a_job_keeps_the_defaults_of_the_code_that_submitted_it(url, clock):
    with deployed(url, clock, lambda rate=10: rate) as (hand, flow):
        job = flow.submit()
        assert job.row().payload == '{"rate":10}'
    with deployed(url, clock, lambda rate=99: rate) as (hand, _flow):
        hand.work()
        assert hand.app.job(job.id).result(5) == 10


def test_a_default_spelled_out_is_the_same_call(app):
    @app.workflow
    def flow(amount: int, rate: int = 10) -> None: ...

    keyed = flow.opts(idempotency_key="k")
    first = keyed.submit(1)
    for same in (keyed.submit(1, 10), keyed.submit(amount=1), keyed.submit(1, rate=10)):
        assert (same.id, same.created) == (first.id, False)
    with pytest.raises(IdempotencyConflict):
        keyed.submit(1, 11)
    by_content = flow.opts(idempotent=True)
    assert by_content.submit(2).id == by_content.submit(2, 10).id


def test_a_parameter_that_was_added_with_a_default_changes_no_key(url, clock):
    with deployed(url, clock, lambda amount: amount) as (hand, flow):
        job = flow.opts(idempotency_key="k").submit(1)
    with deployed(url, clock, lambda amount, rate=10: [amount, rate]) as (hand, flow):
        keyed = flow.opts(idempotency_key="k")
        for same in (keyed.submit(1), keyed.submit(1, 10), asyncio.run(keyed.submit_aio(1))):
            assert (same.id, same.created) == (job.id, False)
        for other in ((1, 11), (2,)):
            with pytest.raises(IdempotencyConflict):
                keyed.submit(*other)
        hand.work()
        assert hand.app.job(job.id).result(5) == [1, 10]


CHANGES = [
    (lambda amount, rate: 0, "needs rate, which the job does not have"),
    (lambda total: 0, "needs total"),
    (lambda: 0, "has no parameter amount"),
]


@pytest.mark.parametrize(("changed", "says"), CHANGES)
def test_a_signature_that_no_longer_fits_holds_the_job_and_says_what_changed(url, clock, changed, says):
    with deployed(url, clock, lambda amount: amount) as (hand, flow):
        job = flow.submit(1)
    with deployed(url, clock, changed) as (hand, _flow):
        assert hand.work() == "EndAttempt"
        row = hand.app.job(job.id).row()
        assert (row.state, row.hold) == ("IN_PROGRESS", "MISMATCH")
        assert says in row.hold_reason
    with deployed(url, clock, lambda amount: amount) as (hand, _flow):
        again = hand.app.job(job.id)
        again.resume()
        hand.work()
        assert again.result(5) == 1


def test_what_no_longer_decodes_holds_the_job(url, clock):
    def as_text(amount: str) -> str:
        return amount

    with deployed(url, clock, lambda amount: amount) as (hand, flow):
        job = flow.submit(1)
    with deployed(url, clock, as_text) as (hand, _flow):
        hand.work()
        row = hand.app.job(job.id).row()
        assert row.hold == "MISMATCH"
        assert "the argument amount of as_text does not fit its annotation str" in row.hold_reason


def test_raw_json_is_given_as_it_is(timed, hand):
    @timed.workflow
    def flow(value: Any) -> Any:
        return value

    job = flow.submit(msgspec.Raw(b'{"a":[1]}'))
    hand.work()
    assert job.result(5) == {"a": [1]}


class deployed:  # noqa: N801 (a context, written as the verb that it is)
    """The workflow `flow` as one version of a program declares it, on the same store."""

    def __init__(self, url, clock, function) -> None:
        self.app = Tally(url, clock=clock)
        self.hand = SteppedWorker(self.app, clock)
        self.hand.app = self.app
        self.flow = self.app.workflow(name="flow")(function)

    def __enter__(self):
        return self.hand, self.flow

    def __exit__(self, *_error):
        self.app.close()
