"""Tokens of callbacks: good for one attempt of one tenant until an instant, and for nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.core.remote.requests import StepFence
from tallystick.core.remote.tokens import TOKEN_GRACE_MS, CallbackKeys, read_callback_keys
from tallystick.errors import BadCallbackKeys

NEW, OLD = "n" * 32, "o" * 40
KEYS = read_callback_keys(f"new:{NEW},old:{OLD}")
FENCE = StepFence("job-1", "ocr", 1, "lease-1")
TOKEN = KEYS.token("acme", FENCE, 1_000)


def test_a_token_speaks_for_its_tenant_until_it_is_over():
    over = 1_000 + TOKEN_GRACE_MS
    assert KEYS.tenant(TOKEN, FENCE, over - 1) == "acme"
    assert KEYS.tenant(TOKEN, FENCE, over) is None


@pytest.mark.parametrize(
    "other",
    [
        FENCE._replace(job_id="job-2"),
        FENCE._replace(step_id="ocr2"),
        FENCE._replace(attempt_no=2),
        FENCE._replace(lease_id="lease-2"),
        FENCE._replace(job_id="job-1o", step_id="cr"),
    ],
)
def test_a_token_is_worth_nothing_for_another_attempt(other: StepFence):
    assert KEYS.tenant(TOKEN, other, 0) is None


@given(st.integers(0, len(TOKEN) - 1), st.integers(0, 7))
def test_no_flipped_bit_is_accepted(place: int, bit: int):
    changed = TOKEN[:place] + chr(ord(TOKEN[place]) ^ 1 << bit) + TOKEN[place + 1 :]
    assert KEYS.tenant(changed, FENCE, 0) is None


@given(st.text())
def test_any_text_is_refused_without_an_error(text: str):
    assert KEYS.tenant(text, FENCE, 0) is None


def test_a_token_names_its_tenant_and_cannot_name_another():
    kid, exp, _tenant, mac = TOKEN.split(".")
    stolen = KEYS.token("other", FENCE, 1_000).split(".")[2]
    assert KEYS.tenant(f"{kid}.{exp}.{stolen}.{mac}", FENCE, 0) is None


@given(st.text(min_size=1, max_size=40), st.integers(0, 10**14))
def test_every_tenant_comes_back_as_it_was(tenant_id: str, now: int):
    token = KEYS.token(tenant_id, FENCE, now + 1) if _is_text(tenant_id) else None
    assert token is None or KEYS.tenant(token, FENCE, now) == tenant_id


def test_old_keys_are_accepted_and_the_newest_signs():
    assert TOKEN.startswith("new.")
    before = read_callback_keys(f"old:{OLD}")
    assert KEYS.tenant(before.token("acme", FENCE, 1_000), FENCE, 0) == "acme"
    assert before.tenant(TOKEN, FENCE, 0) is None


@pytest.mark.parametrize(
    "text", ["", "a", "a:short", f":{NEW}", f"a b:{NEW}", f"a:{NEW},a:{OLD}", f"a.b:{NEW}"]
)
def test_keys_that_cannot_be_used_are_refused_without_showing_them(text: str):
    with pytest.raises(BadCallbackKeys) as caught:
        read_callback_keys(text)
    assert NEW not in str(caught.value)


def test_no_secret_is_printed():
    assert NEW not in f"{KEYS!r}{KEYS!s}"
    assert isinstance(KEYS, CallbackKeys)


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
