"""What can be kept is given back by its annotation; what cannot is refused in words, before anything runs."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any, Never, NoReturn

import msgspec
import pytest

from tallystick import JobFailed, Retry, StepFailed, Tally, Tx, again, wait
from tallystick.errors import BadValue
from tallystick.testing.stepping import Death


class Left(msgspec.Struct):
    x: int


class Right(msgspec.Struct):
    y: int


class Pair(enum.Enum):
    ONE = (1, 2)


UNUSABLE = [list[int] | tuple[int, ...], bytes | str, Left | Right, Pair, 5]


def as_annotated(function, **annotations):
    function.__annotations__ = annotations
    return function


def first_and_replayed(timed, hand, step):
    """Return what a workflow sees of a step, on the first run and on replay."""
    seen, deaths = [], [1]

    @timed.workflow
    def watching() -> None:
        try:
            seen.append(step())
        except StepFailed as error:
            seen.append((error.type, str(error)))
        if deaths:
            deaths.pop()
            raise Death

    watching.submit()
    assert hand.work() == "died"
    hand.expire()
    assert hand.work() == "EndJob"
    assert len(seen) == 2
    return seen


@pytest.mark.parametrize(
    ("annotation", "value"),
    [(dict[str, object], {"a": [1]}), (list[object], [1, {"b": None}]), (object | None, 3)],
)
def test_object_inside_an_annotation_is_plain_data(timed, hand, annotation, value):
    @timed.step
    def step():
        return value

    as_annotated(step.fn, **{"return": annotation})
    assert first_and_replayed(timed, hand, step) == [value, value]


def test_parameters_that_take_any_object_take_plain_data(timed, hand):
    @timed.workflow
    def flow(one: object, two: dict[str, object], *rest: object, **named: object) -> list[object]:
        return [one, two, rest, named]

    job = flow.submit(1, {"a": [2]}, "three", None, five={"b": 6})
    hand.work()
    assert job.result(5) == [1, {"a": [2]}, ["three", None], {"five": {"b": 6}}]


@pytest.mark.parametrize("annotation", UNUSABLE, ids=str)
def test_a_step_whose_result_could_not_be_given_back_does_not_run_and_is_not_tried_again(
    timed, hand, annotation
):
    runs = []

    @timed.step(retry=Retry(3, first="1ms"))
    def step():
        runs.append(1)

    as_annotated(step.fn, **{"return": annotation})
    first, replayed = first_and_replayed(timed, hand, step)
    assert first == replayed
    assert first[0] == "BadValue"
    assert "what step returns cannot be given back as" in first[1]
    assert "after 1 try" in first[1]
    assert runs == []


def test_a_transaction_whose_result_could_not_be_given_back_does_not_run(timed, hand):
    runs = []

    @timed.tx
    def store(db: Tx) -> bytes | str:
        runs.append(1)
        return "x"

    first, replayed = first_and_replayed(timed, hand, store)
    assert first == replayed
    assert first[0] == "BadValue"
    assert runs == []


@pytest.mark.parametrize("annotation", UNUSABLE, ids=str)
@pytest.mark.parametrize("name", ["value", "return"])
def test_a_workflow_that_could_not_be_given_its_arguments_or_its_result_does_not_run(
    timed, hand, clock, url, annotation, name
):
    runs = []

    @timed.workflow(retry=Retry(3, first="1ms"))
    def flow(value):
        runs.append(1)

    as_annotated(flow.fn, **{name: annotation})
    older = Tally(url, clock=clock)
    job = older.workflow(name="flow")(lambda value: None).submit(1)
    assert hand.work() == "EndAttempt"
    row = job.row()
    older.close()
    assert row.hold == "MISMATCH"
    assert "cannot be given back as" in row.hold_reason
    assert runs == []


@pytest.mark.parametrize("annotation", [Never, NoReturn])
def test_a_function_that_says_it_never_returns_may_raise_and_begin_again(timed, hand, annotation):
    turns = []

    @timed.step
    def fail(turn: int) -> NoReturn:
        raise ValueError(turn)

    @timed.workflow
    def flow(turn: int):
        try:
            fail(turn)
        except StepFailed as error:
            turns.append(error.type)
        if turn == 3:
            raise KeyError(turn)
        again(turn + 1)

    as_annotated(flow.fn, turn=int, **{"return": annotation})
    job = flow.submit(1)
    hand.work_all()
    with pytest.raises(JobFailed, match="3"):
        job.result(5)
    assert turns == ["ValueError"] * 3


def test_a_wait_for_what_could_not_be_given_is_refused_before_it_waits(timed, hand):
    @timed.workflow
    def flow() -> str:
        try:
            wait("answer", bytes | str)
        except BadValue as error:
            return str(error)
        return "waited"

    job = flow.submit()
    assert hand.work() == "EndJob"
    assert job.result(5).startswith("the signal answer cannot be given back as bytes | str")


@dataclass
class Small:
    size: int

    def __post_init__(self) -> None:
        assert self.size < 5, "too large"
        {}["missing"] if self.size < 0 else None


@pytest.mark.parametrize(("size", "says"), [(7, "too large"), (-1, "missing")])
def test_whatever_a_class_raises_over_its_data_the_value_does_not_fit(timed, hand, size, says):
    runs = []

    @timed.step(retry=Retry(3, first="1ms"))
    def step() -> Small:
        runs.append(1)
        small = Small(1)
        small.size = size
        return small

    @timed.workflow
    def flow(small: Small) -> None: ...

    first, replayed = first_and_replayed(timed, hand, step)
    assert first == replayed
    assert first[0] == "BadValue"
    assert says in first[1]
    assert runs == [1]
    wrong = Small(1)
    wrong.size = size
    with pytest.raises(BadValue, match=f"argument small of flow does not fit .*{says}"):
        flow.submit(wrong)


class Model:
    """A model that cannot say what it is."""

    def model_dump(self, mode: str) -> dict[str, Any]:
        raise KeyError(mode)


def test_whatever_a_model_raises_over_its_data_the_value_cannot_be_kept(timed):
    @timed.workflow
    def flow(model) -> None: ...

    with pytest.raises(BadValue, match="the arguments of flow cannot be kept as JSON"):
        flow.submit(Model())


def test_parameters_may_have_names_that_a_class_would_mangle(timed, hand):
    @timed.workflow
    def flow(_one: int, __two: int, __slots__: int, __init__: int) -> list[int]:
        return [_one, __two, __slots__, __init__]

    job = flow.submit(1, 2, 3, 4)
    hand.work()
    assert job.result(5) == [1, 2, 3, 4]


@pytest.mark.parametrize("endless", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("annotation", [Any, float | None, list, dict[str, float | None], float])
def test_a_result_with_a_float_that_json_has_not_is_refused_and_never_none(timed, hand, endless, annotation):
    value = {list: [None, endless], dict[str, float | None]: {"a": endless}}.get(annotation, endless)

    @timed.step
    def step():
        return value

    as_annotated(step.fn, **{"return": annotation})
    first, replayed = first_and_replayed(timed, hand, step)
    assert first == replayed
    assert first[0] == "BadValue"
    assert "neither NaN nor infinities" in first[1]


class Reading(msgspec.Struct):
    value: float


@dataclass
class Sample:
    value: float


class Foreign:
    """As pydantic gives its data."""

    def __init__(self, value: float) -> None:
        self.value = value

    def model_dump(self, mode: str) -> dict[str, float]:
        return {"value": self.value}

    @classmethod
    def model_validate(cls, data: dict[str, float]) -> Foreign:
        return cls(data["value"])


@pytest.mark.parametrize(
    ("annotation", "make"),
    [
        (Reading, Reading),
        (Sample, Sample),
        (Foreign | None, Foreign),
        (dict[int, tuple[dict[str, float]]], lambda value: {1: ({"a": value},)}),
    ],
)
def test_a_float_that_json_has_not_is_refused_wherever_it_is(timed, hand, annotation, make):
    @timed.workflow
    def flow(value) -> None:
        wait("more", Any)

    as_annotated(flow.fn, value=annotation)

    with pytest.raises(BadValue, match="neither NaN nor infinities"):
        flow.submit(make(float("nan")))
    with pytest.raises(BadValue, match="neither NaN nor infinities"):
        flow.submit_many([(make(1.5),), (make(float("inf")),)])
    job = flow.submit(make(1.5))
    with pytest.raises(BadValue, match="neither NaN nor infinities"):
        job.send("more", make(float("inf")))


def test_what_only_says_null_is_kept(timed, hand):
    values = [None, "null", {"null": None}, [None, 1.5, "nan"], msgspec.Raw(b"[null]")]

    @timed.workflow
    def flow(value: Any) -> Any:
        return value

    jobs = [flow.submit(value) for value in values]
    hand.work_all()
    given_back = [*values[:4], [None]]
    assert [job.result(5) for job in jobs] == given_back
