"""What people and programs look at, alike on every SQL store: one statement per question, named rows back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Final

import msgspec

from tallystick.core.audit.book import ActivityRow, AttemptRow, Book, JobRest, Kept, StepRest, WholeJob
from tallystick.core.audit.removals import ChainEnd, LogEnd, PrunedRow
from tallystick.core.digits import GuidLedger
from tallystick.core.effects.rows import EffectRow
from tallystick.core.pictures import Activity, Message, Place
from tallystick.core.remote.keys import ApiKey
from tallystick.core.remote.listing import PROTOCOL, StepRow, protocol_page
from tallystick.core.remote.rows import (
    WITHDRAWN,
    OutboxLag,
    OutboxRow,
    ProtocolJob,
    ProtocolPicture,
    ProtocolStep,
)
from tallystick.core.remote.wire import STEPS_MAX
from tallystick.core.watching.acts import ActRow
from tallystick.store.api import (
    ChildRow,
    Group,
    Interrupted,
    JobRow,
    NewJob,
    OpenWait,
    OwedHook,
    ShownValue,
    StoredEvent,
)
from tallystick.store.inspection import JobHead, KeptKey, Narrowed, Reserved, StaleReports
from tallystick.store.sql.fact_reads import FactReads
from tallystick.store.sql.protocol_pictures import READS, pictures_of, remote_step

NEWEST: Final = "\x7f"
"""What stands behind every identifier of a job, for a page that begins with the newest."""

_BEFORE_ALL: Final = (-1, "", 0)
_ALL: Final = 2**63 - 1
_NEW: Final = len(NewJob._fields)
# The first digit that a message is given for what it does: a message with less was entered at most.
(_WORK_DONE,) = (field.weight for field in GuidLedger.FIELDS if field.name == "work_done")


class Reads(FactReads):
    """Answers that are true when they are given; nothing is decided by them without a guard."""

    def protocol(self, job_id: str) -> ProtocolPicture | None:
        """Return a protocol job with its steps and the directive that is not out."""
        return pictures_of(*(self.rows(name, (listed([job_id]),)) for name in READS)).get(job_id)

    def key(self, kid: str) -> ApiKey | None:
        """Return one API key."""
        return next((ApiKey._make(row) for row in self.rows("key", (kid,))), None)

    def keys(self) -> list[ApiKey]:
        """Return every API key."""
        return [ApiKey._make(row) for row in self.rows("keys")]

    def steps(self, job_id: str, after: tuple[int, str, int] | None, limit: int) -> list[StepRow]:
        """Return a page of the steps of a job."""
        first = self._steps(job_id, _BEFORE_ALL, 1)
        if first and first[0].kind == PROTOCOL:
            return protocol_page(self._steps(job_id, _BEFORE_ALL, STEPS_MAX), after, limit)
        return self._steps(job_id, after or _BEFORE_ALL, limit)

    def _steps(self, job_id: str, after: tuple[int, str, int], limit: int) -> list[StepRow]:
        return [StepRow._make(row) for row in self.rows("steps", (job_id, *after, limit))]

    def in_flight(self, tenant_id: str, limit: int) -> int:
        """Return how many protocol jobs of a tenant have not ended, counted up to a limit."""
        ((count,),) = self.rows("in_flight", (tenant_id, limit))
        return int(count)

    def is_reserved(self, tenant_id: str, scope: str, value: str) -> bool:
        """Tell whether a reservation is there."""
        return bool(self.rows("reserved", (tenant_id, scope, value)))

    def job(self, job_id: str) -> JobRow | None:
        """Return one job."""
        return next((JobRow._make(row) for row in self.rows("job", (job_id,))), None)

    def jobs(
        self,
        *,
        tenant_id: str | None,
        states: Sequence[str],
        handler: str | None,
        after: str | None,
        limit: int,
        tag: str | None = None,
    ) -> list[JobRow]:
        """Return a page of jobs, newest first."""
        asked = (tenant_id, listed(states), handler, after or NEWEST, limit)
        rows = self.rows("jobs", asked) if tag is None else self.rows("jobs_tagged", (*asked, tag))
        return [JobRow._make(row) for row in rows]

    def jobs_narrowed(
        self,
        narrowed: Narrowed,
        *,
        tenant_id: str | None,
        states: Sequence[str],
        handler: str | None,
        after: str | None,
        limit: int,
    ) -> list[JobRow]:
        """Return a page of jobs by the job that started them and when they were made, newest first."""
        asked = (tenant_id, listed(states), handler, after or NEWEST, limit)
        about = (int(narrowed.roots), narrowed.parent, narrowed.since, narrowed.until)
        return [JobRow._make(row) for row in self.rows("jobs_narrowed", (*asked, *about))]

    def ids_with(self, prefix: str, limit: int) -> list[str]:
        """Return identifiers of jobs that begin so; those of children only if the beginning is of one."""
        asked = (prefix, f"{prefix}~", int("." in prefix), limit)
        return [job_id for (job_id,) in self.rows("ids_with", asked)]

    def finished(self, job_ids: Sequence[str]) -> dict[str, JobRow | None]:
        """Return those of these jobs that have ended, and None for each that is not there."""
        found = ((wanted, JobRow._make(row)) for wanted, *row in self.rows("finished", (listed(job_ids),)))
        return {wanted: job if job.job_id else None for wanted, job in found}

    def interrupted(self, job_ids: Sequence[str]) -> list[Interrupted]:
        """Return those of these jobs that are asked to end, held, or have ended."""
        found = self.rows("interrupted", (listed(job_ids),))
        return [Interrupted(job_id, bool(asked), hold, bool(ended)) for job_id, asked, hold, ended in found]

    def has_signal(self, job_id: str, names: Sequence[str]) -> bool:
        """Tell whether a signal of one of these names is in the job's inbox."""
        ((found,),) = self.rows("has_signal", (job_id, listed(names), _WORK_DONE))
        return bool(found)

    def children(self, job_id: str, group: Group, *, after: str, limit: int) -> list[ChildRow]:
        """Return a page of the children of a group in their order."""
        return [ChildRow._make(row) for row in self.rows("children", (job_id, *group, after, limit))]

    def finished_children(self, job_ids: Sequence[str]) -> dict[str, ChildRow]:
        """Return those of these jobs that have ended, as their parents see them."""
        rows = self.rows("finished_children", (listed(job_ids),))
        return {row.job_id: row for row in map(ChildRow._make, rows)}

    def started_by(self, job_id: str, *, after: str, limit: int) -> list[str]:
        """Return a page of the jobs that a job has started."""
        return [started for (started,) in self.rows("started_by", (job_id, after, limit))]

    def values(self, job_ids: Sequence[str], name: str = "") -> list[ShownValue]:
        """Return the values that these jobs show, of one name if it is given."""
        return [ShownValue._make(row) for row in self.rows("values", (listed(job_ids), name))]

    def counts(self) -> dict[str, int]:
        """Return how many jobs stand in each state."""
        return dict(self.rows("counts"))

    def book(self, job_id: str) -> Book | None:
        """Return the book of one job."""
        return next((Book._make(row) for row in self.rows("book", (job_id,))), None)

    def books(self, *, after: str | None, limit: int) -> list[Book]:
        """Return a page of books, newest job first."""
        return [Book._make(row) for row in self.rows("books", (after or NEWEST, limit))]

    def attempts(self, job_id: str) -> list[AttemptRow]:
        """Return the attempts at a job itself, oldest first."""
        return self.all_attempts(job_id).get("", [])

    def all_attempts(self, job_id: str) -> dict[str, list[AttemptRow]]:
        """Return the attempts at a job and at its effects, by their units, each oldest first."""
        found: dict[str, list[AttemptRow]] = {}
        for unit, *row in self.rows("attempts", (job_id,)):
            attempt = AttemptRow._make(row)
            # What is neither 0 nor 1 stays as it is, for a check to see.
            charged = bool(attempt.charged) if attempt.charged in (0, 1) else attempt.charged
            found.setdefault(unit, []).append(attempt._replace(charged=charged))
        return found

    def keys_of(self, job_id: str) -> list[EffectRow]:
        """Return the keys of the effects of a job."""
        return [EffectRow._make(row) for row in self.rows("effects_of", (job_id,))]

    def kept_keys(self, *, after: str, limit: int) -> list[KeptKey]:
        """Return a page of keys of effects, and whether job and attempt of each are there."""
        rows = self.rows("kept_keys", (after, limit))
        return [
            KeptKey(exec_id, job_id, unit, bool(job), bool(tried))
            for exec_id, job_id, unit, job, tried in rows
        ]

    def activities(self, job_id: str, *, after: Place, limit: int) -> list[ActivityRow]:
        """Return the waits, sleeps and groups of a job that stand behind a place, in order."""
        rows = self.rows("activities", (job_id, *after, limit))
        return [ActivityRow(Activity._make(row), n, bool(copy)) for *row, n, copy in rows]

    def messages(self, job_id: str, *, after: str, limit: int) -> list[Message]:
        """Return the messages of a job behind a guid, in order."""
        return [Message._make(row) for row in self.rows("messages", (job_id, after, limit))]

    def open_children(self, job_id: str) -> dict[str, int]:
        """Return how many children of each group of a job have not ended."""
        return dict(self.rows("open_children", (job_id,)))

    def whole(self, job_id: str) -> WholeJob | None:
        """Return what was submitted and all else that the row of a job says."""
        for row in self.rows("whole_job", (job_id,)):
            return WholeJob(NewJob._make(row[:_NEW]), JobRest._make(row[_NEW:]))
        return None

    def step_rests(self, job_id: str, *, after: Place, limit: int) -> list[StepRest]:
        """Return the steps of a job behind a place, with what their facts do not tell."""
        rows = [StepRest._make(row) for row in self.rows("step_rests", (job_id, *after, limit))]
        return [row._replace(has_result=bool(row.has_result), has_hash=bool(row.has_hash)) for row in rows]

    def directives(self, job_id: str) -> list[tuple[OutboxRow, int]]:
        """Return the directives of a job, and when each was last written."""
        return [(OutboxRow._make(row), at) for *row, at in self.rows("directives_of", (job_id,))]

    def directive(self, outbox_id: str) -> OutboxRow | None:
        """Return one directive."""
        return next((OutboxRow._make(row) for row in self.rows("directive", (outbox_id,))), None)

    def waiting_directives(
        self, tenant_id: str | None, service: str | None, *, after: str, limit: int
    ) -> list[OutboxRow]:
        """Return a page of directives that are not out, in the order of their identifiers."""
        page = (tenant_id, service, after, limit)
        return [OutboxRow._make(row) for row in self.rows("waiting_directives", page)]

    def dead_directives(
        self, tenant_id: str | None, service: str | None, *, after: str, limit: int
    ) -> list[OutboxRow]:
        """Return a page of directives that could not be published, in the order of their identifiers."""
        page = (WITHDRAWN, tenant_id, service, after, limit)
        return [OutboxRow._make(row) for row in self.rows("dead_directives", page)]

    def outbox_lag(self, tenant_id: str | None) -> list[OutboxLag]:
        """Return how late the outbox is, for each service and way."""
        return [
            OutboxLag(service, via, int(waiting), since, int(dead))
            for service, via, waiting, since, dead in self.rows("outbox_lag", (WITHDRAWN, tenant_id))
        ]

    def count_directives(self, job_id: str) -> int:
        """Return how many directives a job has made."""
        ((count,),) = self.rows("count_directives", (job_id,))
        return int(count)

    def home(self, job_id: str) -> ProtocolJob | None:
        """Return what directives say of a job."""
        rows = self.rows("picture_homes", (listed([job_id]),))
        return next(map(ProtocolJob._make, rows), None)

    def open_remotes(self, job_id: str) -> list[ProtocolStep]:
        """Return the remote steps of a workflow that are open, in order."""
        rows = self.rows("picture_remotes", (listed([job_id]),))
        return [remote_step(row) for row in sorted(rows, key=itemgetter(1, 2, 3))]

    def remote_steps(self, job_id: str, *, after: Place, limit: int) -> list[ProtocolStep]:
        """Return the remote steps of a workflow behind a place, in order."""
        return [remote_step(row) for row in self.rows("remote_steps", (job_id, *after, limit))]

    def kept(self, tenant_id: str, scope: str, value: str) -> Kept | None:
        """Return a reservation."""
        return next((Kept._make(row) for row in self.rows("kept", (tenant_id, scope, value))), None)

    def reserved(self, *, after: tuple[str, str, str], limit: int) -> list[Reserved]:
        """Return a page of reservations, with what the job of each is known by."""
        rows = self.rows("reservations_page", (*after, limit))
        size = len(Kept._fields)
        return [Reserved(Kept._make(row[:size]), *row[size:]) for row in rows]

    def tags(self, *, after: tuple[str, str], limit: int) -> list[tuple[str, str, str | None]]:
        """Return a page of tags, each with its job and all tags that the row of that job has."""
        return [(tag, job_id, all_tags) for tag, job_id, all_tags in self.rows("tags", (*after, limit))]

    def has_tags(self, job_id: str, tags: Sequence[str]) -> set[str]:
        """Return those of these tags by which a job can be found."""
        return {tag for (tag,) in self.rows("has_tags", (job_id, listed(tags)))}

    def strays(self, *, after: str, limit: int) -> list[tuple[str, bool]]:
        """Return the next identifiers that rows have for their job, and whether there is such a job."""
        return [(job_id, bool(known)) for job_id, known in self.rows("strays", (after, limit))]

    def removals(self, *, after: int, limit: int) -> list[PrunedRow]:
        """Return a page of the log of removals."""
        return [PrunedRow._make(row) for row in self.rows("pruned", (after, limit))]

    def removals_of(self, job_id: str) -> list[PrunedRow]:
        """Return what the log of removals says of a job."""
        return [PrunedRow._make(row) for row in self.rows("pruned_of", (job_id,))]

    def removed_with_keys(self, *, after: str, limit: int) -> list[str]:
        """Return a page of jobs of which the log of removals says that keys of effects were left."""
        return [job_id for (job_id,) in self.rows("removed_with_keys", (after, limit))]

    def acts_log(self, *, after: int, limit: int) -> list[ActRow]:
        """Return a page of the chain of acts."""
        return [ActRow._make(row) for row in self.rows("acts_log", (after, limit))]

    def acts_told(self, job_id: str, verb: str) -> list[str]:
        """Return what acts of one kind on a job say."""
        return [told for (told,) in self.rows("acts_told", (job_id, verb))]

    def acts_end(self) -> LogEnd:
        """Return where the chain of acts ends."""
        return next((LogEnd._make(row) for row in self.rows("acts_end")), LogEnd())

    def open_waits(self, job_id: str, *, limit: int) -> list[OpenWait]:
        """Return what a job has open, the oldest first."""
        return [OpenWait._make(row) for row in self.rows("open_waits", (job_id, limit))]

    def open_child(self, job_id: str, step: str) -> str | None:
        """Return the first child of a group that has not ended."""
        return next((child for (child,) in self.rows("open_child", (job_id, step))), None)

    def newest_event(self, job_id: str) -> StoredEvent | None:
        """Return the newest fact of a job that is not a step."""
        return next((StoredEvent._make(row) for row in self.rows("newest_event", (job_id,))), None)

    def newest_birth(self) -> int:
        """Return when the youngest job was born."""
        ((at,),) = self.rows("newest_birth")
        return int(at)

    def removals_end(self) -> LogEnd:
        """Return where the log of removals ends."""
        return next((LogEnd._make(row) for row in self.rows("pruned_end")), LogEnd())

    def removed_jobs(self, *, after: str, behind: int, limit: int) -> list[PrunedRow]:
        """Return a page of whole jobs that the log names behind a line, by their identifiers."""
        return [PrunedRow._make(row) for row in self.rows("removed_jobs", (after, behind, limit))]

    def heads(self, *, after: str, limit: int) -> list[JobHead]:
        """Return a page of jobs by their identifiers, each with the end of its chain."""
        return [
            JobHead(ChainEnd(*head), made, ended) for *head, made, ended in self.rows("heads", (after, limit))
        ]

    def newest_fact(self, job_id: str) -> ChainEnd | None:
        """Return the newest fact of a job."""
        return next((ChainEnd(job_id, *row) for row in self.rows("chain_head", (job_id,))), None)

    def fact_hash(self, job_id: str, n: int) -> bytes | None:
        """Return the hash of the fact at a place of a job."""
        return next((bytes(found) for (found,) in self.rows("fact_hash", (job_id, n))), None)

    def trimmed(self, job_id: str) -> PrunedRow | None:
        """Return the newest line in the log of removals about turns of a job."""
        return next((PrunedRow._make(row) for row in self.rows("trimmed", (job_id,))), None)

    def turn_ends(self, job_id: str, *, limit: int) -> list[StoredEvent]:
        """Return the facts that have ended the oldest turns of a job that are there, in order."""
        return [StoredEvent._make(row) for row in self.rows("turn_ends", (job_id, limit))]

    def newest_trim(self, job_id: str) -> StoredEvent | None:
        """Return the fact of a job that tells of its newest trimming."""
        return next((StoredEvent._make(row) for row in self.rows("newest_trim", (job_id,))), None)

    def hooks(self, limit: int) -> list[OwedHook]:
        """Return jobs to which a hook is owed, of any workflow, longest first."""
        return self._owed(None, _ALL, limit)

    def _owed(self, handlers: Sequence[str] | None, due: int, limit: int) -> list[OwedHook]:
        asked = (listed(handlers or ()), int(handlers is None), due, limit)
        return [OwedHook._make(row) for row in self.rows("owed_hooks", asked)]

    def traceparent(self, job_id: str) -> str | None:
        """Return the span that a job was submitted in."""
        return next((kept for (kept,) in self.rows("traceparent", (job_id,))), None)

    def unfinished(self, *, after: str, limit: int) -> list[str]:
        """Return a page of jobs that have not ended and are not held, oldest first."""
        return [job_id for (job_id,) in self.rows("unfinished", (after, limit))]

    def held_as(self, hold: str, limit: int) -> list[str]:
        """Return jobs that are held for one reason, oldest first."""
        return [job_id for (job_id,) in self.rows("held_as", (hold, limit))]

    def held(self, limit: int) -> list[Book]:
        """Return jobs that wait for a person, newest first."""
        return [Book._make(row) for row in self.rows("held", (limit,))]

    def stale_reports(self) -> StaleReports:
        """Count the reports that came too late."""
        ((total, last_at),) = self.rows("count_stale_reports")
        return StaleReports(total, last_at)


def listed(keys: Iterable[str | Sequence[object]]) -> str:
    """Return keys as a statement takes a list of them."""
    return _encode(list(keys)).decode()


_encode = msgspec.json.Encoder().encode
