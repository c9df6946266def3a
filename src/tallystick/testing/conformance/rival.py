"""A process that races others for one store; started by the suite, one line of JSON in, one out."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from tallystick.clock import SystemClock
from tallystick.store.api import Existing, Forked, ForkJob, Store
from tallystick.store.opening import open_store
from tallystick.testing.conformance.drafts import FRESH, claim, claimed, done, finish, outcome_of, submission

CLOCK = SystemClock()


def submit(store: Store, keys: list[str]) -> list[Any]:
    """Submit one job per key and return the job that each key belongs to."""
    answers = []
    for key in keys:
        wish = submission(CLOCK, key=key)
        answer = outcome_of(store, wish)
        answers.append(answer.job_id if isinstance(answer, Existing) else wish.job.job_id)
    return answers


def take(store: Store, arguments: list[int]) -> list[str]:
    """Claim until nothing is left and return what was claimed."""
    (limit,) = arguments
    taken: list[str] = []
    while found := claimed(store, claim(limit)):
        taken += [held.fence.job_id for held in found]
    return taken


def close(store: Store, arguments: list[int]) -> list[str]:
    """Claim children one by one, end each well, and return those that were ended, at most so many."""
    (most,) = arguments
    ended: list[str] = []
    while len(ended) < most and (found := claimed(store, claim(1))):
        (held,) = found
        done(store, finish(held, CLOCK)._replace(parent=held.parent))
        ended.append(held.fence.job_id)
    return ended


def retry(store: Store, job_ids: list[str]) -> list[str]:
    """Retry jobs that have failed and return the jobs that took their places."""
    answers = []
    for job_id in job_ids:
        outcome = outcome_of(store, ForkJob(job_id, FRESH.new(), None, retry=True))
        assert isinstance(outcome, Forked)
        answers.append(outcome.job_id)
    return answers


ROLES: dict[str, Callable[[Store, Any], list[Any]]] = {
    "submit": submit,
    "take": take,
    "close": close,
    "retry": retry,
}


def main() -> None:
    """Open the store, say that we are ready, wait for the word to go, race, and say what came of it."""
    url, role, arguments = sys.argv[1:]
    store = open_store(url, CLOCK, create=False)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    found = ROLES[role](store, json.loads(arguments))
    sys.stdout.write(f"{json.dumps(found)}\n")
    store.close()


if __name__ == "__main__":
    main()
