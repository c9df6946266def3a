"""What must come of each request about an effect, written by hand: the page about effects as a table.

Answers are told from the words of a situation and read no picture.
"""

from __future__ import annotations

from typing import Any

import msgspec

from tallystick.core.deciding import decide
from tallystick.core.effects.requests import Differs, Granted, HeldInDoubt, Known, Later, Says
from tallystick.core.effects.rows import Came, EffectRow, Phase
from tallystick.core.ledger.decisions import Reclaim
from tallystick.core.pictures import Pictures
from tallystick.core.plans import (
    AppendFact,
    Decision,
    InsertAttempt,
    InsertEffect,
    InsertMessage,
    KeepAct,
    MoveActivity,
    MoveAttempt,
    MoveEffect,
    MoveJob,
    Refusal,
    Relook,
)
from tests.core.effect_situations import (
    CALL_MS,
    JOB,
    NEVER,
    NO,
    NOW,
    OWNER,
    PLACE,
    REST_MS,
    RIVAL,
    SETTLE_MS,
    UNIT,
    WALL,
    Situation,
    draw,
    is_doubtful,
    is_to_be_called_in_doubt,
    pictures_of,
    request_of,
)

WAITS = "the segment is over until its outcome is known"
BESIDE = "the segment would be over: ask again when no other call of it goes on"
OVERDUE_MS = 60_000
LIVE = "a worker may be at it right now: try again when its time is over"
ENDED = "its job has ended or was asked to, so it is not called again: say whether it happened"
LOST = "its worker was lost after it had the right to act and before it said what came of it"
SLACK_MS = 5_000

# --- what came of it, and what must


def came_of(s: Situation) -> dict[str, Any]:
    """Decide the request, and say in the words of the answers what comes of it."""
    pictures = pictures_of(s)
    return _told(pictures, decide(pictures, request_of(s), NOW))


def _told(pictures: Pictures, decision: Decision) -> dict[str, Any]:  # noqa: PLR0912 (a case for each write)
    if isinstance(decision, Refusal):
        return {"outcome": type(decision.error).__name__}
    if isinstance(decision, Relook):
        return {"outcome": "Relook"}
    before = job = pictures[JOB].job if JOB in pictures else None
    told: dict[str, Any] = {"outcome": _word(decision.outcome), "effect": None, "begins": 0, "left": None}
    told |= {"lost": 0, "answered": False, "rival": set(), "others": 0, "fact": {}, "says": None, "act": None}
    told["entries"] = None
    for write in decision.writes:
        match write:
            case AppendFact(fact):
                told["fact"] |= msgspec.json.decode(fact.payload)
            case InsertEffect(row) | MoveEffect(row):
                told["begins"] |= row.attempt * isinstance(write, InsertEffect)
                if row.unit == UNIT:
                    told["effect"], told["says"] = _of(row), row.result or row.doubt
                else:
                    told["others"] += 1
            case MoveJob(after, _rev, fact) if after.job_id == JOB:
                job = after
                told["fact"] |= (
                    {} if fact is None else {"kind": fact.type, **msgspec.json.decode(fact.payload)}
                )
            case MoveJob():
                told["rival"].add("woken")
            case InsertMessage(message) if message.job_id == RIVAL:
                told["rival"].add("told")
            case InsertMessage(message):
                told["answered"] |= message.kind == "result"
            case MoveAttempt():
                told["left"] = write.reason or "RETURNED"
            case MoveActivity(activity) if activity.place == PLACE:
                told["entries"] = activity.ledger // 10**12
            case KeepAct(act):
                told["act"] = act.who
            case InsertAttempt(unit=unit):
                told["lost"] |= write.attempt * (unit == UNIT)
            case _:
                pass
    if job is None or before is None:
        return told
    if isinstance(decision.outcome, HeldInDoubt):
        doubts = {row.doubt or LOST for row, _live in pictures[JOB].open_effects.values()} | {told["says"]}
        if not any(doubt in decision.outcome.why for doubt in doubts if doubt):
            told["outcome"] = "held, and nothing says why"
    due_in = None if job.ready_at is None else job.ready_at - WALL
    if told["left"] == "SUSPENDED" and told["fact"].get("in") != due_in:
        told["left"] = "SUSPENDED until another instant than its fact says"
    told |= {"abandons": told["fact"].get("abandons"), "of": told["fact"].get("of")}
    told |= {"hold": job.hold, "ready": job.ready_at, "ends": job.cancel_at, "inbox": job.inbox_end}
    return told | {"closed": job.completed_at is not None, "opens": job.semaphore - before.semaphore}


def _word(outcome: object) -> object:
    match outcome:
        case EffectRow():
            return "the probe"
        case Differs():
            return "Differs"
        case HeldInDoubt(why):
            return "held" if why.startswith("it is unknown whether pay happened under the key") else why
        case Known(result, error):
            return ("Known", result, error if error in (None, NO) else "conflict")
        case _:
            return outcome


def _of(row: EffectRow) -> tuple[Any, ...]:
    due = (
        "later"
        if row.due_at not in (None, WALL, WALL + SETTLE_MS, WALL + REST_MS, 900, 5_000)
        else row.due_at
    )
    return row.phase, row.outcome, row.calls, row.lease_id, due, row.probes, row.kept


def expected(s: Situation) -> dict[str, Any]:
    """Return what must come of a request, as far as that is promised."""
    if s.request in ("call", "end", "rest", "doubt", "return") and not (s.held and s.job != "is not there"):
        return {"outcome": "StaleLease"}
    if s.job == "is not there":
        none = {"probe": None, "lost": Reclaim.LEAVE}
        return {"outcome": none.get(s.request, "NotFound")}
    return _ANSWERS[s.request](s)


def _open(s: Situation, phase: Phase, due: object, **changed: Any) -> dict[str, Any]:
    now = {"calls": s.calls, "lease": "call-1", "probes": s.probes} | changed
    return {"effect": (phase, None, now["calls"], now["lease"], due, now["probes"], 0)}


def _over(s: Situation, came: Came) -> dict[str, Any]:
    """The effect is over: others that wait have its answer if it keeps the key, else they may go on."""
    kept = int(came is Came.REFUSED and s.keeps)
    rival = {"told"} if s.rival in ("idle", "runs", "due") and (came is Came.HAPPENED or kept) else set()
    rival |= {"woken"} if s.rival == "idle" else set()
    row = (Phase.ENDED, came, s.calls, "call-1", None, s.probes, kept)
    return {"effect": row, "rival": rival}


def _leaves(s: Situation, *, person: bool, returned: bool = False) -> dict[str, Any]:
    """The segment is over until it is known what came of an effect; a person is asked only by a hold.

    The job goes on by itself when another effect of it has rested, unless its function has returned.
    """
    if person and s.job == "goes on":
        return {"outcome": "held", "left": "HELD", "hold": "IN_DOUBT", "ready": WALL}
    rests = s.other == "RESTING" and s.job == "goes on" and not returned
    ready = None if not rests else s.rests if s.rests == 5_000 else WALL + OVERDUE_MS
    return {"left": "SUSPENDED", "hold": s.hold, "ready": ready}


def _call(s: Situation) -> dict[str, Any]:  # noqa: PLR0911 (a line for each answer)
    nothing = {"effect": None, "left": None, "begins": 0, "lost": 0}
    if s.job == "is to end" and not s.asked:
        rests = s.phase == Phase.RESTING and not s.doubted
        if rests and s.full == "leg 2":
            return {"outcome": "LedgerCeiling"}
        ends = _over(s, Came.NOT_DONE) | {"answered": True} if rests else nothing
        return {"outcome": "CANCELLING", **ends}
    if s.hold is not None:
        return {"outcome": s.hold, **nothing}
    if s.phase is None and s.step == "none":
        return _first_call(s)
    if s.step != "open":
        return {"outcome": "InvariantBroken"}
    if s.phase is None:
        taken = {"outcome": "what came of it is in the inbox: take it", **nothing}
        return taken if s.answered else _first_call(s)
    if not s.same:
        return {"outcome": "Differs", **nothing}
    if s.phase == Phase.RESTING:
        if not s.own and s.due == 5_000:
            return {"outcome": Later(4_000), **nothing}
        again = _open(s, Phase.CALLING, None, calls=s.calls + 1, lease="call-2") | _left(s)
        entries = None if s.full == "leg 1" else 2
        return {"outcome": Granted(s.calls + 1), "left": None, "entries": entries, **again}
    if s.phase == Phase.CALLING and s.own:
        return {"outcome": Granted(s.calls), "left": None, **_open(s, Phase.CALLING, s.due, lease="call-2")}
    if s.beside:
        return {"outcome": BESIDE, **nothing}
    person = s.phase == Phase.IN_DOUBT and s.due is None
    return {"outcome": WAITS, "effect": None, **_leaves(s, person=person)}


def _first_call(s: Situation) -> dict[str, Any]:  # noqa: PLR0911 (a line for each answer)
    """No attempt of this job has the right yet; whether it is to be had depends on the key.

    A step that has lost the key before makes its second attempt, which enters leg 1 once more.
    """
    number = 1 if s.step == "none" else 1_000 if s.full == "leg 1" else 2
    opens = int(s.step == "none")
    owner = s.owner if s.same or s.owner is None else "differs"
    full = s.step == "open" and s.full
    known = {"lost": number, "answered": True, "begins": 0, "left": None, "of": f"{OWNER}:{UNIT}:1"}
    if owner in ("differs", "happened", "kept") and full == "leg 2":
        return {"outcome": "LedgerCeiling"}
    if (owner is None or (owner == "open" and not s.waits and not s.beside)) and full == "leg 1":
        return {"outcome": "LedgerCeiling"}
    if owner == "open" and s.beside:
        return {"outcome": BESIDE, "effect": None, "left": None, "begins": 0, "lost": 0}
    match owner:
        case None:
            row = (Phase.CALLING, None, 1, "call-2", None, 0, 0)
            about = {"begins": number, "lost": 0, "left": None, "effect": row, "opens": opens}
            return {"outcome": Granted(1), **about}
        case "differs":
            return {"outcome": ("Known", None, "conflict"), **known}
        case "happened":
            return {"outcome": ("Known", "7", None), **known}
        case "kept":
            return {"outcome": ("Known", None, NO), **known}
        case "mine":
            return {"outcome": "ParallelCalls"}
        case _:
            lost = {"lost": 0 if s.waits else number, "begins": 0, "opens": opens}
            return {"outcome": WAITS, **lost, **_leaves(s, person=False)}


def _is_last_call(s: Situation) -> bool:
    return s.phase == Phase.CALLING and s.own


def _left(s: Situation) -> dict[str, Any]:
    """A doubt that a person has left stays until it is known."""
    return {"says": "cut" if s.doubted else None}


def _end(s: Situation) -> dict[str, Any]:
    if not _is_last_call(s):
        return {"outcome": "StaleLease"}
    if s.doubted and s.came is not Came.HAPPENED:
        return {"outcome": BESIDE, "effect": None, "left": None} if s.beside else _doubt(s)
    if s.full == "leg 2":
        return {"outcome": "LedgerCeiling"}
    return {"outcome": None, "answered": True, "left": None, **_over(s, s.came)}


def _rest(s: Situation) -> dict[str, Any]:
    if not _is_last_call(s):
        return {"outcome": "StaleLease"}
    return {"outcome": None, "left": None, **_open(s, Phase.RESTING, WALL + REST_MS), **_left(s)}


def _doubt(s: Situation) -> dict[str, Any]:
    if not _is_last_call(s):
        return {"outcome": "StaleLease"}
    due = WALL + SETTLE_MS if s.probe else None
    return {"outcome": WAITS, **_open(s, Phase.IN_DOUBT, due), **_leaves(s, person=not s.probe)}


def _probe(s: Situation) -> dict[str, Any]:
    if s.phase != Phase.IN_DOUBT or s.moved or s.due != 900:
        return {"outcome": None, "effect": None}
    return {"outcome": "the probe", **_open(s, Phase.IN_DOUBT, "later", probes=s.probes + 1)}


def _settle(s: Situation) -> dict[str, Any]:  # noqa: PLR0911 (a line for each answer)
    nothing = {"effect": None, "answered": False, "hold": s.hold, "rival": set(), "others": 0}
    own = [is_doubtful(s)] if s.names != "nothing" else []
    beside = [True] if s.names == "" and s.other in ("probed", "doubtful") else []
    doubtful = sum(own) + sum(beside)
    if doubtful != 1:
        calls = s.names != "nothing" and s.phase == Phase.CALLING
        none = LIVE if calls else "no effect of this job is in doubt"
        several = "several effects of this job are in doubt: say which one"
        return {"outcome": several if doubtful else none, **nothing}
    if s.runs:
        return {"outcome": LIVE, **nothing}
    if s.says is Says.RETRY and s.job != "goes on":
        return {"outcome": ENDED, **nothing}
    if s.moved and s.names == "unit":
        return {"outcome": "it has gone on since it was asked", **nothing}
    if s.says in (Says.UNKNOWN, Says.LATER):
        return _unanswered(s)
    spent = s.says is Says.DID_NOT_HAPPEN and (s.calls >= s.tries or s.job == "has ended")
    if s.says is Says.HAPPENED or spent:
        over = _over(s, Came.HAPPENED if s.says is Says.HAPPENED else Came.NOT_DONE)
        told = {"answered": s.job != "has ended", "inbox": int(s.job != "has ended"), **over}
        told["act"] = "ann" if s.job == "has ended" else None
        if s.says is Says.HAPPENED:
            told["says"] = s.result or "null"
        return {"outcome": "written down; the job goes on with it", **told, **_goes_on(s)}
    again = _open(s, Phase.RESTING, WALL, probes=0)
    again["says"] = None
    if s.says is Says.RETRY:
        again["says"] = "cut" if s.doubted or s.phase == Phase.IN_DOUBT else LOST
    return {"outcome": "written down; the effect is called again under the same key", **again, **_goes_on(s)}


def _goes_on(s: Situation) -> dict[str, Any]:
    """A job that has its answer: its hold goes with the last doubt; one that is to end ends then."""
    if s.job == "has ended":
        return {"hold": None, "ready": None}
    if s.job == "is to end":
        return {"ready": None, "ends": NEVER if s.other in ("probed", "doubtful") else WALL}
    frees = s.hold == "IN_DOUBT" and s.other != "doubtful"
    told = {"kind": "resolve", "effect": UNIT, "key": "k", "says": s.says, "by": "ann"}
    told |= {"frees": True} if frees else {}
    return {"hold": None if frees else s.hold, "ready": WALL, "fact": told}


def _unanswered(s: Situation) -> dict[str, Any]:
    """A probe that has raised is asked again for a while; then, and if it cannot tell, a person is."""
    later = s.says is Says.LATER and s.probes < 6
    outcome = "its probe is asked again" if later else "the job is held until a person says what happened"
    held = not later and s.job == "goes on" and s.hold is None
    hold: dict[str, Any] = {"hold": "IN_DOUBT", "ready": WALL} if held else {"hold": s.hold, "ready": None}
    hold["says"] = s.why or "its probe could not tell"
    return {"outcome": outcome, **_open(s, Phase.IN_DOUBT, "later" if later else None), **hold}


def _lost(s: Situation) -> dict[str, Any]:
    if s.live or s.phase != Phase.CALLING:
        return {"effect": None, "others": 0, "hold": s.hold}
    held = not s.probe and s.job == "goes on" and s.hold is None
    due = WALL + SETTLE_MS if s.probe else None
    return {**_open(s, Phase.IN_DOUBT, due), "others": 0, "hold": "IN_DOUBT" if held else s.hold}


def _resume(s: Situation) -> dict[str, Any]:
    if s.hold is None:
        return {"effect": None, "others": 0}
    asks = s.hold == "IN_DOUBT" and s.probe
    # A probe that was never asked keeps its time: until then the call may still act.
    own = asks and s.phase == Phase.IN_DOUBT and (s.probes or s.due is None)
    asked = _open(s, Phase.IN_DOUBT, WALL, probes=0) if own else {"effect": None}
    others = asks and (s.other == "doubtful" or (s.other == "probed" and s.probes > 0))
    return {"hold": None, "others": int(others), **asked}


def _may_have_happened(s: Situation) -> bool:
    return s.phase in (Phase.CALLING, Phase.IN_DOUBT) or is_to_be_called_in_doubt(s)


def _is_waited_for(s: Situation) -> bool:
    return _may_have_happened(s) or s.other in ("probed", "doubtful")


def _kept(s: Situation) -> dict[str, Any]:
    """What was to be called again in doubt is in doubt again; the call may act until it has settled."""
    if not is_to_be_called_in_doubt(s):
        return {"effect": None}
    return _open(s, Phase.IN_DOUBT, "later" if s.probe else None)


def _ends(s: Situation) -> dict[str, Any]:
    """The job ends, and with it what was never done; what may have happened stays open."""
    rests = s.phase == Phase.RESTING and not s.doubted
    over = _over(s, Came.NOT_DONE) if rests else {"rival": set(), **_kept(s)}
    return {"closed": True, "others": int(s.other == "RESTING"), **over}


def _cancel(s: Situation) -> dict[str, Any]:
    if _is_waited_for(s) and s.abandons:
        rows = {"0/pay#2": "k2"} if s.other in ("probed", "doubtful") else {}
        rows |= {UNIT: "k"} if _may_have_happened(s) else {}
        return {**_ends(s), "abandons": rows}
    if not _is_waited_for(s):
        return {**_ends(s), "abandons": None}
    calls = s.runs and s.alive and s.live and s.phase == Phase.CALLING
    left = "CANCELLED" if s.runs and not calls else None
    ends = 900 + CALL_MS + SLACK_MS if calls else NEVER
    told = {
        "outcome": "CANCELLING",
        "closed": False,
        **_kept(s),
        "left": left,
        "ends": ends,
        "ready": None,
    }
    if left:
        told["fact"] = {"kind": "doubt", "attempt": "IN_PROGRESS>ABORTED", "reason": left, "charged": False}
    return told


def _return(s: Situation) -> dict[str, Any]:
    if s.phase is None and s.step == "open":
        return {"outcome": "Relook"}
    if not _is_waited_for(s):
        return _ends(s)
    second = s.other in ("probed", "doubtful")
    kept = _kept(s)
    asks_nobody = not s.probe if kept["effect"] else s.phase == Phase.IN_DOUBT and s.due is None
    person = s.other == "doubtful" if second else asks_nobody
    return {"closed": False, **kept, **_leaves(s, person=person, returned=True)}


_ANSWERS = {
    "call": _call,
    "end": _end,
    "rest": _rest,
    "doubt": _doubt,
    "probe": _probe,
    "settle": _settle,
    "lost": _lost,
    "resume": _resume,
    "cancel": _cancel,
    "return": _return,
}


def judged(number: int) -> Situation:
    """Compare what comes of a request with what must."""
    situation = draw(number)
    came, wanted = came_of(situation), expected(situation)
    found = {name: came.get(name) for name in wanted}
    assert found == wanted, f"{number}: {situation}"
    return situation
