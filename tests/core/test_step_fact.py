"""The fact that the row of a step is: JSON as all others; in older files the older form, as its hash says."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.core.audit.step_fact import told
from tallystick.core.chain import StepFact, event_hash, old_step_payload, read_step_payload, step_payload

TEXT = st.none() | st.recursive(
    st.none() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
).map(lambda value: json.dumps(value, ensure_ascii=False))
ROWS = st.tuples(
    *(
        st.just("quote"),
        st.integers(1, 99),
        st.just("SUCCEEDED"),
        st.integers(0, 10**15 - 1),
        TEXT,
        TEXT,
        TEXT,
    )
)


def fact(row, payload):
    name, occurrence, state, ledger, *said = row
    head = event_hash(b"", "job", 2, "step", 5, 1, payload)
    result, error, notes = said
    return told("job", 2, "step", 5, 1, name, occurrence, state, ledger, result, error, notes, b"", head)


@given(ROWS)
def test_the_payload_is_json_and_says_what_the_row_says(row):
    payload = step_payload(*row)
    said = json.loads(payload)
    named = dict(zip(("result", "error", "notes"), row[4:], strict=True))
    assert said == {
        "form": 1,
        "step": "quote",
        "occurrence": row[1],
        "state": row[2],
        "ledger": row[3],
        **{name: json.loads(text) for name, text in named.items() if text is not None},
    }
    assert read_step_payload(payload) == StepFact(*row)


@given(ROWS, st.sampled_from([step_payload, old_step_payload]))
def test_a_row_is_told_in_the_form_in_which_it_was_written(row, written):
    payload = written(*row)
    assert fact(row, payload).payload == payload
    assert read_step_payload(payload) == StepFact(*row)


@pytest.mark.parametrize("written", [step_payload, old_step_payload])
def test_digits_that_a_wait_has_learnt_are_no_change_of_its_fact_in_either_form(written):
    row = ("approve", 1, "SUCCEEDED", 1_110_000_000_001, "true", None, None)
    payload = written(*row)
    head = event_hash(b"", "job", 2, "wait", 5, 1, payload)
    later = (*row[:3], 1_111_100_000_001, *row[4:])
    assert told("job", 2, "wait", 5, 1, *later, b"", head).payload == payload


def test_text_that_moved_from_one_column_to_another_is_found():
    """The texts are put together as they are: what is no JSON in its column must not pass for two columns."""
    row = ("quote", 1, "SUCCEEDED", 1, "42", None, '{"a":1}')
    head = event_hash(b"", "job", 2, "step", 5, 1, step_payload(*row))
    forged = ("quote", 1, "SUCCEEDED", 1, '42,"notes":{"a":1}', None, None)
    assert step_payload(*forged) == step_payload(*row)
    seen = told("job", 2, "step", 5, 1, *forged, b"", head)
    assert event_hash(b"", "job", 2, "step", 5, 1, seen.payload) != head


def test_other_facts_are_no_facts_of_steps():
    for payload in (
        '{"job":"QUEUED"}',
        '{"step":"quote","occurrence":1,"try":1}',
        "",
        "[]",
        "no json",
        "a\0b",
    ):
        assert read_step_payload(payload) is None
