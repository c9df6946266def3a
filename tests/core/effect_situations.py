"""Situations of an effect, drawn by number: a handful of words, and picture and request made from them."""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

from tallystick.core.chain import Chain
from tallystick.core.effects.requests import (
    CallEffect,
    DoubtEffect,
    EndEffect,
    Intent,
    RestEffect,
    Says,
    SettleEffect,
    TakeProbe,
)
from tallystick.core.effects.rows import Came, EffectRow, EffectRules, OpenEffect, Phase, Waiter, taken_from
from tallystick.core.pictures import (
    START,
    Activity,
    JobFacts,
    Lease,
    LostAttempts,
    Message,
    Now,
    Picture,
    Pictures,
    Place,
)
from tallystick.store.api import CancelJob, EndJob, Fact, Fence, NewLease, ReclaimAttempt, ResumeJob

WALL = 1_000
NOW = Now(WALL)
JOB, RIVAL, OWNER = "j", "r", "o"
PLACE, OTHER_PLACE = (0, "pay", 1), (0, "pay", 2)
UNIT = "0/pay#1"
EXEC = f"{JOB}:{UNIT}:1"
KEY = ("default", "pay", "k")
SETTLE_MS, REST_MS, PROBE_MS, CALL_MS = 10, 50, 500, 700
NEVER = 253_402_300_799_000
NO = '{"type":"Declined"}'


class Situation(NamedTuple):
    """What is the case, in words; a field that a request does not look at may be anything."""

    request: str
    held: bool  # the request names the attempt that holds the job
    runs: bool  # an attempt holds the job
    job: str  # goes on, is to end, has ended, is not there
    hold: str | None
    phase: str | None  # of the effect; None: it is not open
    live: bool  # the lease of its last call
    own: bool  # the request names that lease
    due: int | None
    calls: int
    tries: int
    probe: bool
    step: str  # none, open, closed, wait
    answered: bool
    same: bool  # the arguments of the intent are those of the row
    asked: bool  # the function knows that its job is to end
    owner: str | None  # of the key: happened, kept, open, differs, mine
    waits: bool  # this job has lost the key to that owner before
    rival: str | None  # who waits for this effect: idle, runs, told, closed, elsewhere, gone, due
    other: str | None  # a second effect of the job: RESTING, called, probed, doubtful
    came: Came
    keeps: bool  # refusals keep the key
    says: Says
    names: str  # how a person names the effect
    moved: bool  # the row has changed since the probe was asked
    probes: int
    unseen: bool  # the look did not ask for effects
    full: str  # the ledger of the step: leg 1 or leg 2 has no entry left
    alive: bool  # the lease of the job
    children: bool
    abandons: bool  # a person ends the job whatever became of its effects
    result: str | None
    why: str | None
    doubted: bool  # a person let it be called again in doubt, and that call is to come or under way
    beside: bool  # other calls of the segment may go on
    rests: int | None  # from when on a second effect that rests may be called again


_ONCE = ("end", "rest", "doubt", "probe", "lost", "resume", "cancel", "cancel", "return")
_KINDS = (*["call"] * 6, *["settle"] * 3, *_ONCE)


def draw(number: int) -> Situation:
    """Return a situation."""
    random = Random(number)

    def one(*items: Any) -> Any:
        return items[int(random.random() * len(items))]

    kind = one(*_KINDS)
    held_by = kind in ("call", "end", "rest", "doubt", "return")
    job = one("goes on", "goes on", "is to end", "has ended" if kind == "settle" else "goes on")
    phase = one(Phase.CALLING, Phase.RESTING, Phase.IN_DOUBT, None, *[None] * (kind == "call"))
    step = "none" if phase is None and (kind != "return" or one(True, False)) else "open"
    if kind == "call" and phase is None:
        step = one("none", "open", "open", "closed")
    elif kind == "call" and job == "goes on":
        step = one(*["open"] * 6, "none", "closed", "wait")
    drawn = Situation(
        request=kind,
        held=one(True, True, True, True, False) if held_by else False,
        runs=held_by or (kind in ("settle", "cancel") and job != "has ended" and one(True, False, False)),
        job="is not there" if random.random() < 0.02 else job,
        hold=one(None, None, None, "PAUSED", "IN_DOUBT") if job == "goes on" else None,
        phase=phase,
        live=one(True, False),
        own=one(True, True, False),
        due=one(None, 900, 5_000),
        calls=one(1, 2),
        tries=one(1, 2, 3),
        probe=one(True, False),
        step=step,
        answered=phase is None and one(True, False),
        same=one(True, True, True, False),
        asked=one(True, False),
        owner=one(None, None, "happened", "kept", "open", "differs", "mine"),
        waits=one(True, False),
        rival=one(None, "idle", "runs", "told", "closed", "elsewhere", "gone", "due"),
        other=one(None, None, "RESTING", "probed", "doubtful"),
        came=one(*Came),
        keeps=one(True, False),
        says=one(*Says),
        names=one("", "unit", "short", "key", "nothing"),
        moved=one(True, False, False),
        probes=one(0, 2, 9),
        unseen=one(True, False),
        full=one("", "", "", "leg 1", "leg 2"),
        alive=one(True, False),
        children=one(True, False),
        abandons=one(True, False, False),
        result=one("7", None),
        why=one("timed out", None),
        doubted=one(True, False, False) and phase in (Phase.CALLING, Phase.RESTING),
        beside=one(True, False, False),
        rests=one(900, 5_000),
    )  # fmt: skip
    return _possible(drawn)


def _possible(s: Situation) -> Situation:
    """Return the situation without what cannot be the case beside the rest of it."""
    if s.request in ("return", "cancel"):
        s = s._replace(hold=None)
    if s.request == "cancel":
        s = s._replace(runs=s.runs and s.job == "goes on")
    if s.request != "cancel" or not s.runs:
        s = s._replace(alive=True)
    if s.request == "settle" and s.names == "" and not is_doubtful(s):
        s = s._replace(other="RESTING" if s.other == "RESTING" else None)
    if s.request == "settle" and s.job == "has ended":
        s = s._replace(hold=None)
    if s.request == "lost" and s.other == "probed":
        s = s._replace(other="called")
    if s.request not in ("call", "end"):
        s = s._replace(full="")
    # A step that is open has an effect: if it is not in the picture, nothing looked for it.
    unlooked = s.request == "return" and s.phase is None and s.step == "open"
    s = s._replace(other=None if unlooked else s.other)
    unseen = s.unseen and s.phase is None and s.other is None
    return s._replace(waits=s.waits and s.step != "none", unseen=unseen or unlooked)


def is_doubtful(s: Situation) -> bool:
    """Tell whether a call was made and no one is at it."""
    if s.phase == Phase.CALLING:
        return not s.live
    return s.phase == Phase.IN_DOUBT or is_to_be_called_in_doubt(s)


def is_to_be_called_in_doubt(s: Situation) -> bool:
    """Tell whether it may be called, and it is unknown whether a call before has done it."""
    return s.phase == Phase.RESTING and s.doubted


# --- the picture of a situation


def _row(s: Situation) -> EffectRow:
    rules = EffectRules(CALL_MS, tries=s.tries, settle_ms=SETTLE_MS, probe=s.probe, keep_refusals=s.keeps)
    about = (JOB, UNIT, 1, "COMMITTED", str(s.phase), None, "{}", None, None, rules.written())
    doubt = "cut" if s.phase == Phase.IN_DOUBT or s.doubted else None
    times = (s.due, doubt, 900, 900, None, None, 3)
    return EffectRow(EXEC, *KEY, "hash", *about, "call-1", s.calls, s.probes, *times)


def _second(s: Situation) -> EffectRow | None:
    if s.other is None:
        return None
    phase = {"RESTING": Phase.RESTING, "called": Phase.CALLING}.get(s.other, Phase.IN_DOUBT)
    due = {"probed": 5_000, "RESTING": s.rests}.get(s.other)
    return _row(s)._replace(
        exec_id=f"{JOB}:0/pay#2:1", key="k2", unit="0/pay#2", phase=str(phase), due_at=due,
        doubt="cut" if phase == Phase.IN_DOUBT else None,
    )  # fmt: skip


def _job(job_id: str, s: Situation | None = None) -> JobFacts:
    state, cancel_at, completed = "IN_PROGRESS", None, None
    if s is not None and s.job == "is to end":
        state, cancel_at = "CANCELLING", NEVER
    elif s is not None and s.job == "has ended":
        state, completed = "CANCELLED", 950
    return JobFacts(
        job_id, state, 1, 0, None, None if s is None else s.hold, 1, 1_100_000_000_001, 1, None, cancel_at,
        completed, 1, 1, None, None, 0, 0,
    )  # fmt: skip


_FULL = {"": 1_100_000_000_000, "leg 1": 999_100_000_000_000, "leg 2": 1_100_099_999_999}


def _activity(job_id: str, place: Place, kind: str = "effect", state: str = "IN_PROGRESS") -> Activity:
    return Activity(job_id, *place, kind, state, _FULL[""], 1, 1)


def _message(job_id: str, guid: str) -> Message:
    return Message(guid, job_id, *PLACE, "result", "{}", None, 0, 0, 900, 1, None)


def pictures_of(s: Situation) -> Pictures:
    """Return what a store would show."""
    picture = Picture(_job(JOB, s))
    picture.past, picture.end = LostAttempts(0, '{"attempts_max":9}', 0), (3, b"x" * 32)
    picture.has_open_children = s.children
    if s.runs:
        picture.lease = Lease(1, "lease", "IN_PROGRESS", live=s.alive, guid=START)
    effects: dict[Place, OpenEffect] = {}
    if (second := _second(s)) is not None:
        effects[OTHER_PLACE] = OpenEffect(second, live=False)
        picture.activities[OTHER_PLACE] = _activity(JOB, OTHER_PLACE)
    if s.phase is not None:
        effects[PLACE] = OpenEffect(_row(s), s.live)
    picture.effects = None if s.unseen else effects
    if s.step != "none":
        state = "SUCCEEDED" if s.step == "closed" else "IN_PROGRESS"
        opened = _activity(JOB, PLACE, "wait" if s.step == "wait" else "effect", state)
        picture.activities[PLACE] = opened._replace(ledger=_FULL[s.full])
    if s.answered:
        picture.messages["answer"] = _message(JOB, "answer")
    picture.job = picture.job._replace(semaphore=1 + len(picture.open_activities()))
    pictures = Pictures({} if s.job == "is not there" else {JOB: picture})
    _owned(pictures, s)
    _rivalled(pictures, s)
    return pictures


def _owned(pictures: Pictures, s: Situation) -> None:
    if s.owner is None:
        return
    owner = _row(s)._replace(
        exec_id=f"{OWNER}:{UNIT}:1", job_id=JOB if s.owner == "mine" else OWNER, phase=str(Phase.CALLING),
        args_hash="another" if s.owner == "differs" else "hash",
    )  # fmt: skip
    if s.owner == "happened":
        owner = owner._replace(state="DONE", phase=str(Phase.ENDED), outcome="HAPPENED", result="7")
    elif s.owner == "kept":
        owner = owner._replace(state="DONE", phase=str(Phase.ENDED), outcome="REFUSED", error=NO, kept=1)
    pictures.occupied[KEY] = owner
    if s.waits:
        pictures.waiters[taken_from(owner.exec_id)] = {Waiter(JOB, UNIT)}


def _rivalled(pictures: Pictures, s: Situation) -> None:
    if s.rival is None:
        return
    pictures.waiters[taken_from(EXEC)] = {Waiter(RIVAL, UNIT)}
    if s.rival == "gone":
        return
    rival = Picture(_job(RIVAL)._replace(ready_at=900 if s.rival == "due" else None))
    place = OTHER_PLACE if s.rival == "elsewhere" else PLACE
    state = "CANCELLED" if s.rival == "closed" else "IN_PROGRESS"
    rival.activities[place] = _activity(RIVAL, place, state=state)
    if s.rival == "runs":
        rival.lease = Lease(1, "rivals", "IN_PROGRESS", live=True, guid=START)
    if s.rival == "told":
        guid = taken_from(f"{RIVAL}:{UNIT}:1")
        rival.messages[guid] = _message(RIVAL, guid)
    pictures[RIVAL] = rival


def request_of(s: Situation) -> Any:  # noqa: PLR0911 (one for each request)
    """Return the request."""
    fence = Fence(JOB, 1, "lease" if s.held else "lost")
    chain, lease_id = Chain(JOB, 3, b"x" * 32), "call-1" if s.own else "call-0"
    match s.request:
        case "call":
            intent = Intent(KEY, "hash" if s.same else "other", "{}", EffectRules(CALL_MS).written())
            lease = NewLease("call-2", "w", CALL_MS)
            return CallEffect(
                fence, chain, PLACE, intent, lease, WALL, s.asked, "call-1" if s.own else "", s.beside
            )
        case "end":
            result, error = ("7", None) if s.came is Came.HAPPENED else (None, '{"type":"E"}')
            return EndEffect(fence, chain, PLACE, lease_id, s.came, result, error, WALL, s.beside)
        case "rest":
            return RestEffect(fence, PLACE, lease_id, REST_MS)
        case "doubt":
            return DoubtEffect(fence, chain, PLACE, lease_id, "cut", WALL)
        case "probe":
            return TakeProbe(JOB, UNIT, 2 if s.moved else 3, PROBE_MS)
        case "settle":
            unit = {"unit": UNIT, "short": "pay#1", "nothing": "0/none#1"}.get(s.names, "")
            key = "k" if s.names == "key" else ""
            rev = (2 if s.moved else 3) if unit == UNIT else None
            return SettleEffect(JOB, s.says, "ann", unit, key, s.result, s.why, rev)
        case "lost":
            return ReclaimAttempt(Fence(JOB, 1, "call-1"), UNIT)
        case "resume":
            return ResumeJob(JOB)
        case "cancel":
            return CancelJob(JOB, 0, force=True, abandon=s.abandons)
        case _:
            fact = Fact(chain, "return", WALL, 1, "{}")
            return EndJob.of(fence, "SUCCEEDED", fact, result="1")
