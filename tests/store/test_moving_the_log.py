"""When the log is moved into the database: a short one if that costs little, a long one in any case."""

from __future__ import annotations

from pathlib import Path

from tallystick.clock import VirtualClock
from tallystick.store.sqlite.store import CHECKPOINT_PAGES, SqliteStore
from tallystick.testing.conformance.drafts import submission

WORTHWHILE_PAGES = 256


class Ticking(VirtualClock):
    """A clock on which whatever is measured takes a second."""

    def monotonic(self) -> float:
        self.advance(1_000)
        return super().monotonic()


def fill(store: SqliteStore, clock: VirtualClock, pages: int) -> None:
    while store._pages < pages:
        store.apply([(submission(clock, payload='"' + "x" * 200_000 + '"'),)])


def test_a_short_log_is_moved_unless_it_was_a_moment_ago_and_a_long_one_always(tmp_path: Path):
    clock = Ticking()
    store = SqliteStore(tmp_path / "shop.db", clock)
    log = tmp_path / "shop.db-wal"
    fill(store, clock, 2 * WORTHWHILE_PAGES)
    store.checkpoint()
    assert store._pages == 0
    size = log.stat().st_size
    fill(store, clock, WORTHWHILE_PAGES)
    assert log.stat().st_size < 1.5 * size, "it was written over"
    store.checkpoint()
    assert store._pages >= WORTHWHILE_PAGES, "the last move took a second, and ended a second ago"
    fill(store, clock, CHECKPOINT_PAGES)
    store.checkpoint()
    assert store._pages == 0
    fill(store, clock, WORTHWHILE_PAGES)
    clock.advance(20_000)
    store.checkpoint()
    assert store._pages == 0
    store.close()
