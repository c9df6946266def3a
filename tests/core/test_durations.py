"""Durations: what people write becomes milliseconds, and nothing absurd gets through."""

from __future__ import annotations

import math
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.core.durations import duration_ms
from tallystick.core.limits import DURATION_MS_MAX
from tallystick.errors import BadDuration


@pytest.mark.parametrize(
    ("written", "ms"),
    [
        ("30s", 30_000),
        ("15m", 900_000),
        ("2d", 172_800_000),
        ("1h30m", 5_400_000),
        ("1h 30m", 5_400_000),
        (" 2 h ", 7_200_000),
        ("500ms", 500),
        ("1s500ms", 1_500),
        ("1m1ms", 60_001),
        ("1w2d3h4m5s6ms", 788_645_006),
        ("1.5h", 5_400_000),
        ("0.5ms", 1),
        ("0s", 0),
        ("30", 30_000),
        ("0.25", 250),
        (30, 30_000),
        (0, 0),
        (0.25, 250),
        (16.1, 16_100),
        (0.0001, 1),
        (timedelta(minutes=5), 300_000),
        (timedelta(microseconds=1), 1),
        (timedelta(0), 0),
    ],
)
def test_these_durations_have_these_milliseconds(written, ms):
    assert duration_ms(written) == ms


@pytest.mark.parametrize(
    "written",
    [
        "",
        " ",
        "s",
        "abc",
        "10 parsecs",
        "5M",
        "1m1h",
        "1h1h",
        "-5s",
        "+5s",
        "1e3",
        "1,5s",
        ".5s",
        "5.s",
        "1h\n;",
        "nan",
        "inf",
        "infinity",
        "\u0665s",
        "9" * 400 + "s",
        "9" * 5_000,
        "36501d",
        -1,
        -0.001,
        math.nan,
        math.inf,
        -math.inf,
        1e300,
        [10**400],
        [-(10**5_000)],
        True,
        False,
        None,
        timedelta(microseconds=-1),
        timedelta(days=36_501),
    ],
)
def test_what_is_no_duration_is_refused_clearly(written):
    value = written[0] if isinstance(written, list) else written
    with pytest.raises(BadDuration) as caught:
        duration_ms(value)
    assert caught.value.code == "BAD_DURATION"
    assert len(caught.value.message) < 250


@given(st.integers(min_value=0, max_value=DURATION_MS_MAX))
def test_a_whole_number_of_milliseconds_is_kept_exactly(ms):
    assert duration_ms(timedelta(milliseconds=ms)) == ms
    assert duration_ms(f"{ms}ms") == ms
    assert duration_ms(f"{ms // 1000}s{ms % 1000}ms") == ms


@given(st.floats(min_value=0, max_value=3e9))
def test_a_duration_is_never_shortened_by_more_than_its_resolution(seconds):
    ms = duration_ms(seconds)
    assert timedelta(milliseconds=ms) >= timedelta(seconds=seconds)
    assert timedelta(milliseconds=ms) - timedelta(seconds=seconds) < timedelta(milliseconds=1)
