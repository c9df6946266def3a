"""What a person can do about a job: each act with its fields, and the same as a command and a request.

A button is shown where the job can still take the act, and to keys that have its scope.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Final, NamedTuple

from tallystick.core.effects.rows import EffectRow, Phase
from tallystick.core.lifecycles import JobState
from tallystick.core.remote.keys import ADMIN, WRITE
from tallystick.core.verbs.holds import Hold
from tallystick.defaults import CANCEL_GRACE
from tallystick.store.api import JobRow, OpenWait

APP: Final = "APP"
"""What stands for the program in a command line that is shown."""


class ButtonField(NamedTuple):
    """Something that the form of an act asks for: a text, one of some choices, or what is known already."""

    name: str
    label: str
    value: str = ""
    choices: tuple[str, ...] = ()
    is_hidden: bool = False
    hint: str = ""


class Button(NamedTuple):
    """One thing that can be done, with what it is in other words."""

    verb: str
    label: str
    about: str
    scope: str
    command: str
    request: str
    fields: tuple[ButtonField, ...] = ()
    kind: str = ""


def acts_of(
    row: JobRow,
    waits: Sequence[OpenWait],
    steps: Sequence[str],
    effects: Sequence[EffectRow],
) -> list[Button]:
    """Return the acts that a job can take now, the one that mends it first."""
    job_id = row.job_id
    # A job that was asked to end is never held for an effect, and one that has ended cannot be.
    is_ending = row.completed_at is not None or row.state == JobState.CANCELLING
    found = [_resolve(job_id, each, is_ending=is_ending) for each in effects if _is_asked(row, each)]
    if row.completed_at is None:
        if row.hold is not None:
            found.append(_resume(job_id, row.hold))
        found += [_send(job_id, wait.name) for wait in waits if wait.kind == "wait"]
        if row.state == JobState.CANCELLING:
            found.append(_force(job_id))
        else:
            found.append(_cancel(job_id))
            if row.hold is None:
                found.append(_pause(job_id))
    elif row.state == JobState.FAILED_FINAL and row.retried_as is None:
        found.append(_retry(job_id))
    if steps:
        found.append(_fork(job_id, steps))
    if row.completed_at is None and row.state != JobState.CANCELLING:
        found.append(_force(job_id))
    return found


def _is_asked(row: JobRow, effect: EffectRow) -> bool:
    """Tell whether a person can say what came of an effect."""
    return effect.is_open and (effect.phase == Phase.IN_DOUBT or row.hold == Hold.IN_DOUBT)


def _request(job_id: str, verb: str, body: str = "{}") -> str:
    return f"POST /v1/jobs/{job_id}/{verb}  {body}"


def _resume(job_id: str, hold: str) -> Button:
    about = "Workers may claim it again, and it goes on where it stands."
    kind = "" if hold == Hold.IN_DOUBT else "primary"
    return Button(
        "resume", "Resume", about, WRITE, f"tally resume {job_id} {APP}", _request(job_id, "resume"), (), kind
    )


def _pause(job_id: str) -> Button:
    about = "Workers leave it alone until it is resumed. If it runs now, it stops at its next call."
    why = ButtonField("why", "Why", hint="people read this later")
    command = f"tally pause {job_id} {APP} --why WHY"
    return Button(
        "pause", "Pause", about, WRITE, command, _request(job_id, "pause", '{"why": "WHY"}'), (why,)
    )


def _cancel(job_id: str) -> Button:
    about = "It ends at once if it does not run. If it runs, it has the grace to clean up."
    grace = ButtonField("grace", "Grace", CANCEL_GRACE, hint="how long it may clean up: 0, 30s, 5m")
    command = f"tally cancel {job_id} {APP} --grace {CANCEL_GRACE}"
    request = _request(job_id, "cancel", f'{{"grace": "{CANCEL_GRACE}"}}')
    return Button("cancel", "Cancel", about, WRITE, command, request, (grace,), "danger")


def _force(job_id: str) -> Button:
    about = "It ends now, without its clean-up; an effect of it that is in doubt stays open under its key."
    command = f"tally cancel {job_id} {APP} --force"
    request = _request(job_id, "cancel", '{"force": true}')
    return Button("force", "End by force", about, ADMIN, command, request, (), "danger")


def _retry(job_id: str) -> Button:
    about = "A new job takes its place. It keeps what this one recorded before the step that failed."
    command = f"tally retry {job_id} {APP}"
    return Button("retry", "Retry", about, WRITE, command, _request(job_id, "retry"), (), "primary")


def _send(job_id: str, name: str) -> Button:
    about = f"The job waits for the signal {name}; it gets this value."
    fields = (
        ButtonField("name", "Signal", name, is_hidden=True),
        ButtonField("value", "Value", "null", hint='JSON: true, 42, "text", {"a": 1}'),
    )
    command = f"tally send {job_id} {shlex.quote(name)} VALUE {APP}"
    request = _request(job_id, f"signals/{name}", '{"value": VALUE}')
    return Button("send", f"Send {name}", about, WRITE, command, request, fields, "primary")


def _fork(job_id: str, steps: Sequence[str]) -> Button:
    about = "A new job begins with what this one recorded before a step. This one stays as it is."
    at = ButtonField("at", "At step", choices=tuple(steps))
    command = f"tally fork {job_id} --at STEP {APP}"
    return Button("fork", "Fork", about, WRITE, command, _request(job_id, "fork", '{"at": "STEP"}'), (at,))


def _resolve(job_id: str, effect: EffectRow, *, is_ending: bool) -> Button:
    """Return the act that answers for an effect; a job that ends calls nothing again."""
    _dimension, name, occurrence = effect.place
    place = f"{name}#{occurrence}"
    about = (
        f"A call of {effect.effect} was made under the key {effect.key}, and it is not known what came of "
        "it. Look at the other side, then say it here."
    )
    answers = ("happened", "did not happen") if is_ending else ("happened", "did not happen", "call it again")
    fields = (
        ButtonField("effect", "Effect", place, is_hidden=True),
        ButtonField("says", "What came of it", choices=answers),
        ButtonField("value", "What it returned", "null", hint="JSON; only if it happened"),
    )
    command = f"tally resolve {job_id} {APP} --effect {shlex.quote(place)} --happened JSON"
    said = f'{{"says": "happened", "value": JSON, "effect": "{place}"}}'
    request = _request(job_id, "resolve", said)
    return Button("resolve", f"Resolve {effect.effect}", about, ADMIN, command, request, fields, "primary")
