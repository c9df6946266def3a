"""Submissions by columns: whatever a text holds, whatever stands beside it, refused one by one."""

from __future__ import annotations

import pytest

from tallystick.clock import VirtualClock
from tallystick.engine.submission import Submission, submit_job
from tallystick.errors import BadInput, InvariantBroken
from tallystick.ids import SystemIds
from tallystick.store.api import Bundle, Existing, NewLease, SubmitJob
from tallystick.store.postgres.server.wire import texts
from tests.postgres.subject import PostgresSubject

ids = SystemIds()
MANY = 700  # more than three pieces, the last of them a short one


def born(clock: VirtualClock, payload: str = "{}", lease: NewLease | None = None, **wish: object) -> Bundle:
    like = Submission(handler="pay", payload=payload, **wish)  # type: ignore[arg-type]  # as the test names them
    return (submit_job(like, ids.new(), clock.wall_ms(), lease),)


def job_of(bundle: Bundle) -> str:
    (primitive,) = bundle
    assert isinstance(primitive, SubmitJob)
    return primitive.job.job_id


@pytest.mark.parametrize(
    "payload",
    [
        '"quoted"',
        "back\\slash",
        "{a,b}",
        "NULL",
        "null",
        "",
        " ",
        "a\x1fb",
        "\n\t",
        "½ 𝄞",
        "{}",
        '","',
        "\\x00",
    ],
)
def test_a_text_comes_back_as_it_went(subject: PostgresSubject, payload: str) -> None:
    batch = [born(subject.clock, payload), born(subject.clock, "beside it"), born(subject.clock, payload)]
    assert subject.store.apply(batch) == [None] * 3
    kept = [subject.store.job(job_of(bundle)) for bundle in batch]
    assert [row and row.payload for row in kept] == [payload, "beside it", payload]


def test_options_come_back_as_they_went(subject: PostgresSubject) -> None:
    now = subject.clock.wall_ms()
    wish = {"queue": "mail", "priority": 2, "delay_ms": 5_000, "deadline_ms": 9_000, "tags": ("red", "blue")}
    plain, rich = born(subject.clock), born(subject.clock, **wish)
    assert subject.store.apply([plain, rich]) == [None, None]
    row = subject.store.job(job_of(rich))
    assert row is not None
    assert (row.queue, row.priority, row.tags) == ("mail", 2, '["red","blue"]')
    assert (row.ready_at, row.deadline_at) == (now + 5_000, now + 9_000)
    other = subject.store.job(job_of(plain))
    assert other is not None
    assert (other.queue, other.deadline_at, other.tags) == ("default", None, None)


def test_plain_reserved_and_claimed_submissions_of_one_flush_have_their_own_outcomes(
    subject: PostgresSubject,
) -> None:
    first = born(subject.clock, idempotency_key="k")
    batch = [
        born(subject.clock),
        first,
        born(subject.clock, lease=NewLease("lease", "worker", 1_000)),
        born(subject.clock, idempotency_key="k"),
        born(subject.clock),
    ]
    outcomes = subject.store.apply(batch)
    assert [type(outcome) for outcome in outcomes] == [type(None)] * 3 + [Existing, type(None)]
    assert isinstance(outcomes[3], Existing)
    assert outcomes[3].job_id == job_of(first)
    states = [(row["job_id"], row["state"]) for row in subject.rows("jobs")]
    assert dict(states) == {
        job_of(bundle): "IN_PROGRESS" if index == 2 else "QUEUED"
        for index, bundle in enumerate(batch)
        if index != 3
    }


def test_a_long_list_is_whole(subject: PostgresSubject) -> None:
    batch = [born(subject.clock, f'{{"number":{number},"filling":"{"x" * 300}"}}') for number in range(MANY)]
    assert subject.store.apply(batch) == [None] * MANY
    assert [row["job_id"] for row in subject.rows("jobs")] == [job_of(bundle) for bundle in batch]
    assert len(subject.rows("events")) == MANY


@pytest.mark.parametrize("unstorable", ["NUL \0", "half a pair \ud800"])
def test_what_cannot_be_stored_is_refused_alone_when_half_of_the_list_has_left(
    subject: PostgresSubject, unstorable: str
) -> None:
    batch = [born(subject.clock, f'"{"x" * 300}"') for _ in range(MANY)]
    (wrong,) = born(subject.clock)
    assert isinstance(wrong, SubmitJob)
    # Past the checks of a submission, as only a caller of the store can come.
    batch[600] = (wrong._replace(job=wrong.job._replace(payload=unstorable)),)
    outcomes = subject.store.apply(batch)
    assert isinstance(outcomes[600], BadInput)
    assert outcomes[:600] + outcomes[601:] == [None] * (MANY - 1)
    assert len(subject.rows("jobs")) == len(subject.rows("events")) == MANY - 1
    assert subject.store.apply([born(subject.clock)]) == [None]


def test_what_the_database_refuses_is_refused_alone_in_a_later_piece(subject: PostgresSubject) -> None:
    batch = [born(subject.clock, f'"{"x" * 300}"') for _ in range(MANY)]
    twice = batch[10]
    batch[650] = born(subject.clock)
    (second,) = batch[650]
    assert isinstance(second, SubmitJob)
    batch[650] = (second._replace(job=second.job._replace(job_id=job_of(twice))),)
    outcomes = subject.store.apply(batch)
    assert isinstance(outcomes[650], InvariantBroken)
    assert outcomes[:650] + outcomes[651:] == [None] * (MANY - 1)
    assert len(subject.rows("jobs")) == MANY - 1


def test_an_array_of_texts_means_what_was_put_into_it(subject: PostgresSubject) -> None:
    values = ["a", None, 'b"', "c\\", "", "NULL", "{x}", "d\x1fe", "\n"]
    (back,) = subject.by_hand.execute("SELECT %s::text[]", [texts(values)]).fetchone() or ([],)
    assert back == values


def test_a_connection_that_dies_under_a_long_list_is_replaced(subject: PostgresSubject) -> None:
    """What has left early is begun again with the rest: nothing of it was durable."""
    for _ in range(5):
        subject.store.apply([born(subject.clock)])
        assert subject.store._flush._wire is not None
        pid = subject.store._flush._wire.connection.info.backend_pid
        subject.by_hand.execute("SELECT pg_terminate_backend(%s)", [pid])
        batch = [born(subject.clock, f'"{"x" * 300}"') for _ in range(MANY)]
        assert subject.store.apply(batch) == [None] * MANY
    assert len(subject.rows("jobs")) == len(subject.rows("events")) == 5 * (MANY + 1)
