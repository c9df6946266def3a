"""The small worlds that are searched: large ones once, small ones for every mutant."""

from __future__ import annotations

from typing import Any

from tests.model import forks, jobs, messages
from tests.model.rules import Rules
from tests.model.world import Sent, Shape

TX, RETURN, SPAWN, JOIN, AGAIN = ("tx",), ("return",), ("spawn",), ("join",), ("again",)
REMOTE_A = ("remote", "a")
WAIT_A, WAIT_B, TIMED_A = ("wait", "a"), ("wait", "b"), ("wait", "a", "timed")
A, B = Sent("signal", "a"), Sent("signal", "b")
ONE_BY_ONE = (("spawn", 0, 1), ("spawn", 1, 2))


def gathering(children: int, **more: Any) -> Shape:
    return Shape((SPAWN, JOIN, RETURN), children=children, **more)


AnyShape = Shape | messages.Shape | forks.Shape

SMALL: dict[str, AnyShape] = {
    "chain": Shape((TX, RETURN), crashes=2),
    "wait": Shape((WAIT_A, RETURN), (A,), deliveries=2),
    "timeout": Shape((TIMED_A, RETURN), (A,), zombies=0),
    "two waits": Shape((WAIT_A, WAIT_B, RETURN), (A, B), zombies=0, workers=1),
    "two waits at once": Shape((("any", "a", "b"), TX, RETURN), (A, B), zombies=0, workers=1),
    "wait twice": Shape((WAIT_A, WAIT_A, RETURN), (A, A), zombies=0, skew=True),
    "result": Shape((TX, WAIT_A, RETURN), (Sent("result", "a"), A), zombies=0),
    "a signal called again": Shape(
        (("wait", "again"), RETURN), (Sent("signal", "again"),), zombies=0, cancels=1
    ),
    "group": gathering(2, crashes=1, zombies=0),
    "group, one is enough": gathering(2, threshold=1, crashes=1, zombies=0),
    "group, fail fast": gathering(2, fail_fast=True, child_fails=True, crashes=0, zombies=0),
    "group, a child fails": gathering(2, child_fails=True, crashes=0, zombies=0),
    "group in two bundles": Shape((*ONE_BY_ONE, JOIN, RETURN), children=2, crashes=1, zombies=0),
    "group in two bundles, one is enough": Shape(
        (*ONE_BY_ONE, JOIN, RETURN), children=2, threshold=1, crashes=0, zombies=0
    ),
    "group in two bundles, two end early": Shape(
        (("spawn", 0, 2), ("spawn", 2, 3), JOIN, RETURN), children=3, crashes=0, zombies=0
    ),
    "group, born and awaited at once": Shape((("gather",), RETURN), children=2, crashes=1, zombies=0),
    "group in two bundles, cancel": Shape(
        (*ONE_BY_ONE, JOIN, RETURN), children=2, cancels=1, zombies=0, workers=1
    ),
    "cancel of children": gathering(1, cancels=2, cancels_children=True, crashes=0, zombies=0),
    "cancel of a parent": gathering(2, cancels=1, crashes=0, zombies=0, workers=1),
    "a deadline": Shape((WAIT_A, RETURN), (A,), deadline=True, zombies=0),
    "a deadline of a parent": gathering(1, deadline=True, crashes=0, zombies=0, workers=1),
    "cancel": Shape((WAIT_A, RETURN), (A,), cancels=1),
    "cancel a chain": Shape((TX, RETURN), cancels=1),
    "committed and not done": Shape((TX, RETURN), cancels=1, pauses=1, commits=True),
    "a child is committed and not done": gathering(1, crashes=0, commits=True),
    "pause": Shape((WAIT_A, RETURN), (A,), pauses=1, zombies=0),
    "pause a chain": Shape((TX, RETURN), pauses=2, zombies=0),
    "pause and cancel": Shape((WAIT_A, RETURN), (A,), pauses=1, cancels=1, crashes=0, zombies=0),
    "turns": Shape((WAIT_A, AGAIN, WAIT_A, RETURN), (A, A), zombies=0, workers=1),
    "turns and cancel": Shape((TX, AGAIN, TX, RETURN), cancels=1, zombies=0, workers=1),
    "group behind a wait": Shape((SPAWN, WAIT_A, JOIN, RETURN), (A,), children=1, crashes=1, zombies=0),
    "group dropped by a turn": Shape(
        (SPAWN, WAIT_A, AGAIN, TX, RETURN), (A,), children=1, crashes=1, zombies=0, workers=1
    ),
    "poison": Shape((WAIT_A, TX, RETURN), (A,), crashes=4, zombies=0, workers=1, budget=3),
    "refused": Shape((TX, RETURN), pauses=1, refuses=True, zombies=0),
    "a timer is delivered": Shape((WAIT_A, RETURN), (Sent("timer", "a"),), deliveries=2, zombies=0),
    "effect": Shape((("effect",), RETURN), zombies=0),
    "forks": forks.Shape((forks.Wish("i", 2), forks.Wish("i", 2), forks.Wish("i", 1))),
    "retries": forks.Shape((forks.RETRY, forks.RETRY, forks.Wish(None, 1))),
    "retries of a key that is used again": forks.Shape((forks.RETRY, forks.Wish(None, 1)), reuse=True),
    "messages": messages.Shape((0, -1), (1, 2), 1, crashes=0),
    "messages, two bundles": messages.Shape((0, -1, -1), (1, 1, 1), 2, one_bundle=False, zombies=0),
    "messages, threshold 1": messages.Shape(
        (0, -1, 0, -1), (1, 1, 1, 1), 2, threshold=1, opens=((), (), (3,), ()), crashes=0, zombies=0
    ),
    "messages, early": messages.Shape((0, -1), (1, 1), 1, late=True, zombies=0),
    "messages, late": messages.Shape((0, -1, -1), (1, 1, 1), 1, zombies=0),
    "messages, late and calm": messages.Shape((0, -1, -1), (1, 1, 1), 1, crashes=0, zombies=0),
    "leg 1 at its top": messages.Shape((0, -1), (2, 1), 1, ledger=998 * 10**12, zombies=0),
    "leg 2 at its top": messages.Shape((0, -1, -1), (1, 1, 1), 2, ledger=99_999_998, zombies=0),
    # Their states are dear: these are asked last about a mutant.
    "remote step": Shape((REMOTE_A, RETURN), zombies=0, workers=1),
    "remote step and cancel": Shape((REMOTE_A, RETURN), cancels=1, zombies=0, workers=1),
    "remote step and pause": Shape((REMOTE_A, RETURN), pauses=1, crashes=0, zombies=0, workers=1),
    "remote step and a deadline": Shape((REMOTE_A, RETURN), deadline=True, crashes=0, zombies=0, workers=1),
    "remote steps at once": Shape(
        (("remotes", "a", "b"), RETURN), cancels=1, crashes=0, zombies=0, workers=1, asked=1
    ),
    "remote step of a turn": Shape(
        (("remotes", "a", "b"), AGAIN, RETURN), crashes=0, zombies=0, workers=1, asked=1
    ),
    "remote step beside a step": Shape(
        (("ask", "a"), TX, REMOTE_A, RETURN), cancels=1, zombies=1, workers=1, asked=1
    ),
    "remote step beside a step and pause": Shape(
        (("ask", "a"), TX, REMOTE_A, RETURN), pauses=1, crashes=0, zombies=0, workers=1, asked=1
    ),
}

LARGE: dict[str, tuple[int, AnyShape]] = {
    "chain of three": (
        100_000,
        Shape((TX, TX, TX, RETURN), crashes=4, zombies=2, budget=3, cancels=1, commits=True),
    ),
    "signal against timer": (
        100_000,
        Shape((TIMED_A, TX, RETURN), (A, A), crashes=2, zombies=1, deliveries=2),
    ),
    "waits and cancel": (
        40_000,
        Shape((WAIT_A, WAIT_B, RETURN), (A, B), crashes=2, zombies=1, cancels=1),
    ),
    "three children": (40_000, gathering(3, crashes=1, zombies=1)),
    "two of three are enough": (70_000, gathering(3, threshold=1, crashes=1, zombies=1)),
    "cancel of a parent": (8_000, gathering(2, crashes=1, zombies=0, cancels=1, child_fails=True)),
    "turns and signals": (
        50_000,
        Shape((WAIT_A, AGAIN, WAIT_A, TX, RETURN), (A, A), crashes=1, zombies=1, cancels=1),
    ),
    "pauses and a timer": (
        100_000,
        Shape((TIMED_A, TX, RETURN), (A,), crashes=1, zombies=1, cancels=1, pauses=2),
    ),
    "forks and retries": (
        30_000,
        forks.Shape((forks.RETRY, forks.RETRY, forks.Wish("i", 2), forks.Wish("i", 1)), losses=2),
    ),
    "closing in two bundles": (
        75_000,
        messages.Shape((0, -1, -1), (1, 1, 1), 2, one_bundle=False, crashes=1, zombies=1),
    ),
    "copies": (160_000, messages.Shape((0, -1), (1, 2), 1, one_bundle=False, crashes=2, zombies=1)),
    "threshold 1 in two bundles": (
        20_000,
        messages.Shape(
            (0, -1, 0, -1),
            (1, 1, 1, 1),
            2,
            threshold=1,
            opens=((), (), (3,), ()),
            one_bundle=False,
            zombies=0,
        ),
    ),
}
"""Large worlds, each with the least number of states that its search must find."""


def model_of(shape: AnyShape, rules: Rules | None = None, flaws: frozenset[str] = frozenset()) -> Any:
    """Return the model of a shape, by core's rules unless told otherwise."""
    kinds: dict[type, Any] = {Shape: jobs.Jobs, messages.Shape: messages.Messages, forks.Shape: forks.Forks}
    return kinds[type(shape)](shape, rules or Rules(), flaws)
