"""Sealing: the codec of a program encodes its payloads before they are stored, and decodes them after.

Everything that a program puts into its jobs is sealed on its way to the store and opened on its way back:
arguments, results of workflows and steps, signals, shown values, errors. Names, keys, tags, states, instants,
codes of errors and the reasons of holds are not: the store, people and other programs decide by them. Hashes
of the chain are over what is stored; the hash of a submission is over its plain content, or no key would find
it again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

import msgspec

from tallystick.core.audit.fingerprints import ENDED, TURNED, WAS, birth_text, fingerprint, of_end
from tallystick.core.effects.requests import CallEffect, EndEffect, Known, SettleEffect
from tallystick.core.effects.rows import EffectRow
from tallystick.core.json_forms.sealed import is_sealed, sealed, token_of
from tallystick.core.queues.reusing import TakeKey
from tallystick.errors import BadInput, TallyError
from tallystick.store.api import (
    Answer,
    Bundle,
    ChildRow,
    ClaimedJob,
    Cycle,
    Deliver,
    EndAttempt,
    EndJob,
    Fact,
    Group,
    JobRow,
    Outcome,
    Primitive,
    RecordEvent,
    RecordStep,
    SetValue,
    ShownValue,
    Spawn,
    Store,
    SubmitJob,
    SubmitJobs,
    Transaction,
    Wake,
    call_off,
)

_STORED_MAX: Final = 100_000


class PayloadCodec(Protocol):
    """Two functions that undo each other, safe in any thread; `encode` may give other bytes each time."""

    def encode(self, data: bytes, /) -> bytes:
        """Return what is to be stored."""
        ...

    def decode(self, data: bytes, /) -> bytes:
        """Return what `encode` was given; raise if that cannot be known."""
        ...


class Sealing:
    """Seals bundles and opens what comes back."""

    def __init__(self, codec: PayloadCodec) -> None:
        """Use the codec."""
        self._codec = codec
        # The arguments of jobs that run here, as they are stored: the fact of a turn has their fingerprint.
        self._stored: dict[str, str] = {}

    def keep(self, job_id: str, payload: str) -> None:
        """Remember what is stored of a job that runs here; jobs that are put away are forgotten in time."""
        self._stored[job_id] = payload
        while len(self._stored) > _STORED_MAX:
            self._stored.pop(next(iter(self._stored)), None)

    def seal(self, text: str | None) -> str | None:
        """Return a text as it is stored."""
        return None if text is None else self.text(text)

    def text(self, text: str) -> str:
        """Return a text that is there as it is stored."""
        try:
            return sealed(self._codec.encode(text.encode()))
        except Exception as error:
            raise BadInput(f"the payload_codec could not encode: {type(error).__name__}: {error}") from error

    def open(self, text: str | None) -> str | None:
        """Return a text as it was; one that is not sealed, or that this codec cannot open, as it is."""
        return self.opened(text) if is_sealed(text) else text

    def answer(self, text: str | None) -> str | None:
        """Return what a message says, opened also where only the value or the error in it is sealed."""
        for part in ('{"value":', '{"error":'):
            if text is not None and text.startswith(part) and is_sealed(inner := text[len(part) : -1]):
                return f"{part}{self.opened(inner)}}}"
        return self.open(text)

    def opened(self, text: str) -> str:
        """Do the same for a text that is there."""
        try:
            return self._codec.decode(token_of(text)).decode() if is_sealed(text) else text
        except Exception:  # noqa: BLE001 (a wrong key, or changed bytes: the caller that needs it is told)
            return text

    def bundle(self, bundle: Bundle) -> Bundle:
        """Return a bundle as it is stored."""
        return tuple(_SEALS[type(each)](self, each) if type(each) in _SEALS else each for each in bundle)

    def step(self, step: RecordStep) -> RecordStep:
        """Return a step as it is stored."""
        return step._replace(result=self.seal(step.result), error=self.seal(step.error))

    def fact(self, fact: Fact) -> Fact:
        """Return a fact whose error, if it tells one, is sealed."""
        if '"error"' not in fact.payload:
            return fact
        told = msgspec.json.decode(fact.payload, type=dict[str, msgspec.Raw])
        if "error" not in told:
            return fact
        told["error"] = msgspec.Raw(self.text(bytes(told["error"]).decode()).encode())
        return fact._replace(payload=msgspec.json.encode(told).decode())

    def end(self, end: EndJob) -> EndJob:
        """Return the end of a job as it is stored."""
        sealed_end = end._replace(
            result=self.seal(end.result),
            error=self.seal(end.error),
            error_message=self.seal(end.error_message),
        )
        _state, _status, _reason, _charged, *came = sealed_end[1:9]
        return sealed_end._replace(fact=_told(self.fact(end.fact), {ENDED: of_end(*came)}))

    def turn(self, turn: Cycle) -> Cycle:
        """Return a turn as it is stored, with the fingerprints of both arguments."""
        payload, before = self.text(turn.payload), self._stored.get(turn.fence.job_id)
        was = None if before is None else fingerprint(before)
        return turn._replace(payload=payload, fact=_told(turn.fact, {WAS: was, TURNED: fingerprint(payload)}))

    def outcome(self, outcome: Outcome) -> Outcome:
        """Return an outcome with everything open that can be opened."""
        kind = type(outcome)
        if kind is list:
            assert isinstance(outcome, list)
            return [self.outcome(each) for each in outcome]
        return _OPENS[kind](self, outcome) if kind in _OPENS else outcome

    def wake(self, wake: Wake) -> Wake:
        """Return a message that can be read."""
        return wake._replace(payload=self.answer(wake.payload))

    def claimed(self, job: ClaimedJob) -> ClaimedJob:
        """Return a claimed job that can be read."""
        records = tuple(
            record._replace(result=self.open(record.result), error=self.open(record.error))
            for record in job.records
        )
        wake = None if job.wake is None else self.wake(job.wake)
        self.keep(job.fence.job_id, job.payload)
        return job._replace(payload=self.opened(job.payload), records=records, wake=wake)

    def row(self, row: Any) -> Any:  # noqa: ANN401 (a row of a job or of a child)
        """Return the row of a job that can be read."""
        about = {"result": row.result, "error": row.error, "error_message": row.error_message}
        opened = {name: self.open(text) for name, text in about.items()}
        return row._replace(
            **opened, **({"payload": self.opened(row.payload)} if hasattr(row, "payload") else {})
        )

    def body(self, body: Callable[[Transaction], RecordStep]) -> Callable[[Transaction], RecordStep]:
        """Return the body of a user's transaction, whose step is sealed."""
        return lambda transaction: self.step(body(transaction))

    def applying(self, store: Store) -> Callable[..., list[Outcome | BaseException]]:
        """Return how a committer writes to the store; a bundle that cannot be sealed is refused alone."""

        def apply(batch: Sequence[Bundle], *, again: bool = False) -> list[Outcome | BaseException]:
            written: list[Bundle] = []
            outcomes: list[Outcome | BaseException] = []
            places: list[int] = []
            for place, bundle in enumerate(batch):
                try:
                    written.append(self.bundle(bundle))
                except TallyError as error:
                    call_off([bundle])
                    outcomes.append(error)
                else:
                    places.append(place)
                    outcomes.append(None)
            for place, outcome in zip(places, store.apply(written, again=again), strict=True):
                outcomes[place] = self.outcome(outcome)
            return outcomes

        return apply


class SealedTransaction:
    """A transaction of the user in which our bundles are sealed."""

    def __init__(self, transaction: Transaction, sealing: Sealing) -> None:
        """Stand before the transaction."""
        self.execute = transaction.execute
        self.executemany = transaction.executemany
        self._transaction = transaction
        self._sealing = sealing

    def apply(self, bundle: Bundle) -> Outcome:
        """Write one of our bundles."""
        return self._sealing.outcome(self._transaction.apply(self._sealing.bundle(bundle)))


class OpenedReads:
    """What programs read of their jobs, opened."""

    def __init__(self, store: Store, sealing: Sealing) -> None:
        """Read from the store."""
        self._store = store
        self._sealing = sealing

    def job(self, job_id: str) -> JobRow | None:
        """Return one job."""
        row = self._store.job(job_id)
        return None if row is None else self._sealing.row(row)

    def finished(self, job_ids: Sequence[str]) -> dict[str, JobRow | None]:
        """Return those of these jobs that have ended, and None for each that is not there."""
        found = self._store.finished(job_ids)
        return {job_id: None if row is None else self._sealing.row(row) for job_id, row in found.items()}

    def children(self, job_id: str, group: Group, *, after: str, limit: int) -> list[ChildRow]:
        """Return a page of the children of a group."""
        page = self._store.children(job_id, group, after=after, limit=limit)
        return [self._sealing.row(row) for row in page]

    def finished_children(self, job_ids: Sequence[str]) -> dict[str, ChildRow]:
        """Return those of these jobs that have ended, as their parents see them."""
        found = self._store.finished_children(job_ids)
        return {job_id: self._sealing.row(row) for job_id, row in found.items()}

    def values(self, job_ids: Sequence[str], name: str = "") -> list[ShownValue]:
        """Return the values that these jobs show."""
        found = self._store.values(job_ids, name)
        return [row._replace(value=self._sealing.opened(row.value)) for row in found]


def _told(fact: Fact, prints: dict[str, str | None]) -> Fact:
    """Return a fact with fingerprints of what is stored; None leaves one out."""
    said = msgspec.json.decode(fact.payload, type=dict[str, msgspec.Raw])
    for name, made in prints.items():
        if name in said and made is None:
            del said[name]
        elif name in said:
            said[name] = msgspec.Raw(msgspec.json.encode(made))
    return fact._replace(payload=msgspec.json.encode(said).decode())


def _submit(by: Sealing, each: SubmitJob) -> SubmitJob:
    job = each.job._replace(payload=by.text(each.job.payload))
    first, *others = each.facts
    if each.lease is not None:
        by.keep(job.job_id, job.payload)
    return each._replace(job=job, facts=(first._replace(payload=birth_text(job)), *others))


def _submits(by: Sealing, each: SubmitJobs) -> SubmitJobs:
    return each._replace(payloads=[by.text(payload) for payload in each.payloads])


def _spawn(by: Sealing, each: Spawn) -> Spawn:
    born = tuple((job._replace(payload=by.text(job.payload)), fact) for job, fact in each.children)
    return each._replace(children=born)


_SEALS: Final[dict[type[Primitive], Callable[[Sealing, Any], Any]]] = {
    SubmitJob: _submit,
    SubmitJobs: _submits,
    Spawn: _spawn,
    RecordStep: Sealing.step,
    RecordEvent: lambda by, each: each._replace(fact=by.fact(each.fact)),
    EndAttempt: lambda by, each: each._replace(fact=by.fact(each.fact)),
    EndJob: Sealing.end,
    Cycle: Sealing.turn,
    TakeKey: lambda by, each: each._replace(payload=by.text(each.payload)),
    Deliver: lambda by, each: each._replace(payload=by.seal(each.payload)),
    SetValue: lambda by, each: each._replace(value=by.seal(each.value)),
    CallEffect: lambda by, each: each._replace(
        intent=each.intent._replace(arguments=by.text(each.intent.arguments))
    ),
    EndEffect: lambda by, each: each._replace(result=by.seal(each.result), error=by.seal(each.error)),
    SettleEffect: lambda by, each: each._replace(result=by.seal(each.result)),
}
_OPENS: Final[dict[type, Callable[[Sealing, Any], Any]]] = {
    ClaimedJob: Sealing.claimed,
    Answer: lambda by, each: each._replace(
        payload=by.answer(each.payload), ahead=tuple(by.wake(wake) for wake in each.ahead)
    ),
    EndJob: lambda by, each: each._replace(
        result=by.open(each.result), error=by.open(each.error), error_message=by.open(each.error_message)
    ),
    RecordStep: lambda by, each: each._replace(result=by.open(each.result), error=by.open(each.error)),
    Known: lambda by, each: each._replace(result=by.open(each.result), error=by.open(each.error)),
    EffectRow: lambda by, each: each._replace(arguments=by.opened(each.arguments)),
}
