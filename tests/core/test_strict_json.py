"""The strict decoder: everything that JSON can say, nothing that two readers could read differently."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.core.json_forms.strict_json import decode_strict
from tallystick.core.limits import JSON_DEPTH_MAX, JSON_INTEGER_DIGITS_MAX, PAYLOAD_BYTES_MAX
from tallystick.errors import BadJson, PayloadTooLarge

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)

REFUSED = {
    "nothing": b"",
    "only a space": b" ",
    "a duplicate key": b'{"a":1,"b":2,"a":1}',
    "a duplicate key in disguise": b'{"a":1,"\\u0061":2}',
    "a duplicate key deep inside": b'[{"x":{"k":0,"k":null}}]',
    "a byte order mark": b"\xef\xbb\xbf{}",
    "UTF-16": '{"a":1}'.encode("utf-16"),
    "UTF-16 without a mark": '{"a":1}'.encode("utf-16-le"),
    "bytes that are not UTF-8": b'"\xff"',
    "an overlong encoding": b'"\xc0\xaf"',
    "an encoded surrogate": b'"\xed\xa0\x80"',
    "half a surrogate pair": b'"\\ud800"',
    "half a surrogate pair in upper case": b'"\\uDFFF"',
    "a surrogate pair in the wrong order": b'"\\udc00\\ud800"',
    "half a surrogate pair as a key": b'{"\\ud800":1}',
    "half a surrogate pair deep inside": b'[[{"a":["\\ud83dx"]}]]',
    "NaN": b"NaN",
    "NaN inside": b'{"a":[NaN]}',
    "infinity": b"Infinity",
    "minus infinity": b"-Infinity",
    "a number beyond any double": b"1e400",
    "a number below any double": b"[-1e400]",
    "an integer without end": b"1" * (JSON_INTEGER_DIGITS_MAX + 1),
    "trailing bytes": b"{} {}",
    "a trailing comma": b"[1,]",
    "a trailing NUL": b"1\x00",
    "a comment": b"/* no */ 1",
    "single quotes": b"{'a':1}",
    "a bare word": b"nil",
    "a leading zero": b"01",
    "a leading plus": b"+1",
    "a bare dot": b".5",
    "a hexadecimal number": b"0x1",
    "digits of another script": "\u0663".encode(),
    "a raw control character": b'"a\nb"',
    "an unknown escape": b'"\\x41"',
    "an open string": b'"abc',
    "an open string behind many brackets": b"[" * 65 + b'"',
    "an open array": b"[1",
    "a space of another script": "\u00a01".encode(),
    "one level too many": b"[" * (JSON_DEPTH_MAX + 1) + b"]" * (JSON_DEPTH_MAX + 1),
    "one object too many": b'{"a":' * (JSON_DEPTH_MAX + 1) + b"1" + b"}" * (JSON_DEPTH_MAX + 1),
    "a hundred thousand arrays": b"[" * 100_000,
    "a hundred thousand arrays, closed": b"[" * 100_000 + b"]" * 100_000,
    "a hundred thousand objects": b'{"a":' * 100_000,
    "deep arrays behind a string with brackets": b'["\\"]]]]' + b"]" * 99 + b'",' + b"[" * 100_000,
}


@pytest.mark.parametrize("data", REFUSED.values(), ids=REFUSED.keys())
def test_what_is_not_strict_json_is_refused(data):
    with pytest.raises(BadJson) as caught:
        decode_strict(data)
    assert caught.value.code == "BAD_JSON"
    assert caught.value.http_status == 400
    caught.value.message.encode()


@given(values)
def test_what_json_can_say_is_read_as_it_was_written(value):
    for ensure_ascii in (True, False):
        data = json.dumps(value, ensure_ascii=ensure_ascii).encode()
        assert decode_strict(data) == value


@given(st.binary(max_size=64) | st.text('[]{}":,\\u0dD8eE+-1. \nnultrfas', max_size=64).map(str.encode))
def test_any_bytes_are_either_read_or_refused_clearly(data):
    with suppress(BadJson):
        decode_strict(data)


def test_nesting_up_to_the_limit_is_read():
    decode_strict(b"[" * JSON_DEPTH_MAX + b"]" * JSON_DEPTH_MAX)
    wide = b"[" + b",".join([b'{"a":[]}'] * 1_000) + b"]"
    assert len(decode_strict(wide)) == 1_000


def test_brackets_in_strings_are_not_nesting():
    text = '[{"' * 1_000
    assert decode_strict(json.dumps([text, {text: text}]).encode()) == [text, {text: text}]


def test_a_whole_surrogate_pair_and_an_escaped_backslash_are_fine():
    assert decode_strict(b'["\\ud83d\\ude00", "\\\\ud800"]') == ["\U0001f600", "\\ud800"]


def test_numbers_keep_their_kind_and_every_digit():
    assert decode_strict(b"[9007199254740993, 1.0, -0, 1E2]") == [9007199254740993, 1.0, 0, 100.0]
    kinds = [type(number) for number in decode_strict(b"[9007199254740993, 1.0, -0, 1E2]")]
    assert kinds == [int, float, int, float]
    longest = "9" * JSON_INTEGER_DIGITS_MAX
    assert decode_strict(longest.encode()) == int(longest)


def test_a_text_above_the_size_limit_is_refused_before_it_is_read():
    with pytest.raises(PayloadTooLarge) as caught:
        decode_strict(b"[" * (PAYLOAD_BYTES_MAX + 1))
    assert caught.value.code == "PAYLOAD_TOO_LARGE"
    assert caught.value.fields["size_bytes"] == PAYLOAD_BYTES_MAX + 1
    assert decode_strict(b"123", bytes_max=3) == 123
    with pytest.raises(PayloadTooLarge):
        decode_strict(b"1234", bytes_max=3)


def test_the_duplicate_key_is_named():
    with pytest.raises(BadJson, match="'amount' more than once") as caught:
        decode_strict(b'{"amount":1,"amount":2}')
    assert caught.value.fields["key"] == "amount"


@pytest.mark.timeout(20)
@pytest.mark.slow
def test_the_worst_texts_of_full_size_are_judged_in_bounded_time():
    """No input of legal size may cost more than linear time."""
    many_keys = ",".join(f'"{number}":0' for number in range(80_000))
    worst = [
        b"[" + b"[]," * 300_000 + b"[]]",
        b'"' + b"\\" * (PAYLOAD_BYTES_MAX - 2) + b'"',
        b"[" * 65 + b'"' * 1_000_000,
        f'{{{many_keys},"79999":1}}'.encode(),
        b"1" * 1_000_000,
        b"1." + b"1" * 1_000_000,
    ]
    for data in worst:
        with suppress(BadJson):
            decode_strict(data)
