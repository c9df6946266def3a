"""The doors to time and chance."""

from __future__ import annotations

import uuid

from tallystick.clock import SystemClock, VirtualClock
from tallystick.ids import CountingIds, SystemIds


def test_identifiers_are_version_7_uuids_in_the_order_they_were_drawn():
    source = SystemIds()
    drawn = [source.new() for _ in range(5_000)]
    assert drawn == sorted(set(drawn))
    assert {(uuid.UUID(text).version, uuid.UUID(text).variant) for text in drawn} == {(7, uuid.RFC_4122)}


def test_a_batch_of_identifiers_is_unique_and_ascends_whatever_it_begins_with():
    """The tail of a UUID overflows into its front in the middle of a batch, and order stays."""
    for tail in ((1 << 48) - 5, (1 << 62) - 5, (1 << 74) - 5, 1 << 61):
        source = SystemIds()
        source._last = (1 << 121) + tail  # far in the future, so that the clock does not matter
        before = source.new()
        drawn = source.many(20_000)
        assert [before, *drawn] == sorted({before, *drawn})
        assert {(text[14], text[19] in "89ab", len(text)) for text in drawn} == {("7", True, 36)}
        assert source.new() > drawn[-1]
        assert str(uuid.UUID(drawn[-1])) == drawn[-1]


def test_tokens_are_128_bits_and_never_repeat():
    source = SystemIds()
    tokens = {source.token() for _ in range(1_000)}
    assert len(tokens) == 1_000
    assert all(len(bytes.fromhex(token)) == 16 for token in tokens)


def test_counting_ids_can_be_foreseen_and_sort_in_order():
    first, second = CountingIds(), CountingIds()
    assert [first.new() for _ in range(12)] == [second.new() for _ in range(12)]
    assert first.random() == second.random()
    assert first.new() < first.token()


def test_the_virtual_clock_moves_only_when_told():
    clock = VirtualClock()
    wall, boot = clock.wall_ms(), clock.boot_ms()
    clock.advance(500)
    assert (clock.wall_ms() - wall, clock.boot_ms() - boot) == (500, 500)
    clock.jump_wall(-3_600_000)
    assert (clock.wall_ms() - wall, clock.boot_ms() - boot) == (500 - 3_600_000, 500)
    assert clock.monotonic() * 1000 == clock.boot_ms()


def test_the_system_clock_reads_three_clocks():
    clock = SystemClock()
    assert clock.wall_ms() > 1_600_000_000_000
    assert clock.boot_ms() <= clock.boot_ms()
    assert clock.monotonic() <= clock.monotonic()


def test_random_numbers_lie_in_the_half_open_interval():
    source = SystemIds()
    assert all(0 <= source.random() < 1 for _ in range(1_000))
