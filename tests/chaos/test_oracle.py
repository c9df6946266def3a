"""The oracle of chaos is not blind: each thing that it is to find is planted, and found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.chaos.oracle import Ended, Evidence, Verdict, judge, told_by

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
        ]
        self.calls = {(label, "draw"): {TOKEN} for label in ("2-1", "2-2", "2-4", "2-6")}
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
        ]
        self.jobs: dict[str, Ended | None] = {
            "j1": Ended("SUCCEEDED", TOKEN),
            "j2": Ended("SUCCEEDED", f"{TOKEN}:said-2-2:None"),
            "j3": Ended("CANCELLED", None),
            "j4": Ended("SUCCEEDED", TOKEN),
        }

    def judged(self, *, relaxed: bool = False) -> Verdict:
        told, surprises = told_by(self.notes)
        return judge(Evidence(told, self.calls, self.rows, self.jobs, surprises), relaxed=relaxed)

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
    case.notes.append(note("ack", "2-3", role="main", job="j9"))
    case.jobs["j9"] = Ended("CANCELLED", None)


def nobody_submitted(case: Case) -> None:
    case.rows.append(("7-7", "page", TOKEN))


def stands_still(case: Case) -> None:
    case.untold("2-3")
    case.jobs["j3"] = Ended("IN_PROGRESS", None)


def never_told(case: Case) -> None:
    case.untold("2-1")


def raw_error(case: Case) -> None:
    case.notes.append(note("surprise", "2-1", error="OperationalError()"))


PLANTED = [
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
