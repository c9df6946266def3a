"""What a state of the jobs model is made of, and what a small world may do."""

from __future__ import annotations

from typing import Any, NamedTuple

from tallystick.core.lifecycles import JOB

QUEUED, RUNNING, CANCELLING, SUCCEEDED, FAILED, CANCELLED = range(6)
STATES = ("QUEUED", "IN_PROGRESS", "CANCELLING", "SUCCEEDED", "FAILED_FINAL", "CANCELLED")
VIEWS = {SUCCEEDED: "SUCCEEDED", FAILED: "FAILED", CANCELLED: "CANCELLED"}
START, NOBODY = -1, -2
ABSENT, SET, INBOX, ACKED = range(4)
UNOPENED, OPEN, JOINED, DROPPED = range(4)
RUN, SWEEP = 1, 2
IDLE: tuple[int, ...] = ()
LEASE = "lease"
MOVES = frozenset((str(a), str(b)) for a, b in JOB.stored_moves)


class Job(NamedTuple):
    """One job: its row, and a summary of its attempts (`done`, `ended`: how the last one ended it)."""

    state: int = QUEUED
    attempt: int = 0
    live: int = 0
    ready: int = 1
    semaphore: int = 1
    start: int = 0
    acked: int = 0
    driver: int = NOBODY
    charged: int = 0
    place: int = 0
    wait: int = 0
    done: int = 0
    ended: str = ""
    effects: int = 0
    committed: int = 0
    intent: int = 0
    calls: int = 0
    hold: int = 0
    wish: int = 0


class Group(NamedTuple):
    """The one group of the first job."""

    state: int = UNOPENED
    ledger: int = 0
    semaphore: int = 0
    failed: int = 0
    joins: int = 0


class Message(NamedTuple):
    """What may arrive for the first job: `answers` is the name of a signal, or the place of the one wait."""

    kind: str
    answers: str | int


class Shape(NamedTuple):
    """A small world: what the workflow does, what may arrive, and how much may go wrong."""

    script: tuple[tuple[Any, ...], ...]
    messages: tuple[Message, ...] = ()
    children: int = 0
    threshold: int = 0
    fail_fast: bool = False
    child_script: tuple[tuple[Any, ...], ...] = (("return",),)
    child_fails: bool = False
    workers: int = 2
    crashes: int = 1
    zombies: int = 1
    cancels: int = 0
    pauses: int = 0
    deliveries: int = 1
    budget: int = 2
    skew: bool = False
    two_bundles: bool = False


State = tuple[Any, ...]


class Draft:
    """A state that is being changed by one move."""

    __slots__ = ("env", "group", "jobs", "messages", "order", "workers")

    def __init__(self, state: State) -> None:
        jobs, self.group, messages, self.order, workers, env = state
        self.jobs, self.messages = list(jobs), list(messages)
        self.workers, self.env = list(workers), list(env)

    def freeze(self) -> State:
        return (
            tuple(self.jobs),
            self.group,
            tuple(self.messages),
            self.order,
            tuple(self.workers),
            tuple(self.env),
        )
