"""Answers that claims brought, written for all woken jobs of a flush together, under their fences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tallystick.store.api import Fact, TakeAnswer
from tallystick.store.sqlite.statements import sql
from tallystick.store.waits import answered, take_answer, timer_of

if TYPE_CHECKING:
    from tallystick.store.sqlite.writer import Batch


def take_answers(batch: Batch, requests: list[TakeAnswer]) -> None:
    """Give waits their messages; if one is not open, each is written by itself, where that is seen."""
    together = [] if batch.careful else [request for request in requests if request.wait.kind != "group"]
    for request in requests:
        if batch.careful or request.wait.kind == "group":
            take_answer(batch, request)
    if not together:
        return
    waits, marks, losers = [], [], []
    for request in together:
        (job_id, attempt, lease_id), wait, wake = request.fence, request.wait, request.wake
        place = (job_id, request.dimension, wait.name, wait.occurrence)
        result, payload = answered(wait, wake.payload)
        event = batch.placed(Fact(request.chain, wait.kind, request.at, attempt, payload))
        taken = (result, attempt, event.at, event.n, event.prev_hash, event.event_hash)
        waits.append((*place, *taken, lease_id, batch.epoch, batch.boot))
        marks.append((wake.guid, job_id))
        if wake.kind != "timer":
            losers.append((timer_of(place), job_id, batch.wall))
    batch.many("take_wait", waits, together[0].fence)
    batch.many("mark_work", marks, together[0].fence)
    batch.cursor.executemany(sql("acknowledge_loser"), losers)
