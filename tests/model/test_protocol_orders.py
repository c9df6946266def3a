"""All orders of seven messages, each any number of times: nothing is lost, doubled or stuck."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import product

import pytest

from tests.model.protocol_rules import load
from tests.model.protocols import JOB_ID, ProtocolWorld, Shape

MESSAGES = ("SENT", "ACK1", "RESULT1", "TIMEOUT", "ACK2", "RESULT2", "CANCEL")
LENGTHS = {1: 7, 2: 6}


class Orders:
    """One job, to which messages come in any order; a message and a picture make a picture, remembered."""

    def __init__(self, steps: int) -> None:
        self.world = ProtocolWorld(load(), Shape(steps))
        self.first = self.world.initial().picture
        self._after: dict[tuple[int, str], tuple[int, str]] = {}
        self._ends: dict[int, str] = {}

    def after(self, picture: int, message: str) -> tuple[int, str]:
        """Return the picture after a message, and the answer to it."""
        found = self._after.get((picture, message))
        if found is None:
            found = self._after[picture, message] = self._come(picture, message)
        return found

    def _come(self, picture: int, message: str) -> tuple[int, str]:
        ask, world = self.world.core.requests, self.world
        if message == "TIMEOUT":
            return self._later(picture), ""
        if message == "CANCEL":
            request = ask.CancelProtocol(JOB_ID)
        elif message == "SENT":
            job, active = world.pictures[picture].job, world.pictures[picture].active
            lease = "" if active is None else active.lease_id
            at = (job.current_step_id, 1 if active is None else active.attempt_no)
            request = ask.MarkSent(ask.StepFence(JOB_ID, *at, lease))
        else:
            fence = ask.StepFence(JOB_ID, "s0", int(message[-1]), f"lease{message[-1]}")
            answer = ask.StepAnswer(True, message)
            lease = f"lease{world.pictures[picture].job.attempts_total + 1}"
            request = ask.AckStep(fence) if message[0] == "A" else ask.AnswerStep(fence, answer, lease, True)
        edge = world.edge(picture, message, request)
        return edge.picture, edge.heard

    def _later(self, picture: int) -> int:
        """Let the time of the active step pass, and act as relays and sweep do: up to the next directive."""
        later = self.world.later(picture)
        return picture if later is None else self._swept(later)

    def _swept(self, picture: int) -> int:
        for label in ("expire", "take"):
            for edge in self.world.edges_of(picture):
                if edge.label == label:
                    return edge.picture
        return picture

    def end(self, picture: int) -> str:
        """Return how the job ends when nobody says anything any more."""
        if picture not in self._ends:
            at = picture
            for _ in range(100):
                if self.world.pictures[at].job.completed_at is not None:
                    break
                at = self._later(self._swept(at))
            self._ends[picture] = self.world.pictures[at].job.state
        return self._ends[picture]


def walks(orders: Orders, length: int) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """Yield, for every sequence, the picture it leads to, how many results were accepted, and itself."""
    stack: list[tuple[int, int, tuple[str, ...]]] = [(orders.first, 0, ())]
    while stack:
        picture, accepted, said = stack.pop()
        yield picture, accepted, said
        if len(said) < length:
            for message in MESSAGES:
                after, heard = orders.after(picture, message)
                took = heard == "ACCEPTED" and message.startswith("RESULT")
                stack.append((after, accepted + took, (*said, message)))


@pytest.mark.parametrize("steps", [1, 2])
def test_in_every_order_a_result_is_accepted_once_and_the_job_ends(steps):
    orders, count, ends = Orders(steps), 0, set()
    for picture, accepted, said in walks(orders, LENGTHS[steps]):
        count += 1
        job, first = orders.world.pictures[picture].job, orders.world.pictures[picture].steps[0]
        assert accepted == (first.state == "SUCCEEDED"), said
        end = orders.end(picture)
        assert end in ("SUCCEEDED", "FAILED_FINAL", "CANCELLED"), said
        if steps == 1 and accepted:
            assert end == ("CANCELLED" if job.state == "CANCELLED" else "SUCCEEDED"), said
        ends.add(end)
    sys.stdout.write(f"{count:,} orders, {len(orders.world.pictures)} pictures\n")
    assert count >= 100_000
    assert ends >= (
        {"SUCCEEDED", "FAILED_FINAL", "CANCELLED"} if steps == 1 else {"FAILED_FINAL", "CANCELLED"}
    )


def test_a_message_that_comes_again_is_answered_alike_and_changes_nothing():
    orders = Orders(1)
    for said in product(MESSAGES, repeat=4):
        picture = orders.first
        for message in said:
            picture, heard = orders.after(picture, message)
            if heard in ("ACCEPTED", "DUPLICATE") and message != "TIMEOUT":
                again, answer = orders.after(picture, message)
                assert (again, answer) == (picture, "DUPLICATE"), said
