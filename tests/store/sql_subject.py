"""A SQL store as a subject of the conformance suite: its pictures are read from its tables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, TypeVar

from tallystick.clock import VirtualClock
from tallystick.store.api import Store
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

TABLES: dict[type[Picture], str] = {
    JobPicture: "jobs",
    AttemptPicture: "attempts",
    StepPicture: "steps",
    MessagePicture: "messages",
    FactPicture: "events",
    ReservationPicture: "idempotency",
    DirectivePicture: "outbox",
    StaleReportPicture: "stale_reports",
}
P = TypeVar("P", bound=Picture)


class SqlSubject(ABC):
    """What the subjects of both SQL stores show alike."""

    url: str
    clock: VirtualClock
    store: Store
    by_hand: Any

    @abstractmethod
    def rows(self, table: str, columns: Sequence[str] = ()) -> list[dict[str, Any]]:
        """Return all rows of a table, of these columns or of all, in the order of the first three."""

    @abstractmethod
    def plant_row(self, table: str, **columns: object) -> None:
        """Insert a row by hand."""

    def job(self, job_id: str) -> JobPicture:
        (found,) = [job for job in self.jobs() if job.job_id == job_id]
        return found

    def jobs(self) -> list[JobPicture]:
        return self._look(JobPicture)

    def attempts(self) -> list[AttemptPicture]:
        return self._look(AttemptPicture)

    def steps(self) -> list[StepPicture]:
        return self._look(StepPicture)

    def messages(self) -> list[MessagePicture]:
        return self._look(MessagePicture)

    def facts(self) -> list[FactPicture]:
        return self._look(FactPicture)

    def reservations(self) -> list[ReservationPicture]:
        return self._look(ReservationPicture)

    def directives(self) -> list[DirectivePicture]:
        return self._look(DirectivePicture)

    def stale_reports(self) -> list[StaleReportPicture]:
        return self._look(StaleReportPicture)

    def books(self, job_id: str | None = None) -> Books:
        return {
            picture: [row for row in self.rows(table) if job_id in {None, row["job_id"]}]
            for picture, table in TABLES.items()
            if picture is not StaleReportPicture
        }

    def plant(self, *pictures: Picture) -> None:
        for picture in pictures:
            said = {name: value for name, value in picture._asdict().items() if value is not None}
            self.plant_row(TABLES[type(picture)], **said)

    def _look(self, picture: type[P]) -> list[P]:
        return [picture(**row) for row in self.rows(TABLES[picture], picture._fields)]
