"""Bundles that are decided from pictures: one look for all of them, and one round of writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tallystick import crash
from tallystick.core.pictures import Now, Pictures
from tallystick.core.verbs.wants import Wants
from tallystick.errors import InvariantBroken, StaleLease
from tallystick.store.api import Bundle, Outcome
from tallystick.store.planning import decide_bundles, kinds_of, wants_of
from tallystick.store.postgres.applying import Writes
from tallystick.store.postgres.crash_points import AROUND
from tallystick.store.postgres.looking import PictureLook

if TYPE_CHECKING:
    from tallystick.store.postgres.writer import PostgresBatch


class Flush:
    """The planned bundles of a flush: looked at in one round trip, decided in order, ready to be sent."""

    def __init__(
        self,
        writing: PostgresBatch,
        batch: Sequence[Bundle],
        wants: Mapping[int, Sequence[Wants]],
        look: PictureLook,
    ) -> None:
        """Decide everything; nothing is sent yet."""
        self._writing = writing
        self._batch = batch
        bundles = {index: batch[index] for index in wants}
        self._kinds = kinds_of(bundles.values())
        self._around(0)
        self._writes, self.outcomes, self._again = _decided(writing, bundles, wants, *look.seen())

    def _around(self, side: int) -> None:
        for kind in self._kinds:
            crash.point(AROUND[kind][side])

    def send(self) -> None:
        """Send all writes."""
        self._writes.send()
        self._around(1)

    def finished(self) -> dict[int, Outcome | BaseException]:
        """Write by itself what wanted to see more, and return what came of everything."""
        for index in self._again:
            self.outcomes[index] = write_whole(self._writing, self._batch[index])
        return self.outcomes


def write_whole(writing: PostgresBatch, bundle: Bundle) -> Outcome | BaseException:
    """Decide one bundle by itself, from pictures that leave nothing out, and write it."""
    wants = wants_of(bundle, whole=True)
    with writing.connection.pipeline():
        look = PictureLook(writing, wants, whole=True)
    writes, outcomes, again = _decided(writing, {0: bundle}, {0: wants}, *look.seen())
    if again:
        return InvariantBroken("a whole picture is not enough", statement=type(bundle[-1]).__name__)
    with writing.connection.pipeline():
        writes.send()
    return outcomes[0]


def _decided(
    writing: PostgresBatch,
    bundles: Mapping[int, Bundle],
    wants: Mapping[int, Sequence[Wants]],
    pictures: Pictures,
    now: Now,
) -> tuple[Writes, dict[int, Outcome | BaseException], list[int]]:
    """Decide bundles, and gather what they write and the reports that came too late."""
    decided = decide_bundles(pictures, bundles, wants, now)
    writes = Writes(writing, now.wall)
    writes.add(decided.writes)
    writing.wakes = writing.wakes or decided.wakes
    for primitive, error in decided.refused:
        writing.at = primitive
        if isinstance(error, StaleLease):
            writing.report(primitive)
    return writes, decided.outcomes, decided.again
