"""An error that a step declares carries the same on the first run and on replay, and all of it or none."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import ClassVar

import pytest

from tallystick import Fatal, JobFailed, StepFailed
from tallystick.app.values.errors import rebuilt
from tallystick.engine.failure import Failure
from tallystick.testing.stepping import Death


def both_times(timed, hand, error, *declared):
    """Return what the workflow catches on the first run and on replay; the step runs once."""
    caught, runs, deaths = [], [], [1]

    @timed.step(raises=declared or [type(error)])
    def fail() -> None:
        runs.append(1)
        raise error

    @timed.workflow
    def flow() -> None:
        try:
            fail()
        except Exception as failed:  # noqa: BLE001 (what it is, is what the test asks)
            caught.append(failed)
        if deaths:
            deaths.pop()
            raise Death

    job = flow.submit()
    assert hand.work() == "died"
    hand.expire()
    assert hand.work() == "EndJob"
    assert job.result(5) is None
    assert len(runs) == 1
    first, replayed = caught
    assert type(first) is type(replayed)
    assert str(first) == str(replayed)
    return first, replayed


class Simple(Exception):
    pass


class Refused(Fatal):
    pass


@pytest.mark.parametrize(
    "error",
    [
        Simple("the message"),
        Simple("the message", 7, None, 1.5, True),
        Simple(),
        Refused("no"),
        KeyError("k"),
        OSError(2, "no such file", "a.txt"),
        Simple({"plain": ["data"]}),
    ],
    ids=repr,
)
def test_an_error_without_fields_keeps_its_arguments_and_its_message(timed, hand, error):
    for caught in both_times(timed, hand, error):
        assert type(caught) is type(error)
        assert caught.args == error.args
        assert str(caught) == str(error)


@dataclass
class Rejected(Exception):
    at: datetime
    amount: Decimal
    codes: tuple[int, ...]
    seats: dict[int, str]


def test_fields_have_their_annotated_types_both_times(timed, hand):
    error = Rejected(datetime(2026, 1, 2, tzinfo=UTC), Decimal("1.50"), (1, 2), {3: "ann"})
    for caught in both_times(timed, hand, error):
        assert caught == error
        assert str(caught) == str(error)


@dataclass
class Parent(Exception):
    first: int = 0


@dataclass
class Offspring(Parent):
    second: int = 0
    total: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.total = self.first + self.second


def test_a_field_that_is_inherited_is_kept_and_one_that_is_computed_is_computed(timed, hand):
    for caught in both_times(timed, hand, Offspring(1, 2)):
        assert (caught.first, caught.second, caught.total) == (1, 2, 3)


class Missing(Exception):
    status: ClassVar[int] = 404
    retryable: bool = False
    page: str

    def __init__(self, page: str) -> None:
        super().__init__(f"no page {page}")
        self.page = page


def test_what_a_class_says_for_all_its_errors_is_no_field_of_one(timed, hand):
    for caught in both_times(timed, hand, Missing("home")):
        assert type(caught) is Missing
        assert (str(caught), caught.page, caught.status) == ("no page home", "home", 404)


@dataclass(frozen=True)
class Frozen(Exception):
    item: str


def test_an_error_that_nobody_catches_fails_the_job_with_its_message(timed, hand):
    @timed.step(raises=[Frozen])
    def reserve() -> None:
        raise Frozen("melon")

    @timed.workflow
    def flow() -> None:
        reserve()

    job = flow.submit()
    hand.work()
    with pytest.raises(JobFailed, match="melon") as failed:
        job.result(5)
    assert failed.value.type == "Frozen"


@dataclass
class Blob(Exception):
    content: object


@dataclass
class Measured(Exception):
    value: float


class Formatted(Exception):
    """A constructor that does not take what it gives to its parent."""

    def __init__(self, code: int) -> None:
        super().__init__(f"failed with {code:d}")


class Telling(Exception):
    def __init__(self, name: str) -> None:
        super().__init__(f"no {name}")


class Choosy(Exception):
    """A constructor that refuses what it was given once."""

    number: int
    made: ClassVar[list[int]] = []

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number
        if self.made:
            raise KeyError(number)
        self.made.append(number)


class Shy(Exception):
    @property
    def reason(self) -> str:
        raise RuntimeError("it does not say")

    __annotations__ = {"reason": "str"}


@pytest.mark.parametrize(
    "error",
    [
        Blob({(1, 2): "a key that is no text"}),
        Blob("\ud800"),
        Blob("x" * 3_000_000),
        Blob("\U0001f600" * 300_000),
        Blob(10**5000),
        Blob(threading.Lock()),
        Measured(float("inf")),
        Simple(threading.Lock()),
        Simple((1, 2)),
        Simple(b"bytes"),
        Simple("\ud800"),
        Formatted(7),
        Telling("melon"),
        Choosy(3),
        Shy("x"),
    ],
    ids=lambda error: f"{type(error).__name__}-{type(error.args[0]).__name__}",
)
def test_what_cannot_be_kept_whole_or_built_again_is_a_step_failed_both_times(timed, hand, error):
    for caught in both_times(timed, hand, error):
        assert type(caught) is StepFailed
        assert caught.type == type(error).__name__


def test_a_class_that_is_not_listed_itself_is_a_step_failed(timed, hand):
    for caught in both_times(timed, hand, Offspring(1, 2), Parent):
        assert type(caught) is StepFailed


def test_a_failure_that_was_recorded_without_arguments_is_built_without_any():
    recorded = Failure.parse(
        '{"type":"Simple","message":"m","code":"Simple","fields":{},"trace":"","step":""}'
    )
    error = rebuilt([Simple], recorded)
    assert type(error) is Simple
    assert str(error) == "m"
