"""Rows of situations, made from a few words: what is not said is as in a job whose first segment runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tallystick.core.chain import Chain
from tallystick.core.effects.rows import EffectRow, EffectRules, OpenEffect
from tallystick.core.pictures import (
    Activity,
    JobFacts,
    Lease,
    LostAttempts,
    Message,
    Now,
    Picture,
    Pictures,
    child_of,
)
from tallystick.store.api import Fact, Fence, Group

WALL = 1_000
NOW = Now(WALL)
J, P = "j", "p"
FENCE = Fence(J, 1, "lease")
CHAIN = Chain(J)
GROUP = Group(0, "gather", 1)

# Digits as the specification walks through them: of an activity, and of a message.
ENTERED_1, OPEN = 1_000_000_000_000, 1_100_000_000_000
ENTERED, WORKED, DONE, CLOSED = 1_100_000_000_001, 1_110_000_000_001, 1_111_000_000_001, 1_111_100_000_001
FULL_1, FULL_2 = 999_000_000_000_000, 1_100_099_999_999
NEW, SEEN, TAKEN, SETTLED = 0, 1, 10_000_000_001, 11_000_000_001


class Case(NamedTuple):
    """A situation in a sentence, its rows, what is asked of them, and what must come of that."""

    name: str
    pictures: Pictures
    # A request, or a function of the pictures.
    asked: Any
    said: tuple[str, ...]


def case(name: str, pictures: Pictures, asked: Any, *said: str) -> Case:
    """Return a case; each line of `said` is a write, the last one the answer."""
    return Case(name, pictures, asked, said)


def job(**but: Any) -> JobFacts:
    """Return a job that has been claimed once and has opened nothing."""
    first = JobFacts(
        J, "IN_PROGRESS", 1, 0, None, None, 1, ENTERED, SEEN, None, None, None, 5, 1, None, None, 3, 900
    )
    return first._replace(**but)


def idle(**but: Any) -> JobFacts:
    """Return a job that has suspended: its start is over, and one thing is open."""
    return job()._replace(**{"root_ledger": DONE, "start_ledger": SETTLED, "start_acked_at": 500, **but})


def queued(**but: Any) -> JobFacts:
    """Return a job that no worker has claimed."""
    about = {"state": "QUEUED", "attempt": 0, "root_ledger": OPEN, "start_ledger": 0, "ready_at": 500}
    return job()._replace(**{**about, **but})


def ended(**but: Any) -> JobFacts:
    """Return a job that has succeeded."""
    return idle(**{"state": "SUCCEEDED", "completed_at": 950, "semaphore": 0, **but})


def held_by(guid: str = "start", status: str = "IN_PROGRESS", *, live: bool = True) -> Lease:
    """Return the attempt that holds the job, and what drives it."""
    return Lease(1, "lease", status, live, guid)


def act(name: str = "a", occurrence: int = 1, kind: str = "wait", ledger: int = OPEN, **but: Any) -> Activity:
    """Return a wait that is open."""
    return Activity(J, 0, name, occurrence, kind, "IN_PROGRESS", ledger, 2, 1)._replace(**but)


def group(open_ends: int = 2, threshold: int = 0, ledger: int = OPEN, **but: Any) -> Activity:
    """Return a group that waits for so many ends."""
    counts = {"semaphore": open_ends, "threshold": threshold, "failed": 0}
    return act("gather", kind="group", ledger=ledger, **{**counts, **but})


def msg(
    guid: str = "s",
    kind: str = "signal",
    name: str = "a",
    at: int | None = None,
    ledger: int = NEW,
    **but: Any,
) -> Message:
    """Return a message that waits in the inbox; `at` is the occurrence of the activity that it names."""
    return Message(guid, J, 0, name, at, kind, None, None, ledger, 0, 100, 1, None)._replace(**but)


def timer(name: str = "a", at: int = 1, due_at: int = 900, **but: Any) -> Message:
    """Return the timer of a wait."""
    return msg(f"j:0:{name}#{at}:timer", "timer", name, at, due_at=due_at, **but)


def end_of(n: int, state: str | None = "SUCCEEDED", **but: Any) -> Message:
    """Return the word of a child that has ended."""
    about = {"payload": state, "arrived": n, **but}
    return msg(child_of(GROUP.child_id(J, n)), "child", "gather", 1, **about)


def join(**but: Any) -> Message:
    """Return the word that the group is closed."""
    return msg("join:j:0:gather#1", "resume", "gather", 1, **but)


def turned(ledger: int = 2, **but: Any) -> Message:
    """Return the word to turn, which has entered the root."""
    return msg("again:j:1", "resume", "again", 1, ledger, **{"dimension": 1, **but})


def effect(phase: str = "IN_DOUBT", live: bool = False, **but: Any) -> dict[str, Any]:
    """Return an effect of the job that is open, as a look shows it."""
    rules = EffectRules(700, probe=True).written()
    about = (J, "0/pay#1", 1, "COMMITTED", phase, None, "{}", None, None, rules)
    times = (None, None, 900, 900, None, None, 3)
    row = EffectRow("j:0/pay#1:1", "default", "pay", "k", "hash", *about, "call-1", 1, 2, *times)
    return {"effects": {(0, "pay", 1): OpenEffect(row._replace(**but), live)}}


def look(
    row: JobFacts | None = None,
    *rows: Activity | Message,
    lease: Lease | str | None = "held",
    home: Picture | None = None,
    **but: Any,
) -> Pictures:
    """Return what a store shows of a job; `home` is its parent."""
    picture = picture_of(row or job(), *rows, lease=held_by() if isinstance(lease, str) else lease, **but)
    pictures = Pictures({picture.job.job_id: picture})
    if home is not None:
        pictures[home.job.job_id] = home
    return pictures


def picture_of(row: JobFacts, *rows: Activity | Message, lease: Lease | None = None, **but: Any) -> Picture:
    """Return one job with these activities and messages."""
    picture = Picture(row, lease)
    picture.end, picture.past = (3, b"x" * 32), LostAttempts(400, '{"attempts_max":3}', 0)
    for each in rows:
        if isinstance(each, Activity):
            picture.activities[each.place] = each._replace(job_id=row.job_id)
        else:
            picture.messages[each.guid] = each._replace(job_id=row.job_id)
    for name, value in but.items():
        setattr(picture, name, value)
    return picture


def fact(kind: str = "word", at: int = 990, payload: str = "{}") -> Fact:
    """Return what a worker tells, by its own clock."""
    return Fact(CHAIN, kind, at, 1, payload)


def of(function: Callable[..., Any], *args: Any, **named: Any) -> Callable[[Pictures], Any]:
    """Return a question that needs no pictures."""
    return lambda _pictures: function(*args, **named)


NOTHING = look()
