"""Tables of one prefix as a subject of the conformance suite: its pictures are read from the rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from tallystick.clock import Clock, VirtualClock
from tallystick.store.api import Transaction
from tallystick.store.azure import keys
from tallystick.store.azure.client import Carrier
from tallystick.store.azure.entities import unpacked
from tallystick.store.azure.heads import Seen, read_job
from tallystick.store.azure.requests import Find, Row, find
from tallystick.store.azure.store import AzureStore
from tallystick.testing.conformance.pictures import (
    AttemptPicture,
    Books,
    DirectivePicture,
    FactPicture,
    JobPicture,
    MessagePicture,
    Picture,
    ReservationPicture,
    StaleReportPicture,
    StepPicture,
)

P = TypeVar("P", bound=Picture)
EVERYTHING = "~~"
NOBODY = "tables have no transactions on loan"


class AzureSubject:
    """Empty tables, opened."""

    crash_points: tuple[str, ...] = ()

    def __init__(self, url: str, client: Carrier | None = None) -> None:
        self.url = url
        self.clock = VirtualClock()
        self.store = AzureStore(url, self.clock, client=client)

    def open(self, clock: Clock) -> AzureStore:
        return AzureStore(self.url, clock)

    def close(self) -> None:
        self.store.close()

    def rows(self, table: str, pk: str | None = None) -> list[Row]:
        asked = Find(table, "", pk_below=EVERYTHING) if pk is None else Find(table, pk)
        return self.store.client.ask(find(asked))

    def _seen(self, job_id: str | None) -> list[Seen]:
        by_job: dict[str, list[Row]] = {}
        for row in self.rows(keys.STEPS, None if job_id is None else keys.encoded(job_id)):
            by_job.setdefault(row.pk, []).append(row)
        found = [read_job(rows) for rows in by_job.values()]
        return [seen for seen in found if seen is not None]

    def job(self, job_id: str) -> JobPicture:
        (found,) = _made(JobPicture, map(_job_row, self._seen(job_id)))
        return found

    def jobs(self) -> list[JobPicture]:
        return _made(JobPicture, map(_job_row, self._seen(None)))

    def attempts(self) -> list[AttemptPicture]:
        return []

    def steps(self) -> list[StepPicture]:
        return _made(StepPicture, (row for seen in self._seen(None) for row in _step_rows(seen)))

    def messages(self) -> list[MessagePicture]:
        return _made(MessagePicture, (row for seen in self._seen(None) for row in _message_rows(seen)))

    def facts(self) -> list[FactPicture]:
        return _made(FactPicture, self._plain(keys.EVENTS))

    def reservations(self) -> list[ReservationPicture]:
        return _made(ReservationPicture, self._plain(keys.IDEMPOTENCY))

    def directives(self) -> list[DirectivePicture]:
        return _made(DirectivePicture, self._plain(keys.OUTBOX))

    def stale_reports(self) -> list[StaleReportPicture]:
        return _made(StaleReportPicture, self._plain(keys.STALE))

    def _plain(self, table: str, pk: str | None = None, job_id: str | None = None) -> list[dict[str, Any]]:
        rows = [unpacked(row.values) for row in self.rows(table, pk)]
        return [row for row in rows if job_id in {None, row["job_id"]}]

    def books(self, job_id: str | None = None) -> Books:
        seen = self._seen(job_id)
        events = None if job_id is None else keys.encoded(job_id)
        partition = None if job_id is None or not seen else seen[0].head.partition
        return {
            JobPicture: [_job_row(each) for each in seen],
            StepPicture: [row for each in seen for row in _step_rows(each)],
            MessagePicture: [row for each in seen for row in _message_rows(each)],
            FactPicture: self._plain(keys.EVENTS, events, job_id),
            ReservationPicture: self._plain(keys.IDEMPOTENCY, None, job_id),
            DirectivePicture: self._plain(keys.OUTBOX, partition, job_id),
        }

    def plant(self, *pictures: Picture) -> None:
        raise NotImplementedError("what is planted by hand belongs to workflows")

    def put_effect(self, transaction: Transaction, value: str) -> None:
        raise NotImplementedError(NOBODY)

    def effects(self) -> list[str]:
        raise NotImplementedError(NOBODY)

    def spin(self, transaction: Transaction) -> None:
        raise NotImplementedError(NOBODY)


def _made(picture: type[P], rows: Iterable[Mapping[str, Any]]) -> list[P]:
    defaults = picture._field_defaults
    return [picture(**{name: row.get(name, defaults.get(name)) for name in picture._fields}) for row in rows]


def _job_row(seen: Seen) -> dict[str, Any]:
    head = seen.head
    about = {"created_at": head.created_at, "updated_at": head.updated_at, "handler": head.job.protocol_id}
    return {**head.job._asdict(), **head.about._asdict(), **about, "kind": "protocol", "ready_at": None}


def _step_rows(seen: Seen) -> list[dict[str, Any]]:
    return [
        {
            **kept.step._asdict(),
            "name": kept.step.step_id,
            "occurrence": 1,
            "kind": "protocol",
            "created_at": kept.created_at,
            "updated_at": kept.updated_at,
        }
        for kept in seen.steps
    ]


def _message_rows(seen: Seen) -> list[dict[str, Any]]:
    found = [seen.head.message, *(kept.message for kept in seen.steps)]
    return [{**each._asdict(), "created_at": each.acked_at} for each in found if each is not None]
