"""A client process of a run: `python -m tests.chaos.client FOLDER SLOT`.

It submits jobs of every kind, does what each of them needs from outside, waits for its end, and notes what it
tried and what it was told. After a `kill -9` the next process of that number reads the notes and goes on:
what was acknowledged is followed to its end, what has a key is submitted again.
"""

from __future__ import annotations

import asyncio
import logging
import random
import sys
import threading
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, NamedTuple, TypeVar

from tallystick import Job, JobCancelled, JobFailed
from tallystick.errors import NotFailed, NotFound, NotResolved, OutcomeUnknown, StoreError, TallyError
from tests.chaos.kinds import KINDS
from tests.chaos.place import LEASE_SECONDS, Place
from tests.chaos.work import settle_in, write_effect
from tests.chaos.work_outside import app, command, receipt_of, scan
from tests.chaos.worker import CONCURRENCY, QUEUES
from tests.patience import let_time_pass

R = TypeVar("R")
THREADS = 6
_PAUSE = 0.05
# How long one question for a result waits before it is asked again.
_ASK = "1s"


class Episode(NamedTuple):
    """One piece of work, from its submission to its end."""

    label: str
    kind: str
    key: bool
    job_id: str | None = None


class Gone(Exception):
    """A job that was acknowledged is not there."""


class Client:
    """So many threads, each with one episode at a time."""

    def __init__(self, place: Place, slot: int) -> None:
        self._place = place
        self._file = f"client-{slot}.log"
        self._slot = slot
        self._lock = threading.Lock()
        notes = list(place.notes(self._file))
        self._begun = sum(note["what"] == "try" for note in notes)
        self._left = _unfinished(notes)
        settings = place.settings
        self._chance = random.Random(f"{settings['seed']} {slot} {self._begun}")
        self._forgetful = settings["relaxed"]

    def run(self) -> None:
        """Go on until told to take up nothing new, and all that was begun has ended."""
        threads = [threading.Thread(target=self._thread) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _thread(self) -> None:
        while (episode := self._next()) is not None:
            try:
                self._play(episode)
            except Gone:
                self._note("gone", episode)
            let_time_pass(self._chance.uniform(0, 2 * _PAUSE))

    def _next(self) -> Episode | None:
        with self._lock:
            if self._left:
                return self._left.pop()
            if self._place.marked("drain"):
                return None
            self._begun += 1
            names = list(KINDS)
            (kind,) = self._chance.choices(names, [KINDS[name].weight for name in names])
            # A command is known by its content: whoever sends it again means the same job.
            key = KINDS[kind].is_protocol or self._chance.random() < 0.6
            episode = Episode(f"{self._slot}-{self._begun}", kind, key)
            self._note("try", episode, kind=kind, key=episode.key)
            return episode

    def _play(self, episode: Episode) -> None:
        job: Job[str] | None
        if episode.job_id is not None:
            job = app.job(episode.job_id)
        elif episode.key:
            job = self._insist(lambda: self._submitted(episode), episode)
        else:
            job = self._tried_once(episode)
        if job is not None:
            if episode.job_id is None:
                self._note("ack", episode, role="main", job=job.id)
            self._follow(episode, job)

    def _tried_once(self, episode: Episode) -> Job[str] | None:
        """Submit without a key, which may not be repeated; note what the library says became of it."""
        try:
            return self._submitted(episode)
        except OutcomeUnknown:
            self._note("unknown", episode)
        except StoreError as error:
            self._note("refused", episode, error=repr(error))
        except Exception as error:  # noqa: BLE001 (what users should never meet is noted and judged)
            self._note("surprise", episode, error=repr(error))
        return None

    def _submitted(self, episode: Episode) -> Job[str]:
        kind = KINDS[episode.kind]
        if kind.is_protocol:
            return scan.submit(command(episode.label))
        workflow = app.workflows[kind.workflow, ""]
        if episode.key:
            workflow = workflow.opts(idempotency_key=episode.label)
        if kind.booked:
            return self._booked(workflow, episode)
        if workflow.is_async:
            return asyncio.run(workflow.submit_aio(episode.label))
        return workflow.submit(episode.label)

    def _booked(self, workflow: Any, episode: Episode) -> Job[str]:
        """Write a row and submit in one transaction; under a key, only who makes the job writes the row."""
        complete = False
        try:
            with app.transaction() as db:
                job: Job[str] = workflow.opts(within=db).submit(episode.label)
                if job.created:
                    write_effect(db, episode.label, "booked", "")
                complete = True
        except TallyError:
            raise
        except Exception as error:
            if complete:
                raise
            # A statement of the user's failed with an error of the driver: the block was left before its end.
            raise StoreError(f"the block failed: {error!r}") from error
        return job

    def _follow(self, episode: Episode, job: Job[str]) -> None:
        kind, label = KINDS[episode.kind], episode.label
        for name in kind.signals:
            self._insist(lambda name=name: job.send(name, f"said-{label}", id=name), episode)
        if kind.cancels:
            let_time_pass(self._chance.uniform(0, 0.1))
            self._insist(lambda: job.cancel(grace="5s"), episode)
        try:
            state = self._ended(episode, job, "main")
        except TimeoutError:
            # A standby that lags behind may have forgotten what was sent; all of it may be said again.
            self._follow(episode, job)
            return
        if kind.retries and state == "FAILED_FINAL":
            self._place.mark(f"mended-{label}")
            self._second(episode, "retry", job.retry)
        if kind.forks and state == "SUCCEEDED":
            self._second(episode, "fork", lambda: job.fork(at="polish", id=f"fork-{label}"))
        self._note("done", episode)

    def _second(self, episode: Episode, role: str, make: Callable[[], Job[str]]) -> None:
        try:
            job = self._insist(make, episode)
        except NotFailed:
            return
        self._note("ack", episode, role=role, job=job.id)
        try:
            self._ended(episode, job, role)
        except TimeoutError:
            self._second(episode, role, make)  # as above

    def _ended(self, episode: Episode, job: Job[str], role: str) -> str:
        """Wait for the end and note it, as it was told."""
        value: str | None = None
        code = ""
        try:
            value = self._insist(lambda: self._result(episode, job.id), episode)
            state = "SUCCEEDED"
        except JobFailed as error:
            state, code = "FAILED_FINAL", f"{error.error_code} {error.message}"
        except JobCancelled:
            state = "CANCELLED"
        self._note("end", episode, role=role, job=job.id, state=state, value=value, code=code)
        return state

    def _result(self, episode: Episode, job_id: str) -> str:
        # A new handle for each question: it looks at the row, whoever has run the job.
        while True:
            job: Job[str] = app.job(job_id)
            try:
                return job.result(_ASK)
            except TimeoutError:
                if self._place.marked("stop"):
                    raise SystemExit(1) from None
                if KINDS[episode.kind].needs_person:
                    _resolve(job, f"{KINDS[episode.kind].bank}:{episode.label}")
                if self._forgetful:
                    raise

    def _insist(self, call: Callable[[], R], episode: Episode) -> R:
        """Repeat a call, which is harmless to repeat, until the store can do it."""
        while True:
            try:
                return call()
            except StoreError as error:
                self._note("trouble", episode, error=repr(error))
            except NotFound as error:
                raise Gone from error
            except (TallyError, TimeoutError):
                raise
            except Exception as error:  # noqa: BLE001 (what users should never meet is noted and judged)
                self._note("surprise", episode, error=repr(error))
            let_time_pass(self._chance.uniform(0, 2 * _PAUSE))

    def _note(self, what: str, episode: Episode, **facts: object) -> None:
        self._place.note(self._file, what=what, label=episode.label, **facts)


def _resolve(job: Job[str], key: str) -> None:
    """Do what a person does about a job that is held in doubt: ask the bank, and say what it says."""
    if job.row().hold != "IN_DOUBT":
        return
    receipt = receipt_of(key)
    try:
        if receipt is None:
            job.resolve(did_not_happen=True, by="clerk")
        else:
            job.resolve(happened=receipt, by="clerk")
    except NotResolved:
        return  # another process has said it, or a worker may be at it still


def _unfinished(notes: list[dict[str, Any]]) -> list[Episode]:
    """Return what an earlier process of this number has begun and not seen the end of."""
    found: dict[str, Episode] = {}
    for note in notes:
        label = note["label"]
        match note["what"]:
            case "try":
                found[label] = Episode(label, note["kind"], note["key"])
            case "ack" if note["role"] == "main":
                found[label] = found[label]._replace(job_id=note["job"])
            case "done" | "refused" | "unknown" | "gone":
                found.pop(label, None)
            case "surprise" if not found[label].key and found[label].job_id is None:
                found.pop(label)
    # Without a key and without an answer nobody may try again: one more job would be one too many.
    return [episode for episode in found.values() if episode.key or episode.job_id is not None]


def main() -> None:
    logging.basicConfig(level=logging.WARNING, format="%(relativeCreated)d %(name)s %(message)s")
    slot = int(sys.argv[2])
    place = settle_in(sys.argv[1], slot)
    # Every second client works too, so that jobs are claimed where they are born.
    works = slot % 2 == 1
    options = {"queues": QUEUES, "concurrency": CONCURRENCY, "lease": LEASE_SECONDS, "grace": 2.0}
    with app.worker(**options) if works else nullcontext():
        Client(place, slot).run()
    app.close()


if __name__ == "__main__":
    main()
