"""The fifteen digits never carry, never decrease and never lie."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.core.digits import TOP, ActivityLedger, Field, GuidLedger, _check_tiling
from tallystick.errors import LedgerCeiling, LedgerCorrupt

LEDGERS = [ActivityLedger, GuidLedger]
RAISES = {
    ActivityLedger: ["enter_leg1", "complete_leg1", "enter_leg2", "mark_work", "mark_children", "mark_tasks"],
    GuidLedger: ["mark_work", "mark_open", "mark_closed", "mark_tasks"],
}
FIELD_OF = {
    "enter_leg1": {"leg1_entries"},
    "complete_leg1": {"leg1_complete"},
    "enter_leg2": {"leg2_entries"},
    "mark_work": {"work_done"},
    "mark_children": {"children_spawned"},
    "mark_open": {"children_spawned"},
    "mark_closed": {"children_spawned", "closed_job"},
    "mark_tasks": {"tasks_done"},
}


def ledgers(kind):
    values = st.fixed_dictionaries({field.name: st.integers(0, field.top) for field in kind.FIELDS})
    return values.map(lambda held: kind.of(**held))


def apply(ledger, move):
    if move == "mark_open":
        return ledger.mark_children(closed=False)
    if move == "mark_closed":
        return ledger.mark_children(closed=True)
    return getattr(ledger, move)()


@pytest.mark.parametrize("kind", LEDGERS)
@given(data=st.data())
def test_decoding_what_was_encoded_gives_the_same_values(kind, data):
    values = {field.name: data.draw(st.integers(0, field.top)) for field in kind.FIELDS}
    ledger = kind.of(**values)
    assert ledger.fields() == values
    assert kind.parse(ledger.text) == ledger
    assert kind.of(**ledger.fields()) == ledger


@pytest.mark.parametrize("kind", LEDGERS)
@given(data=st.data())
def test_an_increment_raises_its_own_field_by_one_and_touches_no_other(kind, data):
    ledger = data.draw(ledgers(kind))
    move = data.draw(st.sampled_from(RAISES[kind]))
    before = ledger.fields()
    try:
        raised = apply(ledger, move)
    except (LedgerCeiling, LedgerCorrupt):
        assert ledger.fields() == before
        return
    saturated = kind is ActivityLedger and raised == ledger
    expected = {name: value + (name in FIELD_OF[move] and not saturated) for name, value in before.items()}
    assert raised.fields() == expected
    assert raised >= ledger
    assert raised < TOP
    assert type(raised) is kind


@pytest.mark.parametrize(
    ("entries", "after"), [(9, "010"), (99, "100"), (998, "999")], ids=["9 to 10", "99 to 100", "998 to 999"]
)
def test_the_leg_1_counter_uses_all_three_digits(entries, after):
    ledger = ActivityLedger.of(leg1_entries=entries, leg1_complete=1).enter_leg1()
    assert ledger.text == after + "100000000000"
    assert ledger.leg1_entries == entries + 1


def test_leg_1_refuses_the_thousandth_entry():
    full = ActivityLedger.of(leg1_entries=999, leg2_entries=5)
    with pytest.raises(LedgerCeiling) as refusal:
        full.enter_leg1()
    assert refusal.value.code == "LEDGER_CEILING"
    assert refusal.value.fields["field"] == "leg1_entries"


def test_leg_2_stops_at_its_ceiling_before_it_would_carry_into_the_completion_marker():
    nearly = ActivityLedger.of(leg1_entries=1, leg1_complete=1, leg2_entries=99_999_998)
    full = nearly.enter_leg2()
    assert full.text == "001100099999999"
    with pytest.raises(LedgerCeiling):
        full.enter_leg2()


def test_activity_markers_saturate_so_the_tenth_message_does_not_carry():
    """Added once a message they would turn the leg-1 digit into 2 after ten messages."""
    ledger = ActivityLedger(0).enter_leg1().complete_leg1()
    for _ in range(25):
        ledger = ledger.enter_leg2().mark_work().mark_children()
    assert ledger.text == "001111000000025"


def test_a_guid_marker_is_refused_the_second_time():
    guid = GuidLedger(1).mark_work().mark_children(closed=True).mark_tasks()
    for move in RAISES[GuidLedger]:
        with pytest.raises(LedgerCeiling):
            apply(guid, move)


def test_only_the_closer_has_a_third_step():
    with pytest.raises(LedgerCorrupt):
        GuidLedger(1).mark_work().mark_children(closed=False).mark_tasks()


def test_a_message_does_not_inherit_the_activitys_markers():
    """Taken whole, the activity's leg-1 digit would read as "this message closed the job"."""
    activity = ActivityLedger.parse("001111100000007")
    guid = GuidLedger.first_seen(activity)
    assert guid.text == "000000000000007"
    assert guid.dimension == 6


@pytest.mark.parametrize("kind", LEDGERS)
@pytest.mark.parametrize("value", [-1, TOP, TOP + 1, 10**18])
def test_a_value_without_fifteen_digits_is_corrupt(kind, value):
    with pytest.raises(LedgerCorrupt):
        kind(value)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (ActivityLedger, "001200000000000"),
        (ActivityLedger, "001120000000000"),
        (ActivityLedger, "001102000000000"),
        (ActivityLedger, "001100900000000"),
        (GuidLedger, "001000000000000"),
        (GuidLedger, "100000000000000"),
        (GuidLedger, "000200000000000"),
    ],
)
def test_a_digit_outside_its_range_is_corrupt(kind, text):
    with pytest.raises(LedgerCorrupt) as found:
        kind.parse(text)
    assert found.value.fields["ledger"] == text


@pytest.mark.parametrize(
    "text", ["", "1", "00111000000000", "0011100000000011", "00111000000000x", "\u0661" * 15]
)
def test_only_fifteen_plain_digits_are_a_ledger(text):
    with pytest.raises(LedgerCorrupt, match="fifteen digits"):
        ActivityLedger.parse(text)


def test_encoding_refuses_unknown_fields_and_values_out_of_range():
    with pytest.raises(LedgerCorrupt, match="no field"):
        GuidLedger.of(leg1_entries=1)
    with pytest.raises(LedgerCorrupt, match=r"0\.\.999"):
        ActivityLedger.of(leg1_entries=1000)
    with pytest.raises(LedgerCorrupt, match=r"0\.\.1"):
        ActivityLedger.of(work_done=-1)


def tiles(*parts):
    """Return fields of these (weight, span, top), highest first."""
    return tuple(Field(f"f{n}", weight, span, top, "") for n, (weight, span, top) in enumerate(parts))


@pytest.mark.parametrize(
    "fields",
    [ActivityLedger.FIELDS, GuidLedger.FIELDS, tiles((1, 15, 10**15 - 1)), tiles((10**14, 1, 9), (1, 14, 0))],
)
def test_fields_that_cover_every_digit_once_are_accepted(fields):
    assert _check_tiling(fields) is None


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        (tiles((10**13, 1, 9), (1, 13, 9)), "f0 does not tile"),  # the highest digit has no field
        (tiles((10**12, 3, 999), (10**10, 1, 9), (1, 10, 9)), "f1 does not tile"),  # a gap
        (tiles((10**12, 3, 999), (10**10, 3, 9), (1, 10, 9)), "f1 does not tile"),  # an overlap
        (tiles((10**12, 3, 1000), (1, 12, 9)), "f0 does not tile"),  # a value that would carry
        (tiles((10**12, 3, 31), (10**11, 1, 10), (1, 11, 9)), "f1 does not tile"),
        (tiles((10**12, 3, 999), (10, 11, 9)), "lowest digits"),
        ((), "lowest digits"),
    ],
)
def test_fields_that_do_not_tile_fifteen_digits_fail_at_import(fields, complaint):
    with pytest.raises(ValueError, match=complaint):
        _check_tiling(fields)


def test_a_refusal_carries_what_was_refused_as_fields():
    with pytest.raises(LedgerCorrupt) as not_digits:
        GuidLedger.parse("abc")
    assert not_digits.value.fields == {"ledger": "abc", "kind": "GUID"}
    with pytest.raises(LedgerCorrupt) as out_of_range:
        ActivityLedger.of(work_done=2)
    assert out_of_range.value.fields == {"kind": "activity", "field": "work_done"}
    with pytest.raises(LedgerCorrupt, match="has no field b, c") as unknown:
        ActivityLedger.of(b=1, c=1)
    assert unknown.value.fields == {"kind": "activity"}
    with pytest.raises(LedgerCeiling, match="leg1_complete is full at 1") as full:
        ActivityLedger.parse("001100000000000").complete_leg1()
    assert full.value.fields == {"ledger": "001100000000000", "kind": "activity", "field": "leg1_complete"}
    with pytest.raises(LedgerCorrupt, match="000011000000001 did not close") as not_closer:
        GuidLedger.parse("000011000000001").mark_tasks()
    assert not_closer.value.fields == {"ledger": "000011000000001"}


def test_the_two_ledgers_are_different_types():
    assert not issubclass(ActivityLedger, GuidLedger)
    assert {field.name for field in GuidLedger.FIELDS} & {"leg1_complete", "leg1_entries"} == set()


def test_the_readable_properties_say_what_the_digits_say():
    activity = ActivityLedger.parse("123110000000045")
    assert (activity.leg1_entries, activity.leg1_complete, activity.leg2_entries) == (123, True, 45)
    assert not ActivityLedger.parse("123000000000045").leg1_complete
    guid = GuidLedger.parse("000111100000003")
    assert (guid.closed_job, guid.work_done, guid.children_spawned, guid.tasks_done) == (True,) * 4
    empty = GuidLedger(3)
    assert (empty.closed_job, empty.work_done, empty.children_spawned, empty.tasks_done) == (False,) * 4
