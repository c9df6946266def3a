"""The oracle of chaos is not blind: each thing that it is to find is planted, and found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.chaos.oracle import Ended, Evidence, Verdict, judge, told_by
from tests.chaos.oracle_outside import Outside

TOKEN, OTHER = "a" * 32, "b" * 32


def note(what: str, label: str, **facts: object) -> dict[str, Any]:
    return {"what": what, "label": label, **facts}


def followed(label: str, kind: str, job: str, state: str, value: str | None) -> list[dict[str, Any]]:
    """Return the notes of a client that was told everything."""
    return [
        note("try", label, kind=kind, key=True),
        note("ack", label, role="main", job=job),
        note("end", label, role="main", job=job, state=state, value=value, code=""),
        note("done", label),
    ]


def done_by(step: str, label: str, token: str, before: str, receipt: str) -> dict[str, str]:
    """Return what a service has noted."""
    return {"step": step, "label": label, "token": token, "before": before, "receipt": receipt}


class Case:
    """A run in which all went well, to be spoiled in one place."""

    def __init__(self) -> None:
        self.notes = [
            *followed("2-1", "order", "j1", "SUCCEEDED", TOKEN),
            *followed("2-2", "approval", "j2", "SUCCEEDED", f"{TOKEN}:said-2-2:None"),
            *followed("2-3", "patient", "j3", "CANCELLED", None),
            *followed("2-4", "booking", "j4", "SUCCEEDED", TOKEN),
            note("try", "2-5", kind="crawl", key=False),
            note("refused", "2-5", error="StoreError()"),
            note("try", "2-6", kind="booking", key=False),
            note("unknown", "2-6"),
            *followed("2-7", "payment", "j7", "SUCCEEDED", f"{TOKEN}:{OTHER}"),
            *followed("2-8", "parcel", "j8", "SUCCEEDED", f"{TOKEN}:{OTHER}"),
            *followed("2-9", "scan", "j9", "SUCCEEDED", OTHER),
        ]
        self.bank = [{"key": "charge:2-7", "token": TOKEN, "receipt": OTHER}]
        self.services = [
            done_by("0/pick#1", "2-8", TOKEN, "", OTHER),
            done_by("read", "2-9", "", "", TOKEN),
            done_by("print", "2-9", "", TOKEN, OTHER),
        ]
        self.seats = [(str(n), what, 1) for n in range(3) for what in ("comes", "goes")]
        self.exact = True
        drawing = ("2-1", "2-2", "2-4", "2-6", "2-7", "2-8")
        self.calls = {(label, "draw"): {TOKEN} for label in drawing}
        self.rows = [
            ("2-1", "reserve", TOKEN),
            ("2-1", "ship", TOKEN),
            ("2-1/receipt", "receipt", OTHER),
            ("2-2", "approve", f"{TOKEN}:said-2-2:None"),
            ("2-3", "patience", OTHER),
            ("2-4", "booked", ""),
            ("2-4", "reserve", TOKEN),
            ("2-4", "ship", TOKEN),
            ("2-4/receipt", "receipt", OTHER),
            ("2-7", "paid", f"{TOKEN}:{OTHER}"),
            ("2-8", "parcel", f"{TOKEN}:{OTHER}"),
            *((f"tick-{n}", "tick", OTHER) for n in range(0, 40, 2)),
        ]
        self.jobs: dict[str, Ended | None] = {
            "j1": Ended("SUCCEEDED", TOKEN),
            "j2": Ended("SUCCEEDED", f"{TOKEN}:said-2-2:None"),
            "j3": Ended("CANCELLED", None),
            "j4": Ended("SUCCEEDED", TOKEN),
            "j7": Ended("SUCCEEDED", f"{TOKEN}:{OTHER}"),
            "j8": Ended("SUCCEEDED", f"{TOKEN}:{OTHER}"),
            "j9": Ended("SUCCEEDED", OTHER),
        }

    def judged(self, *, relaxed: bool = False) -> Verdict:
        told, surprises = told_by(self.notes)
        outside = Outside.read(self.bank, self.services, self.seats, exact=self.exact)
        evidence = Evidence(told, self.calls, self.rows, self.jobs, surprises, outside)
        return judge(evidence, relaxed=relaxed)

    def untold(self, label: str) -> None:
        self.notes = [n for n in self.notes if n["label"] != label or n["what"] not in {"end", "done"}]


def counts(verdict: Verdict) -> tuple[int, int, int, int]:
    return len(verdict.lost), len(verdict.doubled), len(verdict.stuck), len(verdict.findings)


def test_a_run_in_which_all_went_well_is_clean():
    assert Case().judged().clean


def vanished(case: Case) -> None:
    case.jobs["j1"] = None


def fell_back(case: Case) -> None:
    case.jobs["j2"] = Ended("IN_PROGRESS", None)


def effect_gone(case: Case) -> None:
    case.rows.remove(("2-1", "ship", TOKEN))


def submitted_and_never_done(case: Case) -> None:
    case.rows.remove(("2-1/receipt", "receipt", OTHER))


def half_of_a_transaction(case: Case) -> None:
    case.rows.append(("2-6", "booked", ""))


def other_half_of_a_transaction(case: Case) -> None:
    case.rows += [("2-6", "reserve", TOKEN), ("2-6", "ship", TOKEN)]


def done_twice(case: Case) -> None:
    case.rows.append(("2-3", "patience", OTHER))


def ran_again(case: Case) -> None:
    case.rows[0] = ("2-1", "reserve", OTHER)


def other_result(case: Case) -> None:
    case.jobs["j2"] = Ended("SUCCEEDED", f"{TOKEN}:said-2-2:said-2-2")


def never_drawn(case: Case) -> None:
    case.calls["2-1", "draw"] = {OTHER}


def failed(case: Case) -> None:
    case.notes = [*case.notes[4:], *followed("2-1", "order", "j1", "FAILED_FINAL", None)]
    case.jobs["j1"] = Ended("FAILED_FINAL", None)


def denied_and_there(case: Case) -> None:
    case.rows.append(("2-5", "page", TOKEN))


def two_jobs(case: Case) -> None:
    case.notes.append(note("ack", "2-3", role="main", job="j99"))
    case.jobs["j99"] = Ended("CANCELLED", None)


def nobody_submitted(case: Case) -> None:
    case.rows.append(("7-7", "page", TOKEN))


def stands_still(case: Case) -> None:
    case.untold("2-3")
    case.jobs["j3"] = Ended("IN_PROGRESS", None)


def never_told(case: Case) -> None:
    case.untold("2-1")


def raw_error(case: Case) -> None:
    case.notes.append(note("surprise", "2-1", error="OperationalError()"))


def paid_twice(case: Case) -> None:
    case.bank.append({"key": "charge:2-7", "token": TOKEN, "receipt": TOKEN})


def never_paid(case: Case) -> None:
    case.bank.clear()


def paid_for_another(case: Case) -> None:
    case.bank[0] |= {"token": OTHER}


def paid_for_nobody(case: Case) -> None:
    case.bank.append({"key": "charge:7-7", "token": TOKEN, "receipt": OTHER})


def asked_from_memory(case: Case) -> None:
    """A service was asked with what a step had returned that was forgotten and run again."""
    case.services.append(done_by("0/pick#1", "2-8", OTHER, "", TOKEN))


def never_picked(case: Case) -> None:
    case.services[0] |= {"receipt": TOKEN}


def printed_behind_nothing(case: Case) -> None:
    case.services[2] |= {"before": "x"}


def never_printed(case: Case) -> None:
    del case.services[2]


def three_at_once(case: Case) -> None:
    case.seats = [(str(n), what, 1) for what in ("comes", "goes") for n in range(3)]


def a_tick_is_missing(case: Case) -> None:
    case.rows.remove(("tick-6", "tick", OTHER))


def a_tick_is_there_twice(case: Case) -> None:
    case.rows.append(("tick-6", "tick", OTHER))


PLANTED = [
    (paid_twice, (0, 1, 0, 0)),
    (never_paid, (0, 1, 0, 0)),
    (paid_for_another, (0, 1, 0, 0)),
    (paid_for_nobody, (0, 1, 0, 0)),
    (asked_from_memory, (0, 1, 0, 0)),
    (never_picked, (0, 1, 0, 0)),
    (printed_behind_nothing, (0, 1, 0, 0)),
    (never_printed, (0, 1, 0, 0)),
    (three_at_once, (0, 1, 0, 0)),
    (a_tick_is_missing, (1, 0, 0, 0)),
    (a_tick_is_there_twice, (0, 1, 0, 0)),
    (vanished, (1, 0, 0, 0)),
    (fell_back, (1, 0, 0, 0)),
    (effect_gone, (1, 0, 0, 0)),
    (submitted_and_never_done, (0, 0, 1, 0)),
    (half_of_a_transaction, (1, 0, 0, 0)),
    (other_half_of_a_transaction, (1, 0, 0, 0)),
    (done_twice, (0, 1, 0, 0)),
    (ran_again, (0, 1, 0, 0)),
    (other_result, (0, 3, 0, 0)),
    (never_drawn, (0, 1, 0, 0)),
    (failed, (0, 1, 0, 0)),
    (denied_and_there, (0, 1, 0, 0)),
    (two_jobs, (0, 1, 0, 0)),
    (nobody_submitted, (0, 1, 0, 0)),
    (stands_still, (0, 0, 1, 0)),
    (never_told, (0, 0, 1, 0)),
    (raw_error, (0, 0, 0, 1)),
]


@pytest.mark.parametrize(("plant", "found"), PLANTED, ids=[plant.__name__ for plant, _ in PLANTED])
def test_what_is_planted_is_found(plant: Callable[[Case], None], found: tuple[int, int, int, int]):
    case = Case()
    plant(case)
    assert counts(case.judged()) == found


def took_over(case: Case) -> None:
    """Somebody came, was killed, and another went in its place: who sat there meanwhile is not known."""
    case.seats = [("0", "comes", 1), ("1", "comes", 1), ("2", "comes", 1)]
    case.seats += [("0", "goes", 2), ("1", "goes", 1), ("2", "goes", 1)]


def clock_was_wrong(case: Case) -> None:
    a_tick_is_missing(case)
    case.exact = False


def nobody_worked_for_long(case: Case) -> None:
    case.rows.append(("tick-1000", "tick", OTHER))


@pytest.mark.parametrize("plant", [took_over, clock_was_wrong, nobody_worked_for_long])
def test_what_may_be_is_not_found(plant: Callable[[Case], None]):
    case = Case()
    plant(case)
    assert case.judged().clean


@pytest.mark.parametrize("plant", [vanished, fell_back])
def test_an_asynchronous_standby_may_forget_what_was_acknowledged(plant: Callable[[Case], None]):
    case = Case()
    plant(case)
    verdict = case.judged(relaxed=True)
    assert verdict.clean
    assert verdict.forgiven == 1


@pytest.mark.parametrize("plant", [effect_gone, done_twice, ran_again, half_of_a_transaction])
def test_and_yet_what_is_there_must_be_right(plant: Callable[[Case], None]):
    case = Case()
    plant(case)
    assert not case.judged(relaxed=True).clean
