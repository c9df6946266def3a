"""Limits: names that are safe everywhere, sizes that end, texts that fit."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.core import limits
from tallystick.core.limits import (
    KEY_CHARS_MAX,
    NAME_CHARS_MAX,
    check_key,
    check_name,
    check_size,
    check_text,
    clip_text,
)
from tallystick.errors import BadName, PayloadTooLarge

NAME_RULE = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$", re.ASCII)

any_text = st.text(max_size=8) | st.text("aZ09._-/ \n\x00é", max_size=8)


@given(any_text | st.text("a.", min_size=126, max_size=130))
def test_a_name_is_accepted_exactly_when_it_follows_the_rule(text):
    legal = NAME_RULE.match(text) is not None and not text.endswith((".", "\n"))
    if legal:
        assert check_name("queue", text) == text
    else:
        with pytest.raises(BadName):
            check_name("queue", text)


@pytest.mark.parametrize("text", ["a", "0", "default", "mail.eu-1", "a..b", "A_b", "x" * NAME_CHARS_MAX])
def test_these_names_are_fine(text):
    assert check_name("tenant", text) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        ".",
        "..",
        "../etc",
        "a.",
        "a\n",
        "a b",
        "-a",
        "_a",
        "a/b",
        "a\\b",
        "a%2e",
        "a\x00",
        "\u0430dmin",
        "caf\u00e9",
        "\uff41",
        "\u0661",
        "a\ud800",
        "x" * (NAME_CHARS_MAX + 1),
        "x" * 10_000,
    ],
)
def test_these_names_are_refused_with_the_rule(text):
    with pytest.raises(BadName, match="cannot be a tenant: use 1 to 128") as caught:
        check_name("tenant", text)
    assert caught.value.code == "BAD_NAME"
    assert caught.value.fields["kind"] == "tenant"
    assert len(caught.value.message) < 700
    caught.value.message.encode("ascii")


@given(any_text)
def test_a_key_is_accepted_exactly_when_it_is_visible_ascii(text):
    if text and all("!" <= char <= "~" for char in text):
        assert check_key("idempotency key", text) == text
    else:
        with pytest.raises(BadName):
            check_key("idempotency key", text)


def test_a_key_ends_at_its_limit():
    check_key("idempotency key", "k" * KEY_CHARS_MAX)
    for text in ("k" * (KEY_CHARS_MAX + 1), "key\n", "two words"):
        with pytest.raises(BadName, match="255 visible ASCII"):
            check_key("idempotency key", text)


def test_a_size_is_refused_only_above_its_limit():
    check_size("result", 10, 10)
    with pytest.raises(PayloadTooLarge, match="the result has 11 bytes and may have 10") as caught:
        check_size("result", 11, 10)
    assert caught.value.fields == {"kind": "result", "size_bytes": 11, "bytes_max": 10}


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=40), st.integers(min_value=0, max_value=60))
def test_a_text_is_measured_in_bytes(text, bytes_max):
    if len(text.encode()) <= bytes_max:
        assert check_text("result", text, bytes_max) == text
    else:
        with pytest.raises(PayloadTooLarge):
            check_text("result", text, bytes_max)


@given(st.text(st.characters(), max_size=40), st.integers(min_value=0, max_value=60))
def test_clipped_text_fits_and_is_the_beginning(text, bytes_max):
    clipped = clip_text(text, bytes_max)
    storable = text.encode("utf-8", "replace").decode().replace("\0", "?")
    assert len(clipped.encode()) <= bytes_max
    assert storable.startswith(clipped)
    if len(storable.encode()) <= bytes_max:
        assert clipped == storable
    else:
        assert len(clipped.encode()) > bytes_max - 4


def test_every_limit_is_a_positive_integer_whose_name_says_its_unit():
    units = {"BYTES", "CHARS", "DEPTH", "DIGITS", "KEYS", "TAGS", "JOBS", "BUNDLES", "ROWS", "CHILDREN", "MS"}
    units |= {"ENTRIES", "RECORDS", "SIGNALS", "ATTEMPTS", "VALUES", "DIRECTIVES", "REPORTS"}
    others = ("KIB", "MIB", "PRIORITY_BEST", "PRIORITY_WORST")  # units, and the ends of a range
    named = {
        name: value
        for name, value in vars(limits).items()
        if name.isupper() and name[0] != "_" and name not in others
    }
    assert named
    for name, value in named.items():
        assert type(value) is int, name
        assert value > 0, name
        words = name.split("_")
        before = words[-1] in ("MAX", "DEFAULT") and words[-2] in units
        assert before or (words[-2] == "WARN" and words[-1] in units), name


def test_the_limits_that_specifications_and_rulings_fix_have_these_values():
    assert limits.PAYLOAD_BYTES_MAX == 1_048_576
    assert limits.CALLBACK_BYTES_MAX == 262_144
    assert limits.HEADER_BYTES_MAX == 16_384
    assert limits.ERROR_TEXT_BYTES_MAX == 2_048
    assert limits.JSON_DEPTH_MAX == 64
    assert limits.LEG2_ENTRIES_MAX == 99_999_999
    assert limits.HISTORY_WARN_RECORDS == 1_000
    assert limits.TX_MS_MAX == 1_000
    assert limits.HELD_BACKOFF_MS_MAX == 5_000
    assert limits.HELD_WAIT_MS_MAX == 200
