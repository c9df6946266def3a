"""Two calls with the same arguments are the same call, whichever way their sets were written."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import pytest

from tallystick import again
from tallystick.app.values.content_hash import settled
from tallystick.core.json_forms.canonical import content_hash
from tallystick.errors import IdempotencyConflict, NotCanonical
from tallystick.testing.stepping import check_books

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


def test_a_keyed_submission_in_a_workflow_may_be_given_sets(timed, hand):
    @timed.workflow(idempotent=True)
    def leaf(codes: set[int]) -> int:
        return sum(codes)

    @timed.workflow
    def parent() -> list[str]:
        return [leaf.opts(detached=True).submit(codes).id for codes in (ONE, OTHER)]

    job = parent.submit()
    hand.work_all()
    one, other = job.result(5)
    assert one == other
    assert timed.job(one).result(5) == 8


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


@pytest.fixture
def priced(timed):
    @timed.workflow(version="2")
    def priced(name: str, codes: set[int]) -> None: ...

    return priced.opts(idempotency_key="k")


def contents_found(app) -> list[str]:
    return [finding.message for finding in check_books(app) if finding.check == "content"]


def test_the_hash_of_a_content_can_be_made_again_from_its_row(timed, priced):
    job = priced.submit("a", OTHER)
    (row,) = rows(timed, "schema_version, payload, canon_version")
    assert row == ("2", '{"name":"a","codes":[0,8]}', 2)
    assert contents_found(timed) == []
    for column, value in (
        ("payload", '{"name":"b","codes":[0,8]}'),
        ("schema_version", "3"),
        ("tenant_id", "x"),
    ):
        ((before,),) = rows(timed, column)
        change(timed, column, value)
        made, kept = hashed(timed)[:12], job.row().idempotency_hash[:12]
        assert contents_found(timed) == [f"the hash of its content is {made}…, the job says {kept}…"]
        change(timed, column, before)
    assert contents_found(timed) == []


def test_a_row_of_the_older_form_verifies_and_its_reservation_holds(timed, priced):
    """Its schema version was hashed and not kept, and its set stands in an order that was not hashed."""
    job = priced.submit("a", ONE)
    change(timed, "schema_version", None)
    change(timed, "canon_version", 1)
    with timed.transaction() as db:
        db.execute("update idempotency set canon_version = 1")
    assert contents_found(timed) == []
    change(timed, "payload", '{"name":"a","codes":[8,0]}')
    assert contents_found(timed) == []
    assert (priced.submit("a", OTHER).id, priced.submit("a", ONE).created) == (job.id, False)
    with pytest.raises(IdempotencyConflict):
        priced.submit("b", ONE)
    change(timed, "payload", '{"name":"b","codes":[]}')
    assert len(contents_found(timed)) == 1


def test_a_job_that_has_turned_or_is_a_fork_has_the_hash_of_another_row(timed, hand):
    @timed.workflow(idempotent=True)
    def loop(n: int) -> int:
        if n == 2:
            raise ValueError("no")
        return again(n + 1)

    job = loop.submit(0)
    hand.work_all()
    job.retry()
    assert contents_found(timed) == []


def rows(app, columns: str) -> list[tuple]:
    with app.connect() as db:
        return list(db.execute(f"select {columns} from jobs"))


def change(app, column: str, value: str | int | None) -> None:
    """Change a column of the one job; nothing guards these while it is open."""
    with app.transaction() as db:
        db.execute(f"update jobs set {column} = {'null' if value is None else repr(value)}")


def hashed(app) -> str:
    ((tenant, handler, payload, schema),) = rows(app, "tenant_id, request_type, payload, schema_version")
    content = {"tenant_id": tenant, "request_type": handler, "payload": msgspec.json.decode(payload)}
    return content_hash({**content, "schema_version": schema})
