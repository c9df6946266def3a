"""The judge of a run. It knows what users know: their rows, their effects outside, and what they were told.

What a client was told is in its notes. What the steps did outside the store is in `effects.log`. The rows of
the user's table and the ends of the jobs are read once, when the faults are over. Nothing of how the library
keeps its books is used here; whether they balance is asked of `tally doctor` and counted apart.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests.chaos.kinds import KINDS, Kind
from tests.chaos.oracle_outside import TICK, Outside

Row = tuple[str, str, str]


class Ended(NamedTuple):
    """How a job stands at the end: its state, and its result if it has one."""

    state: str
    result: str | None

    @property
    def final(self) -> bool:
        """Tell whether it has ended."""
        return self.state in {"SUCCEEDED", "FAILED_FINAL", "CANCELLED"}


@dataclass(slots=True)
class Told:
    """What a client noted about one piece of work."""

    label: str
    kind: str
    key: bool
    jobs: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    ends: dict[str, Ended] = field(default_factory=dict)
    codes: dict[str, str] = field(default_factory=dict)
    said: set[str] = field(default_factory=set)

    @property
    def refused(self) -> bool:
        """Tell whether the library said that nothing of it became durable."""
        return "refused" in self.said


class Evidence(NamedTuple):
    """Everything that is known when the faults are over."""

    told: dict[str, Told]
    calls: dict[tuple[str, str], set[str]]
    rows: list[Row]
    jobs: Mapping[str, Ended | None]
    surprises: list[str]
    outside: Outside = Outside()


def told_by(notes: Iterable[dict[str, Any]]) -> tuple[dict[str, Told], list[str]]:
    """Fold the notes of the clients; return what was told, and the errors that no user should meet."""
    told: dict[str, Told] = {}
    surprises = []
    for note in notes:
        label, what = note["label"], note["what"]
        if what == "try":
            told[label] = Told(label, note["kind"], note["key"])
        about = told[label]
        about.said.add(what)
        if what == "ack" and note["job"] not in about.jobs[note["role"]]:
            about.jobs[note["role"]].append(note["job"])
        elif what == "end":
            about.ends[note["role"]] = Ended(note["state"], note["value"])
            about.codes[note["role"]] = note["code"]
        elif what == "surprise":
            surprises.append(f"{label}: {note['error']}")
    return told, surprises


@dataclass(slots=True)
class Verdict:
    """What was found, each as a sentence."""

    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    stuck: list[str] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)
    # What an asynchronous standby was allowed to forget.
    forgiven: int = 0

    @property
    def clean(self) -> bool:
        """Tell whether there is nothing to complain about."""
        return not (self.lost or self.doubled or self.stuck or self.findings)


def judge(evidence: Evidence, *, relaxed: bool = False) -> Verdict:
    """Judge a run; `relaxed` lets acknowledged work be lost, but what is there must be right."""
    verdict = Verdict(findings=[f"an error that no user should meet: {text}" for text in evidence.surprises])
    _Judge(evidence, verdict, relaxed=relaxed).all()
    return verdict


class _Judge:
    def __init__(self, evidence: Evidence, verdict: Verdict, *, relaxed: bool) -> None:
        self._evidence = evidence
        self._verdict = verdict
        self._relaxed = relaxed
        self._rows: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        for label, effect, token in evidence.rows:
            self._rows[label][effect].append(token)

    def all(self) -> None:
        for label, effects in self._rows.items():
            for effect, tokens in effects.items():
                if len(tokens) > 1:
                    self._verdict.doubled.append(f"{label}: {effect} is there {len(tokens)} times")
            if label.split("/")[0] not in self._evidence.told and not label.startswith(TICK):
                self._verdict.doubled.append(f"{label}: rows of work that nobody submitted")
        self._outside()
        for told in self._evidence.told.values():
            self._one(told, KINDS[told.kind])

    def _outside(self) -> None:
        """Check what was done outside, and how much of it at once."""
        outside, verdict = self._evidence.outside, self._verdict
        if self._relaxed:
            # An intent that a standby has forgotten is no intent; ticks may be made again or not.
            verdict.forgiven += len(outside.acts_twice())
        else:
            verdict.doubled += outside.acts_twice()
            ticks = [label for label in self._rows if label.startswith(TICK)]
            verdict.lost += outside.missing_ticks(ticks)
        strange = outside.labels() - self._evidence.told.keys()
        verdict.doubled += [f"{label}: done outside for work that nobody submitted" for label in strange]
        verdict.doubled += outside.too_many_seats()

    def _one(self, told: Told, kind: Kind) -> None:
        if told.refused and not told.jobs:
            self._refused(told)
        if kind.booked:
            self._both_or_neither(told)
        for role, named in told.jobs.items():
            # A job that a standby has forgotten was made again under its key.
            there = [job_id for job_id in named if self._evidence.jobs[job_id] is not None]
            job_ids = there if self._relaxed and there else named
            if len(job_ids) > 1:
                self._verdict.doubled.append(f"{told.label}: {len(job_ids)} jobs under one key: {job_ids}")
            self._job(told, kind, role, job_ids[0])

    def _refused(self, told: Told) -> None:
        """Check that what was said to be not durable has left nothing."""
        if rows := self._rows.get(told.label):
            message = f"{told.label}: refused as not durable, and its rows are there: {sorted(rows)}"
            self._verdict.doubled.append(message)

    def _both_or_neither(self, told: Told) -> None:
        """Check a row and a job of one transaction, whatever its author was told."""
        rows = self._rows.get(told.label, {})
        booked = "booked" in rows
        if booked and not told.jobs and not ({"reserve", "ship"} <= set(rows)):
            self._verdict.lost.append(
                f"{told.label}: its row is there and the job of the same transaction not"
            )
        if not booked and rows:
            self._verdict.lost.append(
                f"{told.label}: its job is there and the row of the same transaction not"
            )

    def _job(self, told: Told, kind: Kind, role: str, job_id: str) -> None:
        about = f"{told.label} ({told.kind}, {role}) job {job_id}"
        found, seen = self._evidence.jobs[job_id], told.ends.get(role)
        if found is None or (seen is not None and not found.final):
            if self._relaxed:
                self._verdict.forgiven += 1
            elif found is None:
                self._verdict.lost.append(f"{about} was acknowledged and is not there")
            else:
                self._verdict.lost.append(f"{about} was said to be {seen.state} and is {found.state}")
            return
        if seen is None:
            how = f"is {found.state}" if not found.final else f"is {found.state}, and its client was not told"
            self._verdict.stuck.append(f"{about} {how}")
        elif found != seen:
            message = f"{about} was said to have ended with {seen} and has {found}"
            if self._relaxed:
                self._verdict.forgiven += 1
            else:
                self._verdict.doubled.append(message)
        if found.final:
            states = kind.states if role == "main" else ("SUCCEEDED",)
            if self._relaxed and kind.retries:
                # Its failure was forgotten after its client had mended what it failed with.
                states = ("FAILED_FINAL", "SUCCEEDED")
            if found.state not in states or "ATTEMPTS" in told.codes.get(role, ""):
                code = told.codes.get(role, "")
                self._verdict.doubled.append(f"{about} ended {found.state} {code}, not {states}")
            elif found.state == "SUCCEEDED":
                self._succeeded(told, kind, role, found.result or "", about)

    def _succeeded(self, told: Told, kind: Kind, role: str, result: str, about: str) -> None:
        """Check that what a job returned is what its steps did and its rows say."""
        if not kind.fits(told.label, result):
            self._verdict.doubled.append(f"{about} returned {result!r}")
        disowned = self._evidence.outside.disowned(kind, told.label, result, relaxed=self._relaxed)
        self._verdict.doubled += [f"{about}: {text}" for text in disowned]
        token = result.split(":", maxsplit=1)[0]
        if not kind.is_protocol and token not in self._evidence.calls.get((told.label, "draw"), ()):
            self._verdict.doubled.append(f"{about} returned {token!r}, which no step has drawn")
        for effect in kind.effects:
            for written in self._rows.get(told.label, {}).get(effect, ()):
                if not result.startswith(written) and effect != "booked":
                    message = f"{about} returned {result!r} and its row {effect} says {written!r}"
                    self._verdict.doubled.append(message)
        expected = [(told.label, effect) for effect in kind.effects]
        expected += [(told.label + suffix, effect) for suffix, effect in kind.others]
        for label, effect in expected:
            if effect not in self._rows.get(label, {}):
                self._verdict.lost.append(f"{about} succeeded, and its effect {effect} of {label} is gone")
        for suffix, effect in kind.later:
            if effect not in self._rows.get(told.label + suffix, {}):
                self._verdict.stuck.append(f"{about} succeeded, and the job that it submitted has not")
