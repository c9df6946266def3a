"""Pictures on PostgreSQL: what the decisions of a flush want to see, locked and read in one round trip."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from tallystick.core.pictures import Activity, JobFacts, Lease, LostAttempts, Message, Now, Picture, Pictures
from tallystick.core.verbs.wants import Wants
from tallystick.store.postgres.server.connection import ServerAnswer
from tallystick.store.postgres.server.wire import texts
from tallystick.store.postgres.statements import sql
from tallystick.store.sql.effect_pictures import add_effects, add_keys, add_lost, add_waiters
from tallystick.store.sql.protocol_pictures import HOMES, add_homes, add_remotes, add_undelivered
from tallystick.store.sql.reads import listed

if TYPE_CHECKING:
    from tallystick.store.postgres.writer import PostgresBatch


from collections.abc import Mapping
from typing import TYPE_CHECKING

from tallystick import crash
from tallystick.errors import InvariantBroken, StaleLease
from tallystick.store.api import Bundle, Outcome
from tallystick.store.planning import decide_bundles, kinds_of, wants_of
from tallystick.store.postgres.applying import Writes
from tallystick.store.postgres.crash_points import AROUND

if TYPE_CHECKING:
    from tallystick.store.postgres.writer import PostgresBatch


# How many signals of one name are read at first; a decision that finds no answer among them wants all.
_SIGNALS: Final = 8


class PictureLook:
    """One look at the jobs of a flush: sent first, and read when the answers are there."""

    def __init__(
        self, writing: PostgresBatch, wants: Sequence[Wants], *, whole: bool = False, also: Iterable[str] = ()
    ) -> None:
        """Send the look: lock the rows, and then read; `also` names jobs to lock and not to look at."""
        self._writing = writing
        self._wants = wants
        self._whole = whole
        own = {each.job_id for each in wants}
        lost = [each.lost for each in wants if each.lost is not None]
        # A sweep does not wait: of what it wants it takes what it can have.
        awaited = {each.job_id for each in wants if each.lost is None}
        ending = texts([each.job_id for each in wants if each.ends]) if wants else "{}"
        begun = texts([each.job_id for each in wants if each.begun])
        guids = texts(sorted({guid for each in wants for guid in each.guids}))
        jobs = texts(sorted(own))
        times = writing.times
        effects = texts([each.job_id for each in wants if each.effects])
        keys = self._lock(texts(sorted({*awaited, *also})), ending, effects)
        self._taken = (
            self._ask("lock_expired", _json([(*each.fence, each.unit) for each in lost])) if lost else None
        )
        self._now = self._ask("now", times.wall)
        self._jobs = self._ask("picture_jobs", jobs, ending)
        self._parents = self._ask("picture_parents", ending) if ending != "{}" else None
        self._leases = self._ask("picture_leases", jobs, ending, times.epoch, times.lease)
        self._activities = [
            self._ask("picture_open", texts([each.job_id for each in wants if each.open])),
            self._ask("picture_entered", guids, begun),
            self._ask(
                "picture_groups", _json([(each.job_id, *each.place) for each in wants if each.place]), ending
            ),
        ]
        # How many of each name; one that finds as many may have more behind them.
        self._bounds = {(each.job_id, name): _SIGNALS + each.ahead for each in wants for name in each.signals}
        signals = [(*key, None if whole else bound) for key, bound in self._bounds.items()]
        self._messages = [self._ask("picture_messages", guids, ending, begun)]
        self._signals = self._ask("picture_signals", _json(signals)) if signals else None
        if early := [each.job_id for each in wants if each.early]:
            self._messages.append(self._ask("picture_early", texts(early)))
        children = [child for each in wants for child in each.children]
        self._children = self._ask("picture_children", listed(children)) if children else None
        self._homes = self._ask_for_homes(wants)
        self._remotes = self._ask_for_remotes(wants)
        held = [each.job_id for each in wants if each.undelivered]
        self._undelivered = self._ask("picture_undelivered", listed(held)) if held else None
        ends = [each.job_id for each in wants if each.end]
        self._ends = self._ask("picture_ends", texts(ends)) if ends else None
        self._pasts = (
            self._ask("picture_pasts", texts([each.fence.job_id for each in lost])) if lost else None
        )
        self._effects = self._ask_for_effects(effects, keys) if effects != "{}" else []

    def _ask(self, name: str, *parameters: object) -> ServerAnswer:
        return self._writing.connection.execute(sql(name), parameters)

    def _lock(self, jobs: str, ending: str, effects: str) -> str:
        """Hold jobs; before all rows the keys of effects, and their waiters; return the keys asked for."""
        keys = [key for each in self._wants for key in each.keys]
        if effects == "{}":
            self._ask("lock_pictures", jobs, ending)
        else:
            self._ask("lock_keys", texts(["\n".join(key) for key in keys]), effects)
            self._ask("lock_waiters", jobs, ending, effects)
        return _json(keys)

    def _ask_for_effects(self, jobs: str, keys: str) -> list[ServerAnswer]:
        """Ask for effects that are open, holders of keys, waiters for these effects, and losers of a key."""
        clock = (self._writing.times.epoch, self._writing.times.lease)
        return [
            self._ask("picture_effects", jobs, *clock),
            self._ask("picture_keys", keys),
            self._ask("picture_waiters", jobs, *clock),
            self._ask("picture_lost", listed([each.job_id for each in self._wants if each.effects])),
        ]

    def _ask_for_remotes(self, wants: Sequence[Wants]) -> list[ServerAnswer]:
        """Ask for remote steps, and for those of their results that were not taken."""
        if results := [each.job_id for each in wants if each.results]:
            self._messages.append(self._ask("picture_results", texts(results)))
        places = [(each.job_id, *each.remote) for each in wants if each.remote is not None]
        asked = [self._ask("picture_remote", _json(places))] if places else []
        homes = [each.job_id for each in wants if each.remotes]
        return [*asked, self._ask("picture_remotes", listed(homes))] if homes else asked

    def _ask_for_homes(self, wants: Sequence[Wants]) -> list[ServerAnswer]:
        """Ask what directives say of jobs with remote steps, and what of these is not out."""
        homes = [each.job_id for each in wants if each.remotes]
        return [self._ask(name, listed(homes)) for name in HOMES] if homes else []

    def _add_remotes(self, pictures: Pictures) -> None:
        if self._homes:
            add_homes(pictures, *(answer.fetchall() for answer in self._homes))
        for answer in self._remotes:
            add_remotes(pictures, answer.fetchall())
        if self._undelivered is not None:
            add_undelivered(pictures, self._undelivered.fetchall())

    def seen(self) -> tuple[Pictures, Now]:
        """Return the pictures, and the time that was read after the locks."""
        ((wall,),) = self._now.fetchall()
        pictures = pictures_of(self._jobs.fetchall())
        for job_id, *lease in self._leases.fetchall():
            pictures[job_id].lease = Lease._make(lease)
        self._add_parents(pictures)
        for answer in self._activities:
            add_activities(pictures, answer.fetchall())
        for answer in self._messages:
            add_messages(pictures, answer.fetchall())
        if self._signals is not None:
            self._add_signals(pictures, self._signals.fetchall())
        if self._children is not None:
            there = frozenset(job_id for (job_id,) in self._children.fetchall())
            for each in self._wants:
                if each.children and each.job_id in pictures:
                    picture = pictures[each.job_id]
                    picture.asked = picture.asked.union(each.children)
                    picture.children = there & picture.asked
        for job_id, n, head in self._ends.fetchall() if self._ends is not None else ():
            if job_id in pictures:
                pictures[job_id].end = (n, head)
        self._add_remotes(pictures)
        self._add_lost(pictures)
        self._add_effects(pictures)
        return pictures, Now(wall)

    def _add_parents(self, pictures: Pictures) -> None:
        """Note which of the jobs that may end have children."""
        for (job_id,) in self._parents.fetchall() if self._parents is not None else ():
            pictures[job_id].has_open_children = True

    def _add_lost(self, pictures: Pictures) -> None:
        """Add what lost attempts are judged by, of those that no other transaction holds."""
        taken = {job_id for (job_id,) in self._taken.fetchall()} if self._taken is not None else set()
        for job_id, *past in self._pasts.fetchall() if self._pasts is not None else ():
            if job_id in taken:
                pictures[job_id].past = LostAttempts._make(past)

    def _add_effects(self, pictures: Pictures) -> None:
        """Add the open effects of jobs that were asked for them, the holders of keys, and the waiters."""
        for each in self._wants:
            if each.effects and each.job_id in pictures:
                pictures[each.job_id].effects = {}
        adding = (add_effects, add_keys, add_waiters, add_lost)
        for add, answer in zip(adding, self._effects, strict=False):
            add(pictures, answer.fetchall())

    def _add_signals(self, pictures: Pictures, rows: list[tuple[Any, ...]]) -> None:
        signals = add_messages(pictures, rows)
        if self._whole:
            return
        for key, count in Counter((signal.job_id, signal.name) for signal in signals).items():
            job_id, _name = key
            if count >= self._bounds[key] and job_id in pictures:
                pictures[job_id].whole = False


def pictures_of(rows: Iterable[tuple[Any, ...]]) -> Pictures:
    """Return the pictures of these jobs, with nothing but their own facts."""
    return Pictures({job.job_id: Picture(job) for job in map(JobFacts._make, rows)})


def add_activities(pictures: Pictures, rows: Iterable[tuple[Any, ...]]) -> None:
    """Add activities to the pictures of their jobs."""
    for row in rows:
        activity = Activity._make(row)
        if activity.job_id in pictures:
            pictures[activity.job_id].activities[activity.place] = activity


def add_messages(pictures: Pictures, rows: Iterable[tuple[Any, ...]]) -> list[Message]:
    """Add messages to the pictures of their jobs, and return them."""
    messages = [Message._make(row) for row in rows]
    for message in messages:
        if message.job_id in pictures:
            pictures[message.job_id].messages[message.guid] = message
    return messages


def _json(rows: object) -> str:
    return msgspec.json.encode(rows).decode()


class PlannedBundles:
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
