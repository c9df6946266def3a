"""Plans: the guarded writes that a decision wants, each kind one statement of a store, and what it answers.

A write carries the row as it is to be, and enough of the row as it was to guard it: the revision where the
table has one, the digits of a message. SQL confirms digits; it never makes them.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from tallystick.core.chain import Chain
from tallystick.core.effects.rows import EffectRow
from tallystick.core.pictures import Activity, JobFacts, Message, Place, cancel_of, child_of
from tallystick.core.remote.plans import InsertOutbox, MoveOutbox, StaleReport
from tallystick.core.remote.rows import ProtocolStep
from tallystick.core.requests import RecordStep
from tallystick.core.tuples import make
from tallystick.core.values import Fact, NewJob, NewLease
from tallystick.core.watching.acts import NoteAct
from tallystick.errors import TallyError


class JobValues(NamedTuple):
    """What a job learns besides the facts of its picture; None leaves a column as it is."""

    payload: str | None = None
    result: str | None = None
    error: str | None = None
    error_code: str | None = None
    error_message: str | None = None
    hold_reason: str | None = None
    current_step_id: str | None = None


NO_VALUES = JobValues()


class MoveJob(NamedTuple):
    """The row of a job as it is to be; `fact` becomes the newest of its chain."""

    job: JobFacts
    rev: int
    fact: Fact | None
    values: JobValues


class MoveSemaphore(NamedTuple):
    """Step 2 of a message, in one statement: semaphore and root, the message's digits, its activity's digits.

    The statement answers whether the semaphore came to zero by this; that must be `hit`.
    """

    job: JobFacts
    rev: int
    delta: int
    hit: bool
    message: Message
    digits: int
    activity: Activity | None
    activity_rev: int


class CountChild(NamedTuple):
    """Step 2 of a child's message in its group, in one statement: the group's row, and the message.

    `digits` are those that a stored message has; None says that the message is new.
    """

    group: Activity
    rev: int
    hit: bool
    message: Message
    digits: int | None


class InsertActivity(NamedTuple):
    """A wait, a sleep, a group or an effect that begins, or one that has its answer already (`fact`)."""

    activity: Activity
    at: int
    fact: Fact | None
    result: str | None
    error: str | None = None


class MoveActivity(NamedTuple):
    """The row of an activity as it is to be; `fact` is its answer, and its row the place of that fact."""

    activity: Activity
    rev: int
    at: int
    fact: Fact | None
    result: str | None
    error: str | None = None


class InsertRemote(NamedTuple):
    """A remote step of a workflow begins, with its first directive beside it."""

    step: ProtocolStep
    place: Place
    attempt: int


class MoveRemote(NamedTuple):
    """What reports, sweeps and relays change of a remote step of a workflow; its end is a `MoveActivity`."""

    step: ProtocolStep
    place: Place
    rev: int


class WithdrawDirectives(NamedTuple):
    """What a job has not sent yet never goes: the job has ended, or its turn."""

    job_id: str


class KeepReport(NamedTuple):
    """A report on a remote step that was refused is kept for people."""

    report: StaleReport


class KeepAct(NamedTuple):
    """A line in the chain of acts: what no fact can tell, because the history of its job has ended."""

    act: NoteAct


class InsertEffect(NamedTuple):
    """An effect begins: its row, which takes the key, and the attempt that holds the right to act."""

    row: EffectRow
    lease: NewLease


class MoveEffect(NamedTuple):
    """The row of an effect as it is to be, and its attempt with it; `lease` is that of a further call."""

    row: EffectRow
    rev: int
    lease: NewLease | None = None


class InsertStep(NamedTuple):
    """The row of an inline step, which is its own fact."""

    step: RecordStep


class AppendFact(NamedTuple):
    """A fact of a job that goes on: a failed try, values that were drawn."""

    fact: Fact


class PutValue(NamedTuple):
    """A value that a job shows, new or in the place of the one before."""

    job_id: str
    name: str
    value: str
    attempt: int


class InsertMessage(NamedTuple):
    """A message that is not there yet."""

    message: Message


class MoveMessage(NamedTuple):
    """The row of a message as it is to be; `digits` are those that it has."""

    message: Message
    digits: int


class MoveAttempt(NamedTuple):
    """An attempt that ends; `live` says what its lease must be."""

    job_id: str
    attempt: int
    lease_id: str
    before: str
    status: str
    reason: str | None
    charged: bool
    live: bool


class InsertAttempt(NamedTuple):
    """An attempt that no worker ran: a job ends that is not held, or an effect whose key another has."""

    job_id: str
    attempt: int
    status: str
    reason: str
    guid: str
    # Of an attempt at an effect: which one.
    unit: str = ""


class EndAlike(NamedTuple):
    """Jobs that no worker has claimed end alike: what the first of them comes to, and the chains of all.

    `word` closes each of them. `told` is what its parent keeps of that.
    """

    moved: MoveJob
    attempt: InsertAttempt
    word: Message
    told: Message
    chains: tuple[Chain, ...]

    def each(self) -> list[MoveJob | InsertMessage | InsertAttempt]:
        """Return the writes of all these jobs, one by one."""
        return [*self.jobs(), *map(InsertMessage, self.messages()), *self.attempts()]

    def messages(self) -> list[Message]:
        """Return their messages."""
        word, told = self.word[2:], self.told[1:]
        jobs = [chain.job_id for chain in self.chains]
        own = [make(Message, (cancel_of(job_id), job_id, *word)) for job_id in jobs]
        return own + [make(Message, (child_of(job_id), *told)) for job_id in jobs]

    def attempts(self) -> list[InsertAttempt]:
        """Return their attempts, which no worker made."""
        _job, number, status, reason, _guid, unit = self.attempt
        jobs = (chain.job_id for chain in self.chains)
        return [
            make(InsertAttempt, (job_id, number, status, reason, cancel_of(job_id), unit)) for job_id in jobs
        ]

    def jobs(self) -> list[MoveJob]:
        """Return their rows, each with its fact."""
        job, rev, fact, values = self.moved
        assert fact is not None, "a job ends with a fact"
        about, rest = fact[1:], job[1:]
        return [
            make(MoveJob, (make(JobFacts, (chain.job_id, *rest)), rev, make(Fact, (chain, *about)), values))
            for chain in self.chains
        ]


class InsertChild(NamedTuple):
    """A child with its first fact, in the group that its parent names `step`."""

    job: NewJob
    fact: Fact
    step: str


class AskDescendants(NamedTuple):
    """Everything below a job that is not detached and has not ended is asked to end, in one statement.

    Those in one of the states `before` come to `asked`. What runs has time until `ends_at`; what does not run
    has none, so that it is not claimed any more and ends with the next look at what is overdue.
    """

    job_id: str
    before: tuple[str, ...]
    asked: str
    at: int
    ends_at: int
    code: str | None


class DropActivities(NamedTuple):
    """Everything that a job has open is dropped; `how_many` that are."""

    job_id: str
    how_many: int


class DropInbox(NamedTuple):
    """What was not taken is acknowledged without effect, except `keep`; without `signals` they stay."""

    job_id: str
    keep: tuple[str, str]
    signals: bool


Write: TypeAlias = (
    MoveJob
    | MoveSemaphore
    | CountChild
    | InsertActivity
    | MoveActivity
    | InsertRemote
    | MoveRemote
    | InsertOutbox
    | MoveOutbox
    | WithdrawDirectives
    | KeepReport
    | KeepAct
    | InsertEffect
    | MoveEffect
    | InsertStep
    | AppendFact
    | PutValue
    | InsertMessage
    | MoveMessage
    | MoveAttempt
    | InsertAttempt
    | EndAlike
    | InsertChild
    | AskDescendants
    | DropActivities
    | DropInbox
)


class Plan(NamedTuple):
    """What a request comes to: its writes, in the order in which a store without transactions may stop.

    `wakes` says that a worker may find something to claim afterwards.
    """

    writes: tuple[Write, ...]
    outcome: object = None
    wakes: bool = False


class Refusal(NamedTuple):
    """A request that is not written; the error is its outcome."""

    error: TallyError


class Relook(NamedTuple):
    """The picture is too small: the whole inbox, or these children, must be seen before it is decided."""

    job_id: str
    children: tuple[str, ...] = ()


Decision: TypeAlias = Plan | Refusal | Relook
