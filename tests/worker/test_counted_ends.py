"""How many jobs a worker has ended is counted by the minute; what is left to count goes with its farewell."""

from __future__ import annotations

from collections import Counter

import pytest

from tallystick import Fatal
from tallystick.errors import JobFailed


def test_what_a_worker_has_ended_is_counted_by_state(app):
    @app.workflow
    def good() -> None: ...

    @app.workflow
    def bad() -> None:
        raise Fatal("no")

    with app.worker():
        for _ in range(3):
            good.submit().result(30)
        with pytest.raises(JobFailed):
            bad.submit().result(30)
    store = app.runtime().store
    ended = Counter()
    for minute, state, count in store.ended(0):
        assert minute > 0
        ended[state] += count
    assert ended == {"SUCCEEDED": 3, "FAILED_FINAL": 1}
    assert store.workers(9) == []
