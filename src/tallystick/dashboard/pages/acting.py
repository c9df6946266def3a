"""What forms about one job do: the same calls as the command line and the API make, with who made them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from tallystick.app.api.job import Job
from tallystick.core.effects.requests import Settled
from tallystick.core.json_forms.strict_json import decode_strict
from tallystick.core.remote.keys import ADMIN, WRITE
from tallystick.dashboard.answers import Answer, Go
from tallystick.dashboard.visits import Visit
from tallystick.defaults import CANCEL_GRACE
from tallystick.errors import BadInput
from tallystick.store.api import Delivered


def acting(verb: str) -> Callable[[Visit], Answer]:
    """Return what answers a form that says this to the job of its address, and goes back to its page."""
    does = VERBS[verb].does

    def act(visit: Visit) -> Answer:
        job, _row = visit.job()
        where, said = does(visit, job)
        return Go(visit.at(f"jobs/{where}"), said)

    return act


def _cancel(visit: Visit, job: Job[Any]) -> tuple[str, str]:
    state = job.cancel(grace=visit.sent("grace", default=CANCEL_GRACE) or "0", by=visit.who)
    return job.id, f"Asked to end; it is {state.value.lower()} now."


def _force(visit: Visit, job: Job[Any]) -> tuple[str, str]:
    state = job.cancel(grace="0", force=True, by=visit.who)
    return job.id, f"Ended by force; it is {state.value.lower()} now."


def _pause(visit: Visit, job: Job[Any]) -> tuple[str, str]:
    why = visit.sent("why", default="").strip() or "paused by hand"
    return job.id, f"{_sentence(job.pause(why, by=visit.who))}"


def _resume(visit: Visit, job: Job[Any]) -> tuple[str, str]:
    return job.id, _sentence(job.resume(by=visit.who))


def _retry(visit: Visit, job: Job[Any]) -> tuple[str, str]:
    new = job.retry(by=visit.who)
    return new.id, "This new job has taken the place of the one that failed."


def _fork(visit: Visit, job: Job[Any]) -> tuple[str, str]:
    new = job.fork(at=visit.sent("at"), by=visit.who)
    return new.id, f"This new job goes on from what {job.id} recorded."


def _send(visit: Visit, job: Job[Any]) -> tuple[str, str]:
    unique = f"{visit.who}: {visit.runtime.ids.token()[:12]}".replace(" ", "-")
    outcome = job.send(visit.sent("name"), _json(visit.sent("value")), id=unique, by=visit.who)
    words = {Delivered.DROPPED: "The job has ended; the signal was dropped."}
    return job.id, words.get(outcome, _sentence(outcome))


def _resolve(visit: Visit, job: Job[Any]) -> tuple[str, str]:
    effect, says = visit.sent("effect"), visit.sent("says")
    if says == "happened":
        settled = job.resolve(happened=_json(visit.sent("value")), effect=effect, by=visit.who)
    elif says == "did not happen":
        settled = job.resolve(did_not_happen=True, effect=effect, by=visit.who)
    elif says == "call it again":
        settled = job.resolve(retry=True, effect=effect, by=visit.who)
    else:
        raise BadInput("say what came of the effect: happened, did not happen, or call it again")
    done = {Settled.DONE: "Written down; the job goes on.", Settled.AGAIN: "It is called again."}
    return job.id, done.get(settled, _sentence(settled))


def _json(text: str) -> object:
    return decode_strict((text.strip() or "null").encode())


def _sentence(said: str) -> str:
    text = str(said)
    return f"{text[:1].upper()}{text[1:]}."


class Verb(NamedTuple):
    """What a form says to a job, and the scope that it needs, as over HTTP."""

    scope: str
    does: Callable[[Visit, Job[Any]], tuple[str, str]]


VERBS: Final[Mapping[str, Verb]] = {
    "cancel": Verb(WRITE, _cancel),
    "force": Verb(ADMIN, _force),
    "pause": Verb(WRITE, _pause),
    "resume": Verb(WRITE, _resume),
    "retry": Verb(WRITE, _retry),
    "fork": Verb(WRITE, _fork),
    "send": Verb(WRITE, _send),
    "resolve": Verb(ADMIN, _resolve),
}
