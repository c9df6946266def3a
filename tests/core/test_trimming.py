"""Which turns of a loop go, for every number that is kept: never too many, never too few for long."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tallystick.core.verbs.trimming import last_to_go, trims_now
from tallystick.store.api import TurnEnd


@given(
    keep=st.integers(1, 12),
    lengths=st.lists(st.integers(2, 9), min_size=1, max_size=80),
    most=st.integers(1, 60),
)
def test_a_loop_keeps_what_it_is_told_to_and_at_most_twice_as_much(keep, lengths, most):
    ends: list[TurnEnd] = []
    before = last = 0
    for turn, length in enumerate(lengths):
        last += length
        if trims_now(turn, keep):
            while (going := last_to_go(ends, before, turn, keep, most)) is not None:
                removed = [end for end in ends if end.n <= going.n]
                assert going.n - before <= most or len(removed) == 1, "at most so many facts, or one turn"
                ends, before = ends[len(removed) :], going.n
            assert len(ends) + 1 == keep, "this turn is one of those that are kept"
        assert len(ends) + 1 < 2 * keep or keep == 1
        assert len(ends) + 1 >= min(keep, turn + 1)
        ends.append(TurnEnd(turn, last, b"", turn))
