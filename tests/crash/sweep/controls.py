"""Proof that the oracle can see: each case runs without a guard, which must be noticed, and with it."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from tests.crash.sweep import facts
from tests.crash.sweep.long_flush import FLUSH
from tests.crash.sweep.oracle import Wrong
from tests.crash.sweep.trial import Arm, Case, Kind, Relief, Stage, Verdict


class Control(NamedTuple):
    """A case with a guard removed, and what the oracle must find then."""

    name: str
    case: Case
    wrong: Wrong

    @property
    def guarded(self) -> Case:
        """Return the same case with the guard in place."""
        arms = tuple(arm._replace(point=GUARDED.get(arm.point, arm.point)) for arm in self.case.arms)
        return replace(self.case, mutant="", arms=arms, seconds=30.0)

    def caught(self, verdict: Verdict) -> bool:
        """Tell whether the oracle found what this control is about."""
        return any(finding.wrong is self.wrong for finding in verdict.findings)


# A worker meets this point only where an effect has a transaction of its own; the guarded place beside it.
GUARDED = {"sqlite.transaction.after": "sqlite.tx.after"}

CONTROLS = (
    Control(
        "FM_001: the duplicate after a lease timeout",
        Case(kind=Kind.ZOMBIE, jobs=("order",), hold="before_tx", mutant="effect_on_its_own"),
        Wrong.DUPLICATED,
    ),
    Control(
        "effect and marker in two transactions",
        Case(
            arms=(Arm(Stage.WORK, "sqlite.transaction.after"),),
            jobs=("order",),
            mutant="effect_on_its_own",
        ),
        Wrong.DUPLICATED,
    ),
    Control(
        "a step recorded without the fence",
        Case(
            kind=Kind.ZOMBIE,
            jobs=("order",),
            hold="quote",
            relief=Relief.BEGUN,
            mutant="steps_without_fence",
            seconds=3.0,
        ),
        Wrong.BROKEN,
    ),
    Control(
        "a job ended after its lease",
        Case(
            kind=Kind.ZOMBIE,
            jobs=("slow",),
            hold="finish",
            relief=Relief.NOBODY,
            mutant="end_after_expiry",
            seconds=3.0,
        ),
        Wrong.BROKEN,
    ),
    Control(
        "a job that has waited ended after its lease",
        Case(
            kind=Kind.ZOMBIE,
            jobs=("nap",),
            hold="woken",
            relief=Relief.NOBODY,
            mutant="end_waited_after_expiry",
            seconds=3.0,
        ),
        Wrong.BROKEN,
    ),
    Control(
        "a submit acknowledged before it is durable",
        Case(
            arms=(Arm(Stage.SUBMIT, "sqlite.commit.before"),),
            jobs=("order", "order"),
            mutant="acknowledge_at_once",
            seconds=3.0,
        ),
        Wrong.LOST,
    ),
    Control(
        "a reclaim decided by an older look",
        Case(
            jobs=("sluggish",),
            beside=True,
            hold=FLUSH,
            relief=Relief.SWEPT,
            mutant="reclaim_as_it_was_read",
            seconds=3.0,
        ),
        Wrong.BROKEN,
    ),
    Control(
        "a wake-up that fell before the suspension",
        Case(kind=Kind.WAITING, jobs=("approval",), mutant="suspend_without_looking", seconds=1.5),
        Wrong.STUCK,
    ),
    Control(
        "a group closed by everybody who finds it closed",
        Case(kind=Kind.WAITING, jobs=("twins", "twins"), mutant="word_without_a_name", seconds=3.0),
        Wrong.BROKEN,
    ),
    Control(
        "a signal sent again without its id",
        Case(
            kind=Kind.WAITING,
            arms=(Arm(Stage.SUBMIT_WAITING, "sqlite.commit.after", 2),),
            jobs=("approval",),
            mutant="signals_without_id",
        ),
        Wrong.DUPLICATED,
    ),
    Control(
        "a retry that the job which failed does not know of",
        # It is over when a job was retried twice, however long that takes.
        Case(kind=Kind.WAITING, jobs=("brittle",), mutant="retries_unmarked", seconds=20.0),
        Wrong.DUPLICATED,
    ),
    Control(
        "nobody reclaims the job of a dead worker",
        Case(
            arms=(Arm(Stage.WORK, "sqlite.step.before"),),
            jobs=("order",),
            mutant="nobody_reclaims",
            seconds=1.5,
        ),
        Wrong.STUCK,
    ),
    Control(
        "the job of a dead worker is reclaimed and not due",
        Case(
            arms=(Arm(Stage.WORK, "sqlite.step.before"),),
            jobs=("order",),
            mutant="reclaimed_and_not_due",
            seconds=1.5,
        ),
        Wrong.STUCK,
    ),
    Control(
        "nobody is charged for the workers that a job kills",
        Case(kind=Kind.POISON, jobs=("poison",), mutant="nobody_is_charged", seconds=6.0),
        Wrong.STUCK,
    ),
    Control(
        "a tick and the schedule behind it in two bundles",
        Case(
            arms=(Arm(Stage.WORK, "sqlite.schedule.before"),),
            jobs=(facts.TICK,),
            mutant="ticks_in_two_bundles",
        ),
        Wrong.DUPLICATED,
    ),
)


# A sweep on a server passes rows by that somebody holds, and whoever holds them renews his lease in the same
# transaction: there is no reclaim to be decided twice.
_NOT_ON_POSTGRES = ("reclaim_as_it_was_read",)
_ON_POSTGRES = {"sqlite.transaction.after": "postgres.tx_commit.after"}


def controls_of(store: str) -> tuple[Control, ...]:
    """Return the controls of a store."""
    if store == "sqlite":
        return CONTROLS
    return tuple(
        control._replace(case=replace(control.case, arms=tuple(map(_on_postgres, control.case.arms))))
        for control in CONTROLS
        if control.case.mutant not in _NOT_ON_POSTGRES
    )


def _on_postgres(arm: Arm) -> Arm:
    point = _ON_POSTGRES.get(arm.point, arm.point.replace("sqlite.", "postgres."))
    return arm._replace(point=point)
