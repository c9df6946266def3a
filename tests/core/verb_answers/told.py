"""What comes of a request, told in lines: each write against the row as it was, and the answer at the end."""

from __future__ import annotations

from typing import Any

import msgspec

from tallystick.core.deciding import decide
from tallystick.core.pictures import Activity, Pictures
from tallystick.core.plans import (
    AppendFact,
    CountChild,
    DropActivities,
    DropInbox,
    InsertActivity,
    InsertAttempt,
    InsertChild,
    InsertMessage,
    MoveActivity,
    MoveAttempt,
    MoveJob,
    MoveMessage,
    MoveRemote,
    MoveSemaphore,
    Plan,
    Refusal,
    Relook,
    Write,
)
from tests.core.verb_answers.rows import NOW, Case

_SHORT = {"root_ledger": "root", "start_ledger": "start", "start_acked_at": "start_acked"}


def judged(one: Case) -> None:
    """Compare what comes of a case with what must."""
    came = tuple(lines(one.pictures, answer_to(one)))
    assert came == one.said, f"{one.name}:\n  came " + "\n       ".join(came)


def answer_to(one: Case) -> Any:
    """Ask."""
    pictures = one.pictures.overlay(one.pictures)
    return one.asked(pictures) if callable(one.asked) else decide(pictures, one.asked, NOW)


def lines(pictures: Pictures, came: Any) -> list[str]:
    """Return what came of a case, line by line."""
    match came:
        case Refusal(error):
            text = error.message.partition(": ")[2] if error.code == "INVARIANT_BROKEN" else ""
            said = text.removesuffix("; see `tally doctor`")
            return [f"{type(error).__name__}: {said}" if said else type(error).__name__]
        case Relook(job_id, children):
            return [f"look again at {job_id}{' and its children' if children else ''}"]
        case Plan(writes, outcome, wakes):
            before = _Before(pictures)
            return [*map(before.told, writes), f"{_word(outcome)}{', wakes' if wakes else ''}"]
    return [_word(came)]


class _Before:
    """The rows as the writes so far have left them."""

    def __init__(self, pictures: Pictures) -> None:
        self.jobs = {name: picture.job for name, picture in pictures.items()}
        self.activities = {
            (n, place): row for n, p in pictures.items() for place, row in p.activities.items()
        }
        self.remotes = {(n, place): row for n, p in pictures.items() for place, row in p.remotes.items()}
        self.messages = {guid: row for picture in pictures.values() for guid, row in picture.messages.items()}

    def told(self, write: Write) -> str:  # noqa: PLR0911, PLR0912 (a case for each kind of write)
        match write:
            case MoveJob(job, rev, fact, values):
                kept = {name: value for name, value in values._asdict().items() if value is not None}
                return self._job(job, rev) + _fact(fact) + (f"; {pairs(kept)}" if kept else "")
            case MoveSemaphore(job, rev, delta, hit, message, digits, activity, activity_rev):
                moved = f"{self._job(job, rev)}; by {delta}{', closes' if hit else ''}; "
                moved += self._message(message, digits)
                return moved if activity is None else f"{moved}; {self._activity(activity, activity_rev)}"
            case CountChild(group, rev, hit, message, digits):
                counted = self._new(message) if digits is None else self._message(message, digits)
                return f"{self._activity(group, rev)}; {counted}{', closes' if hit else ''}"
            case InsertActivity(activity, at, fact, result, error):
                self.activities[activity.job_id, activity.place] = activity
                about = pairs({**_set(activity, 4), "at": at, "result": result, "error": error})
                return f"new {_named(activity)}: {about}{_fact(fact)}"
            case MoveActivity(activity, rev, at, fact, result, error):
                about = pairs({"at": at, "result": result, "error": error})
                return f"{self._activity(activity, rev)} {about}{_fact(fact)}"
            case InsertMessage(message):
                return self._new(message)
            case MoveMessage(message, digits):
                return self._message(message, digits)
            case MoveAttempt(job_id, attempt, _lease, was, status, reason, charged, live):
                end = f"attempt {attempt}: {was} to {status} {reason or ''}".rstrip()
                return f"{_whose(job_id)}{end}{', charged' if charged else ''}{'' if live else ', not live'}"
            case InsertAttempt(job_id, attempt, status, reason, guid, unit):
                made = f"new attempt {attempt}: {status} {reason} by {guid or 'none'} {unit}"
                return f"{_whose(job_id)}{made}".rstrip()
            case InsertChild(child, fact, step):
                about = pairs({"parent": child.parent_job_id, "deadline": child.deadline_at, "of": step})
                return f"new child {child.job_id[-1]}: {about}"
            case MoveRemote(step, place, rev):
                before = self.remotes[step.job_id, place]
                return f"remote {step.step_id}: {changed(before, step, rev)}"
            case AppendFact(fact):
                return _fact(fact)[2:]
            case DropActivities(job_id, count):
                return f"{_whose(job_id)}{count} dropped"
            case DropInbox(job_id, keep, signals):
                kept = " ".join(sorted(set(keep) - {""})) or "nothing"
                return f"{_whose(job_id)}inbox dropped but {kept}{'' if signals else ' and signals'}"
        about = {name: value for name, value in write._asdict().items() if value not in (None, "")}
        return f"{type(write).__name__} {pairs(about)}"

    def _job(self, job: Any, rev: int) -> str:
        before = self.jobs[job.job_id]
        self.jobs[job.job_id] = job
        return f"{_whose(job.job_id)}job: {changed(before, job, rev)}"

    def _activity(self, activity: Activity, rev: int) -> str:
        before = self.activities[activity.job_id, activity.place]
        self.activities[activity.job_id, activity.place] = activity
        return f"{_whose(activity.job_id)}{_named(activity)}: {changed(before, activity, rev)}"

    def _message(self, message: Any, digits: int) -> str:
        before = self.messages.get(message.guid)
        self.messages[message.guid] = message
        assert before is None or before.ledger == digits, "guarded by other digits"
        if before is None:
            return f"{message.guid} {pairs(_set(message, 2))}"
        return f"{message.guid}: {changed(before, message, None)}"

    def _new(self, message: Any) -> str:
        assert message.guid not in self.messages, "a message that is there"
        self.messages[message.guid] = message
        return f"{_whose(message.job_id)}new {message.guid}: {pairs(_set(message, 2))}"


def silent(decision: Any) -> Any:
    """Return a plan without its answer."""
    return decision._replace(outcome=None)


def _whose(job_id: str) -> str:
    return "" if job_id == "j" else f"{job_id} "


def _named(activity: Activity) -> str:
    turn = f"{activity.dimension}/" if activity.dimension else ""
    return f"{turn}{activity.name}#{activity.occurrence}"


def changed(before: Any, after: Any, rev: int | None) -> str:
    """Return the fields that are other than before; a row that is written has the next revision."""
    if rev is not None:
        assert (before.rev, after.rev) == (rev, rev + 1), f"{before.rev}, {rev} and {after.rev}"
    names = [name for name in before._fields if name != "rev"]
    return pairs({n: getattr(after, n) for n in names if getattr(after, n) != getattr(before, n)})


def _set(row: Any, first: int) -> dict[str, Any]:
    """Return the fields of a new row that say something."""
    about = zip(row._fields[first:], row[first:], strict=True)
    return {name: value for name, value in about if value not in (None, "") and name != "rev"}


def _fact(fact: Any) -> str:
    if fact is None:
        return ""
    said = msgspec.json.decode(fact.payload)
    said.pop("form", None)
    about = " ".join(f"{name}={_value(name, value)}" for name, value in said.items())
    return f"; tells {fact.type} of {fact.attempt} at {fact.at}{' ' if about else ''}{about}"


def pairs(about: dict[str, Any]) -> str:
    return " ".join(
        f"{_SHORT.get(name, name)}={_value(name, value)}"
        for name, value in about.items()
        if not (name in ("result", "error") and value is None)
    )


def _value(name: str, value: Any) -> str:
    return f"{value:015d}" if name.endswith("ledger") and isinstance(value, int) else _word(value)


def _word(value: Any) -> str:
    if type(value).__name__ == "EndedNow":
        return f"{value} now"
    if isinstance(value, bool) or value is None:
        return {None: "-", True: "yes", False: "no"}[value]
    if hasattr(value, "_asdict"):
        return f"{type(value).__name__}({pairs(value._asdict())})"
    return getattr(value, "name", None) or str(value)
