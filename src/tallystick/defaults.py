"""What holds unless a program says otherwise, in one place; docs/defaults.md is printed from here.

Limits that nothing can change are in `core/limits.py`.
"""

from __future__ import annotations

from typing import Final, NamedTuple

QUEUE: Final = "default"
TENANT: Final = "default"
PRIORITY: Final = 5
ATTEMPTS: Final = 3

WORKER_SLOTS: Final = 16
# How long a crash goes unnoticed is the lease and one sweep.
WORKER_LEASE: Final = "30s"
WORKER_GRACE: Final = "10s"
# Whether threads of sync workflows ask Linux for SCHED_BATCH: fewer switches, the same share of time.
BATCH_SCHEDULING: Final = True

CANCEL_GRACE: Final = "30s"

RETRY_FIRST: Final = "1s"
RETRY_LONGEST: Final = "15m"

EFFECT_TIMEOUT: Final = "30s"
EFFECT_SETTLE: Final = "1m"

STAGE_GRACE: Final = "10s"

# Protocol jobs of one tenant.
IN_FLIGHT_MAX: Final = 100

# As many again may be there: turns are trimmed when twice as many have gathered.
KEEP_TURNS: Final = 100

BUSY: Final = "30s"
ANSWER: Final = "30s"

TOP_EVERY: Final = "2s"


class Default(NamedTuple):
    """A row of the page: a value, what it is about, and how a program says otherwise."""

    value: str | int
    about: str
    otherwise: str


DEFAULTS: Final = (
    Default(QUEUE, "The queue of a job, and the one that a worker serves", "`queue=`, `queues=`, `--queues`"),
    Default(TENANT, "The tenant that a job belongs to", "`.opts(tenant=)`, the key of an HTTP request"),
    Default(PRIORITY, "The priority of a job: 0 is first, 9 is last", "`.opts(priority=)`, `--priority`"),
    Default(ATTEMPTS, "How many attempts a job may lose in a row", "`@app.workflow(attempts=)`"),
    Default(WORKER_SLOTS, "How many jobs a worker runs at once", "`concurrency=`, `--concurrency`"),
    Default(WORKER_LEASE, "How long a worker holds a job without a sign of life", "`lease=`, `--lease`"),
    Default(WORKER_GRACE, "How long running jobs may take when a worker stops", "`grace=`, `--grace`"),
    Default(
        "on",
        "Whether threads of sync workflows ask Linux for `SCHED_BATCH`",
        "`batch_scheduling=False`, `--no-batch-scheduling`",
    ),
    Default(
        CANCEL_GRACE, "How long a cancelled job may clean up", "`cancel(grace=)`, `tally cancel --grace`"
    ),
    Default(RETRY_FIRST, "How long a `Retry` waits before the second try", "`Retry(first=)`"),
    Default(RETRY_LONGEST, "The longest that a `Retry` waits between two tries", "`Retry(longest=)`"),
    Default(EFFECT_TIMEOUT, "How long a call of an effect may take", "`@app.effect(timeout=)`"),
    Default(EFFECT_SETTLE, "How long after that the probe of an effect is asked", "`@app.effect(settle=)`"),
    Default(STAGE_GRACE, "How long running items may take when a stage stops", "`Stage(grace=)`"),
    Default(
        IN_FLIGHT_MAX,
        "How many protocol jobs of one tenant may be open over HTTP",
        "`http_app(in_flight_max=)`, `tally serve --in-flight`",
    ),
    Default(
        KEEP_TURNS,
        "How many turns of a loop are kept; at most twice as many are there",
        "`Tally(keep_turns=)`, None for all",
    ),
    Default(BUSY, "How long a write waits for its turn before `StoreBusy`", "`?busy=` in the address"),
    Default(ANSWER, "How long an answer of PostgreSQL may take", "`?answer=` in the address"),
    Default(TOP_EVERY, "How often `tally top` looks", "`tally top --every`"),
)
