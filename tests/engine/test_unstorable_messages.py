"""A message for a job whose id no store can hold is refused alone."""

from __future__ import annotations

import pytest

from tallystick import Delivered
from tallystick.errors import BadInput
from tallystick.store.api import Deliver


@pytest.mark.parametrize("text", ["a\0b", "a\udcffb"], ids=["NUL", "surrogate"])
def test_a_message_for_what_no_store_can_hold_does_not_take_its_neighbours_with_it(app, text):
    @app.workflow
    def flow() -> None: ...

    jobs = [flow.submit() for _ in range(3)]
    ids = [jobs[0].id, jobs[1].id, text, jobs[2].id]
    bundles = [(Deliver(f"m{n}", job_id, "signal", "go", "1"),) for n, job_id in enumerate(ids)]
    *delivered, last = app.runtime().store.apply(bundles)
    assert [type(outcome).__name__ for outcome in (*delivered[:2], last)] == ["Delivered"] * 3
    assert delivered[2] is Delivered.ABSENT or isinstance(delivered[2], BadInput)
