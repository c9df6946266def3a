"""Keys are legal for the service, different for different things, and in the order of what they name."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.errors import BadInput, PayloadTooLarge
from tallystick.store.azure import keys
from tallystick.store.azure.address import read_address
from tallystick.store.azure.entities import PIECE_CHARS, check_births, packed, unpacked
from tallystick.testing.conformance.protocol_runs import command
from tests.azure.service import Cut
from tests.azure.worlds import ModelSubject

TEXT = st.text(max_size=40)
LEGAL = re.compile(r"[A-Za-z0-9\-_. !~]{1,512}")


@given(st.lists(TEXT, min_size=1, max_size=2), st.lists(TEXT, min_size=1, max_size=2))
def test_a_key_is_legal_and_two_things_never_share_one(one: list[str], other: list[str]):
    assert LEGAL.fullmatch(keys.key(*one))
    assert (keys.key(*one) == keys.key(*other)) == (one == other)


@given(st.text(min_size=200, max_size=600), st.text(min_size=200, max_size=600))
def test_long_texts_keep_their_keys_apart(one: str, other: str):
    assert len(keys.key(one, other)) <= 512
    assert (keys.encoded(one) == keys.encoded(other)) == (one == other)


@given(st.integers(0, 10**15 - 1), st.integers(0, 10**15 - 1))
def test_what_is_due_is_in_the_order_of_its_instants(one: int, other: int):
    first, second = keys.due_row(one, "j", 1), keys.due_row(other, "j", 1)
    assert (first < second) == (one < other)
    assert keys.due_instant(first) == one


@given(st.dictionaries(st.sampled_from("abc"), st.one_of(st.none(), st.integers(), st.text(), st.booleans())))
def test_what_was_packed_is_read_again(values: dict[str, str | int | bool | None]):
    assert unpacked(packed(values)) == {name: value for name, value in values.items() if value is not None}


@given(st.integers(1, 3 * PIECE_CHARS + 1), st.sampled_from(["x", "é", "𝄞"]))
def test_a_long_text_is_kept_in_pieces_that_fit(length: int, character: str):
    kept = packed({"a": character * length, "b": "b"})
    assert all(len(str(piece).encode("utf-16-le")) <= 65_536 for piece in kept.values())
    assert unpacked(kept) == {"a": character * length, "b": "b"}


def test_a_job_sorts_before_its_steps():
    assert keys.step_row(0, "!") > keys.HEAD
    assert [keys.step_row(n, "s") for n in range(99)] == sorted(keys.step_row(n, "s") for n in range(99))


@pytest.mark.parametrize(
    "url", ["azure://", "azure://shop", "azure:///x", "azure://shop/a-b", "azure://u:p@s/x"]
)
def test_an_address_says_how_it_is_written_and_repeats_nothing(url: str):
    with pytest.raises(BadInput) as refused:
        read_address(url)
    assert "azure://ACCOUNT/PREFIX" in str(refused.value)
    assert "u:p" not in str(refused.value)


@pytest.mark.parametrize("chars", [240_000, 500_000])
def test_a_command_that_cannot_fit_is_refused_before_anything_is_reserved(chars: int):
    subject = ModelSubject()
    request = command(1)
    large = request._replace(job=request.job._replace(payload=f'{{"n":"{"x" * chars}"}}'))
    subject.client.left = 0
    (refused,) = subject.store.apply([(large,)])
    assert isinstance(refused, PayloadTooLarge)
    assert not subject.client.tables.rows


def test_a_command_of_the_largest_size_takes_the_largest_result():
    subject = ModelSubject()
    request = command(1)
    large = request._replace(job=request.job._replace(payload=f'{{"n":"{"x" * 200_000}"}}'))
    subject.client.left = 0
    with pytest.raises(Cut):
        subject.store.apply([(large,)])


def test_a_hundred_steps_are_too_many():
    with pytest.raises(PayloadTooLarge, match="99"):
        check_births("command", [{"a": "x"}] * 101, [])
