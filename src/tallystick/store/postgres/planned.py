"""Bundles that are decided from pictures: one look for all of them, decisions in order, one round of writes.

A bundle that is refused plans nothing and takes no place; the others do not notice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from tallystick import crash
from tallystick.core.deciding import decide
from tallystick.core.pictures import Now, Pictures
from tallystick.core.plans import Refusal, Relook, Write
from tallystick.core.verbs.wants import Planned, Wants, wanted
from tallystick.errors import InvariantBroken, StaleLease
from tallystick.store.api import Bundle, Outcome, Primitive, Spawn, TakeAnswer
from tallystick.store.planning import NAMES
from tallystick.store.postgres.applying import Writes, expanded
from tallystick.store.postgres.crash_points import AROUND
from tallystick.store.postgres.looking import PictureLook

if TYPE_CHECKING:
    from tallystick.store.postgres.writer import PostgresBatch


class Decided:
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
        self.outcomes: dict[int, Outcome | BaseException] = {}
        self._again: list[int] = []
        self._kinds = sorted({NAMES[type(primitive)] for index in wants for primitive in batch[index]})
        self._around(0)
        pictures, now = look.seen()
        self._writes = Writes(writing, now.wall)
        jobs = {index: {want.job_id for want in wanted} for index, wanted in wants.items()}
        shared = _shared(pictures, jobs.values())
        for index, own in jobs.items():
            last = shared.isdisjoint(own)
            outcome = _decided(writing, self._writes, pictures, batch[index], own, now, last=last)
            if isinstance(outcome, Relook):
                self._again.append(index)
            else:
                self.outcomes[index] = outcome

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
    children = tuple(
        child.job_id
        for primitive in bundle
        if type(primitive) is Spawn
        for child, _fact in primitive.children
    )
    wants = [want._replace(children=children + want.children) for want in wants_of(bundle)]
    with writing.connection.pipeline():
        look = PictureLook(writing, wants, whole=True)
    pictures, now = look.seen()
    writes = Writes(writing, now.wall)
    outcome = _decided(writing, writes, pictures, bundle, {want.job_id for want in wants}, now)
    if isinstance(outcome, Relook):
        return InvariantBroken("a whole picture is not enough", statement=type(bundle[-1]).__name__)
    with writing.connection.pipeline():
        writes.send()
    return outcome


def wants_of(bundle: Bundle) -> list[Wants]:
    """Return what the requests of a bundle want to see; signals behind those that it takes itself."""
    wants = [wanted(_planned(primitive)) for primitive in bundle]
    takes = sum(type(primitive) is TakeAnswer for primitive in bundle)
    return [want._replace(ahead=want.ahead + takes) if want.signals else want for want in wants]


def _shared(pictures: Pictures, jobs: Iterable[set[str]]) -> set[str]:
    """Return the jobs at which more than one bundle looks: of its own, or of a child, which looks at both."""
    readers = Counter(job_id for own in jobs for job_id in own)
    shared = {job_id for job_id, count in readers.items() if count > 1}
    for job_id, picture in pictures.items():
        if picture.job.parent_job_id is not None:
            shared |= {job_id, picture.job.parent_job_id}
    return shared


def _decided(
    writing: PostgresBatch,
    writes: Writes,
    pictures: Pictures,
    bundle: Bundle,
    jobs: set[str],
    now: Now,
    *,
    last: bool = True,
) -> Outcome | BaseException | Relook:
    """Decide the requests of a bundle in their order; it is whole, or nothing of it is written.

    The `last` one to look at its jobs leaves no pictures for others.
    """
    seen = pictures if len(bundle) == 1 else pictures.overlay(jobs)
    accepted: list[Write] = []
    value: Outcome = None
    wakes = False
    for primitive in bundle:
        decision = decide(seen, _planned(primitive), now)
        if isinstance(decision, Refusal):
            writing.at = primitive
            if isinstance(decision.error, StaleLease):
                writing.report(primitive)
            return decision.error
        if isinstance(decision, Relook):
            return decision
        value = decision.outcome
        wakes = wakes or decision.wakes
        accepted += expanded(seen, decision.writes, now, last=last and primitive is bundle[-1])
    writes.add(accepted)
    pictures.update(seen)
    writing.wakes = writing.wakes or wakes
    return value


def _planned(primitive: Primitive) -> Planned:
    return primitive  # type: ignore[return-value]  # only these come here


def is_planned(bundle: Bundle) -> bool:
    """Tell whether every request of a bundle can be decided from pictures."""
    return all(type(primitive) in NAMES for primitive in bundle)
