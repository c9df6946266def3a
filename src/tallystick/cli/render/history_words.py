"""Facts of a job's history in words.

Nothing here trusts what it reads: a payload that is not what we write is shown as the text it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tallystick.cli.render.wording import short, span, stored_value
from tallystick.core.chain import read_step_payload
from tallystick.store.api import StoredEvent

_VALUE_CHARS: Final = 80


def in_words(fact: StoredEvent) -> str:
    """Return what a fact says, in a sentence; values are cut."""
    step = read_step_payload(fact.payload)
    if step is not None:
        name = step.name if step.occurrence == 1 else f"{step.name}#{step.occurrence}"
        if step.error is not None:
            return f"{fact.type} {name} failed: {_error(stored_value(step.error))}"
        say_answer = _ANSWERS.get(fact.type)
        if say_answer is not None:
            return say_answer(name, step.result or "null")
        return f"{fact.type} {name} returned {short(step.result, _VALUE_CHARS)}"
    data = stored_value(fact.payload)
    say = _SENTENCES.get(fact.type)
    if say is None or not isinstance(data, dict):
        return f"{fact.type} {short(fact.payload, _VALUE_CHARS)}"
    return say(data)


def details(fact: StoredEvent) -> object:
    """Return all that a fact carries, as data."""
    step = read_step_payload(fact.payload)
    if step is None:
        return stored_value(fact.payload)
    return {
        "step": step.name,
        "occurrence": step.occurrence,
        "state": step.state,
        "ledger": f"{step.ledger:015d}",
        "result": stored_value(step.result),
        "error": stored_value(step.error),
        "drawn": stored_value(step.notes),
    }


def _error(data: object) -> str:
    if not isinstance(data, dict):
        return short(str(data), _VALUE_CHARS)
    return f"{data.get('type', 'error')}: {short(str(data.get('message', '')), _VALUE_CHARS)}"


def _submitted(_data: dict[str, Any]) -> str:
    return "submitted"


def _claimed(data: dict[str, Any]) -> str:
    return "claimed by a worker" if "QUEUED" in str(data.get("job")) else "claimed again by a worker"


def _tried(data: dict[str, Any]) -> str:
    again = f"; again in {span(int(data.get('delay_ms') or 0))}"
    return f"try {data.get('try')} of {data.get('step')} failed: {_error(data.get('error'))}{again}"


def _returned(_data: dict[str, Any]) -> str:
    return "returned: the job has succeeded"


def _failed(data: dict[str, Any]) -> str:
    if "error" in data:
        return f"failed for good: {_error(data.get('error'))}"
    return f"failed for good: {data.get('code')} in {data.get('step')}: {_text(data, 'reason')}"


def _text(data: dict[str, Any], name: str) -> str:
    return short(str(data.get(name) or ""), _VALUE_CHARS)


def _dispatched(data: dict[str, Any]) -> str:
    return f"asks for {_text(data, 'step')} again"


def _sent(data: dict[str, Any]) -> str:
    taker = f", taken by {_text(data, 'worker')}" if data.get("worker") else ""
    return f"the directive of {_text(data, 'step')} is out{taker}"


def _begun(data: dict[str, Any]) -> str:
    return f"a remote worker has begun {_text(data, 'step')}"


def _reported(data: dict[str, Any]) -> str:
    code = f"failed with {_text(data, 'code')}" if data.get("code") else "ended"
    return f"a remote worker has reported: {_text(data, 'step')} {code}"


def _late(data: dict[str, Any]) -> str:
    return f"no remote worker was heard of in time about {_text(data, 'step')} ({_text(data, 'code')})"


def _released(data: dict[str, Any]) -> str:
    error = f": {_error(data['error'])}" if "error" in data else ""
    return f"given back to the queue ({data.get('reason')}){error}"


def _held(data: dict[str, Any]) -> str:
    if data.get("hold") == "PAUSED":
        return _put_away(data)
    return f"held for a person ({data.get('hold')}): {short(str(data.get('why')), _VALUE_CHARS)}"


def _put_away(data: dict[str, Any]) -> str:
    if "attempt" in data:
        return "stopped at a call: the job is held"
    return f"paused: {short(str(data.get('why')), _VALUE_CHARS)}"


def _resumed(data: dict[str, Any]) -> str:
    return f"resumed ({data.get('hold')}){_by(data)}"


def _intended(data: dict[str, Any]) -> str:
    if "of" in data:
        return f"{data.get('effect')}: {data.get('of')} has the key {data.get('key')}"
    return f"means to call {data.get('effect')} under the key {data.get('key')}"


def _called(data: dict[str, Any]) -> str:
    return f"call {data.get('call')} of {data.get('effect')}"


def _doubted(data: dict[str, Any]) -> str:
    why = f": {short(str(data['doubt']), _VALUE_CHARS)}" if data.get("doubt") else ""
    return f"waits until it is known what came of {data.get('effect')}{why}"


def _resolved(data: dict[str, Any]) -> str:
    return f"{data.get('by')} says of {data.get('effect')}: {data.get('says')}"


def _forked(data: dict[str, Any]) -> str:
    verb = "takes the place of" if data.get("retry") else "forked from"
    at = str(data.get("at") or "its end").removesuffix("#1")
    whose = f"{verb} {short(str(data.get('fork_of')))} at {at}"
    return f"{whose}, with {data.get('copied')} of its records{_by(data)}"


def _reclaimed(data: dict[str, Any]) -> str:
    if data.get("verdict") == "FAIL":
        return "the lease ran out and no attempts are left: the job has failed"
    if data.get("verdict") == "FINISH":
        return "the work was committed and its worker lost: finished from there"
    if data.get("verdict") == "SETTLE":
        return "the lease ran out while the job was being cancelled"
    if data.get("reason") == "RELEASED":
        return "the lease ran out because the store was away: given back, not charged"
    return "the lease ran out: the next worker can claim it"


def _suspended(data: dict[str, Any]) -> str:
    awaited = [name.removesuffix("#1") for name in str(data.get("for")).split(", ")]
    return f"waits for {', '.join(awaited)}, without a worker"


def _turned(data: dict[str, Any]) -> str:
    return f"begins again: turn {int(data.get('dimension') or 0) + 1}"


def _trimmed(data: dict[str, Any]) -> str:
    turns = data.get("turns")
    gone = "turn 1 is" if turns == 1 else f"turns 1 to {turns} are"
    return f"{gone} trimmed, with facts 1 to {data.get('last_n')}"


def _cancelled(data: dict[str, Any]) -> str:
    forced = data.get("forced") is True and "by" not in data
    return "cancelled: its grace was over" if forced else f"cancelled{_by(data)}"


def _by(data: dict[str, Any]) -> str:
    """Return who wanted it, if that is known."""
    return f" by {_text(data, 'by')}" if data.get("by") else ""


def _noted(_data: dict[str, Any]) -> str:
    return "drawn values kept"


def _answered(name: str, result: str) -> str:
    return f"wait {name} got {short(result, _VALUE_CHARS)}"


def _slept(name: str, _result: str) -> str:
    return f"{name} is over"


def _done_elsewhere(name: str, result: str) -> str:
    return f"remote step {name} returned {short(result, _VALUE_CHARS)}"


def _joined(name: str, _result: str) -> str:
    return f"{name}: the children have ended"


_ANSWERS: Final[dict[str, Callable[[str, str], str]]] = {
    "wait": _answered,
    "sleep": _slept,
    "group": _joined,
    "remote": _done_elsewhere,
}

_SENTENCES: Final[dict[str, Callable[[dict[str, Any]], str]]] = {
    "submit": _submitted,
    "claim": _claimed,
    "try": _tried,
    "return": _returned,
    "fail": _failed,
    "release": _released,
    "hold": _held,
    "resume": _resumed,
    "intent": _intended,
    "call": _called,
    "doubt": _doubted,
    "resolve": _resolved,
    "fork": _forked,
    "reclaim": _reclaimed,
    "suspend": _suspended,
    "again": _turned,
    "trim": _trimmed,
    "replace": lambda _data: "got other arguments before it began",
    "cancel": _cancelled,
    "note": _noted,
    "dispatch": _dispatched,
    "sent": _sent,
    "ack": _begun,
    "result": _reported,
    "timeout": _late,
}
