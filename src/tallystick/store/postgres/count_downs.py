"""The compound primitive: one statement moves all semaphores of a flush and marks all their messages.

A semaphore that cannot take all its requests, because one of them would take it below zero or is there twice,
is left alone by that statement and takes them in turn, so that each fails alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tallystick.errors import SemaphoreUnderflow, StaleLease
from tallystick.store.api import CountDown, Outcome
from tallystick.store.postgres.connection import Answered, row_moved

Ask = Callable[..., Answered]


def send_count_downs(ask: Ask, requests: Sequence[CountDown]) -> Callable[[], list[Outcome]]:
    """Send all requests and return how to read what came of each."""
    first = {request.guid: index for index, request in reversed(list(enumerate(requests)))}
    twice = {_semaphore(request) for index, request in enumerate(requests) if first[request.guid] != index}
    together = [index for index, request in enumerate(requests) if _semaphore(request) not in twice]
    cursor = ask("count_down", [_row(requests[index]) for index in together])

    def answer() -> list[Outcome]:
        outcomes: list[Outcome] = [_nothing_open(request) for request in requests]
        in_turn = [index for index, request in enumerate(requests) if _semaphore(request) in twice]
        for place, sound, hit, whole in cursor.fetchall():
            if not whole:
                raise row_moved()
            outcomes[together[place - 1]] = hit
            if not sound:
                in_turn.append(together[place - 1])
        for index in sorted(in_turn):
            outcomes[index] = _alone(ask, requests[index])
        return outcomes

    return answer


def _alone(ask: Ask, request: CountDown) -> Outcome:
    for _place, sound, hit, whole in ask("count_down", [_row(request)]).fetchall():
        if not whole:
            raise row_moved()
        return hit if sound else SemaphoreUnderflow(job_id=request.job_id, name=request.name)
    return _nothing_open(request)


def _semaphore(request: CountDown) -> tuple[object, ...]:
    return request[:4] if request.name else (request.job_id,)


def _row(request: CountDown) -> tuple[object, ...]:
    """Return the row of a request; a job has one semaphore, whatever dimension a message was sent from."""
    return request if request.name else (request.job_id, 0, "", 0, *request[4:])


def _nothing_open(request: CountDown) -> StaleLease:
    return StaleLease(
        f"{request.job_id} {request.name}: nothing is open here to count down, or step 2 is done already",
        job_id=request.job_id,
    )
