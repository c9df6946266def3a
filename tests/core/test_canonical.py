"""Canonical JSON: one form for one content, the form of RFC 8785, and clear refusals."""

from __future__ import annotations

import enum
import hashlib
import math
import struct
from random import Random

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from tallystick.core.json_forms import canonical as module
from tallystick.core.json_forms.canonical import (
    CANON_VERSION,
    CONTENT_FIELDS,
    canonical,
    content_hash,
    idempotency_hash,
)
from tallystick.core.json_forms.strict_json import decode_strict
from tallystick.core.limits import JSON_DEPTH_MAX, JSON_INTEGER_DIGITS_MAX
from tallystick.errors import NotCanonical

EXACT_END = 2**53
EXPONENT_START = 10**21

texts = st.text(max_size=8) | st.sampled_from(
    ["\u2028", "\x7f", "\x00\x1f\b\t", "\uffff", "\U00010000", "é", "e\u0301"]
)
accepted_floats = st.floats(allow_nan=False, allow_infinity=False).filter(
    lambda number: not EXACT_END <= abs(number) < EXPONENT_START
)
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=-(10**400), max_value=10**400)
    | accepted_floats
    | texts
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
plain_values = st.recursive(
    st.booleans() | texts | st.integers(min_value=1 - EXACT_END, max_value=EXACT_END - 1),
    lambda inner: (
        st.lists(inner | st.none(), max_size=4)
        | st.dictionaries(st.text(st.characters(max_codepoint=127), max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)


def drop_nulls(value: object) -> object:
    if isinstance(value, dict):
        return {key: drop_nulls(member) for key, member in value.items() if member is not None}
    if isinstance(value, list):
        return [drop_nulls(item) for item in value]
    return value


def careful(value: object) -> bytes:
    """Write a value without the fast path."""
    return module._write_carefully(value, JSON_DEPTH_MAX)


@given(values)
def test_the_canonical_form_is_a_fixed_point(value):
    form = canonical(value)
    assert canonical(decode_strict(form)) == form


@given(plain_values)
def test_the_fast_path_and_the_careful_writer_agree_wherever_the_fast_path_is_taken(value):
    assert module._is_plain(value, JSON_DEPTH_MAX)
    assert module._encode(value) == careful(value) == rfc8785.dumps(value)


@given(values)
def test_the_fast_path_changes_no_form(value):
    assert canonical(value) == careful(value)


@given(values)
def test_the_form_is_that_of_rfc_8785_wherever_it_has_one(value):
    try:
        oracle = rfc8785.dumps(drop_nulls(value))
    except rfc8785.IntegerDomainError:
        return
    assert canonical(value) == oracle


def test_every_character_is_escaped_as_rfc_8785_escapes_it():
    for start in range(0, 0x110000, 64):
        text = "".join(chr(code) for code in range(start, start + 64) if not 0xD800 <= code < 0xE000)
        assert canonical(text) == careful(text) == rfc8785.dumps(text)
        assert canonical({text: 1}) == rfc8785.dumps({text: 1})


@pytest.mark.slow
def test_a_hundred_thousand_floats_of_every_size_are_written_as_rfc_8785_writes_them():
    random = Random(8785)
    compared = 0
    while compared < 100_000:
        if compared % 2:
            number = struct.unpack("<d", random.randbytes(8))[0]
        else:
            number = random.choice((-1, 1)) * random.random() * 10.0 ** random.randint(-10, 15)
        if math.isfinite(number) and not EXACT_END <= abs(number) < EXPONENT_START:
            assert canonical(number) == rfc8785.dumps(number)
            compared += 1


@pytest.mark.parametrize(
    ("number", "form"),
    [
        (1.0, b"1"),
        (-0.0, b"0"),
        (0.5, b"0.5"),
        (0.0001, b"0.0001"),
        (0.00001, b"0.00001"),
        (-0.0000012, b"-0.0000012"),
        (0.000001, b"0.000001"),
        (1e-7, b"1e-7"),
        (-1.5e-7, b"-1.5e-7"),
        (5e-324, b"5e-324"),
        (9007199254740991.0, b"9007199254740991"),
        (2**53, b"9007199254740992"),
        (2**53 + 1, b"9007199254740993"),
        (-(2**64), b"-18446744073709551616"),
        (10**21 - 1, b"999999999999999999999"),
        (1e21, b"1e+21"),
        (10**21, b"1e+21"),
        (-(10**21), b"-1e+21"),
        (10**21 + 1, b"1000000000000000000001"),
        (2**80, b"1.2089258196146292e+24"),
        (2.0**80, b"1.2089258196146292e+24"),
        (2**80 + 1, b"1208925819614629174706177"),
        (1.7976931348623157e308, b"1.7976931348623157e+308"),
        (10**400, b"1" + b"0" * 400),
    ],
)
def test_numbers_have_these_forms(number, form):
    assert canonical(number) == form
    assert canonical([number]) == b"[" + form + b"]"


def test_keys_are_ordered_by_utf_16_units_beyond_the_first_plane_too():
    beyond, before = "\U00010000", "\uffff"
    assert beyond > before, "Python orders by code point"
    assert canonical({before: 1, beyond: 2}) == f'{{"{beyond}":2,"{before}":1}}'.encode()


def test_null_members_are_dropped_at_every_depth_and_arrays_keep_theirs():
    assert canonical({"a": None, "b": [None, {"c": None}], "d": {"e": None}}) == b'{"b":[null,{}],"d":{}}'
    assert canonical(None) == b"null"


def test_text_is_not_normalised():
    assert canonical("\u00e9") != canonical("e\u0301")


def test_a_tuple_is_an_array():
    assert canonical((1, (2, None), [])) == canonical([1, [2, None], []]) == b"[1,[2,null],[]]"
    assert canonical((0.5,)) == b"[0.5]"


class Colour(enum.StrEnum):
    RED = "red"


class Level(enum.IntEnum):
    LOW = 1


class Text(str):
    __slots__ = ()


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (math.nan, ""),
        ({"a": [0, math.inf]}, "/a/1"),
        (-math.inf, ""),
        (2.0**53, ""),
        ({"a": {"b": -(2.0**53)}}, "/a/b"),
        (math.nextafter(1e21, 0), ""),
        (7777777777777777777.8, ""),
        ("\ud800", ""),
        (["fine", "\udfff"], "/1"),
        ({"a": {"\ud800": 1}}, "/a"),
        ({"a": {"\udc00": None}}, "/a"),
        ({1: 2}, ""),
        ({10**5_000: 2}, ""),
        ({"a": {None: 2}}, "/a"),
        ({True: 1}, ""),
        ({Text("a"): 1}, ""),
        ({"a": {1, 2}}, "/a"),
        (b"bytes", ""),
        (1j, ""),
        (Colour.RED, ""),
        ([Level.LOW], "/0"),
        (Text("a"), ""),
        ([10**JSON_INTEGER_DIGITS_MAX], "/0"),
        ([-(10**JSON_INTEGER_DIGITS_MAX)], "/0"),
        ([10**10_000], "/0"),
    ],
)
def test_what_has_no_canonical_form_is_refused_with_the_path_to_it(value, path):
    with pytest.raises(NotCanonical) as caught:
        canonical(value)
    assert caught.value.code == "NOT_CANONICAL"
    assert caught.value.exit_code == 4
    assert caught.value.fields["path"] == path
    assert caught.value.fields["reason"]
    caught.value.message.encode()


def test_the_longest_integer_is_still_written():
    longest = 10**JSON_INTEGER_DIGITS_MAX - 1
    assert canonical(longest) == b"9" * JSON_INTEGER_DIGITS_MAX
    assert canonical(-longest) == b"-" + b"9" * JSON_INTEGER_DIGITS_MAX


@pytest.mark.parametrize("leaf", [1, 0.5])
@pytest.mark.parametrize("wrap", [lambda inner: [inner], lambda inner: {"k": inner}, lambda inner: (inner,)])
def test_nesting_is_accepted_up_to_the_limit_on_both_paths(leaf, wrap):
    value = leaf
    for _ in range(JSON_DEPTH_MAX):
        value = wrap(value)
    canonical(value)
    with pytest.raises(NotCanonical, match="64 levels"):
        canonical(wrap(value))


def test_a_value_that_contains_itself_is_refused():
    loop: list[object] = []
    loop.append(loop)
    with pytest.raises(NotCanonical):
        canonical(loop)


def test_a_payload_as_deep_as_the_decoder_accepts_can_be_submitted():
    payload = decode_strict(b"[" * JSON_DEPTH_MAX + b"]" * JSON_DEPTH_MAX)
    assert len(submission_hash(payload=payload)) == 64
    with pytest.raises(NotCanonical):
        submission_hash(payload=[payload])


def submission_hash(**changes: object) -> str:
    fields: dict[str, object] = {
        "tenant_id": "default",
        "request_type": "checkout",
        "input_ref": None,
        "output_ref": None,
        "payload": {"order": 42},
        "schema_version": 1,
    }
    return idempotency_hash(**fields | changes)


def test_the_hash_is_that_of_the_canonical_bytes_without_any_prefix():
    assert content_hash({"b": 1, "a": None}) == hashlib.sha256(b'{"b":1}').hexdigest()


def test_known_hashes_do_not_change_while_the_version_stays_the_same():
    """Stored hashes outlive the code that made them; any other implementation must find these."""
    assert CANON_VERSION == 2  # the form of the row changed since 1, the hashes did not
    assert content_hash({}) == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
    assert content_hash(None) == "74234e98afe7498fb5daf1f36ac2d78acc339464f950703b8c019892f982b90b"
    assert (
        hashlib.sha256(
            b'{"payload":{"order":42},"request_type":"checkout","schema_version":1,"tenant_id":"default"}'
        ).hexdigest()
        == submission_hash()
        == "5c6a3c5d95973569bd2e39a735e27f1b188a4d5f2122c5d412aa01ef60dc2caf"
    )
    awkward = {"\uffff": 2**53 + 1, "\U00010000": [None, -0.0, 1e21, 1e-7], "n": {"gone": None}}
    assert (
        submission_hash(payload=awkward, input_ref="blob:1", output_ref="é")
        == "4fea3fc9763a1a74463ab59a1fc928d002303f258e0acc80c50d566a8075bded"
    )


def test_the_six_fields_and_only_they_make_the_content():
    assert CONTENT_FIELDS == (
        "tenant_id",
        "request_type",
        "input_ref",
        "output_ref",
        "payload",
        "schema_version",
    )
    base = submission_hash()
    assert all(submission_hash(**{field: "other"}) != base for field in CONTENT_FIELDS)
    assert len({submission_hash(**{field: "other"}) for field in CONTENT_FIELDS}) == len(CONTENT_FIELDS)


def test_an_absent_field_and_a_null_field_are_the_same_content():
    assert submission_hash(payload={"order": 42, "note": None}) == submission_hash()
    assert submission_hash(payload={"order": 42.0}) == submission_hash()
    assert (
        submission_hash(payload=None)
        == hashlib.sha256(b'{"request_type":"checkout","schema_version":1,"tenant_id":"default"}').hexdigest()
    )
