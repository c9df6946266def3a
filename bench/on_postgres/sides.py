"""Who takes part in the PostgreSQL benchmark, and how it is seen that a queue of theirs is empty."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from bench.environment import DBOS, python_of
from bench.side import Side

OURS, LIMIT = "ours", "limit"


@dataclass(frozen=True)
class Member:
    """A side, a question that has a row while a job is open, and how many jobs a worker takes at once.

    The question begins at the newest job, which is done last, so that asking costs next to nothing.
    """

    side: Side
    open_jobs: str = ""
    at_once: int = 64


@dataclass(frozen=True)
class Peer:
    """What is needed to make a member of a peer."""

    name: str
    requirements: tuple[str, ...]
    program: str
    open_jobs: str
    at_once: int
    at_least: tuple[int, int] = (3, 11)


PEERS = (
    Peer(
        "DBOS",
        (DBOS,),
        "peer_dbos",
        "SELECT 1 FROM dbos.workflow_status WHERE status <> 'SUCCESS' LIMIT 1",
        64,
    ),
    Peer(
        "PgQueuer",
        ("pgqueuer[asyncpg]==1.6.0", "uvloop"),
        "peer_pgqueuer",
        "SELECT 1 FROM pgqueuer ORDER BY id DESC LIMIT 1",
        500,
    ),
    Peer(
        "Procrastinate",
        ("procrastinate==3.10.0",),
        "peer_procrastinate",
        "SELECT 1 FROM procrastinate_jobs WHERE status <> 'succeeded' ORDER BY id DESC LIMIT 1",
        16,
    ),
    Peer(
        "Absurd",
        ("absurd-sdk==0.5.1", "absurdctl==0.5.1"),
        "peer_absurd",
        "SELECT 1 FROM absurd.t_default WHERE state <> 'completed' ORDER BY task_id DESC LIMIT 1",
        64,
    ),
    Peer(
        "Oban",
        ("oban==0.7.0",),
        "peer_oban",
        "SELECT 1 FROM oban_jobs WHERE state <> 'completed' ORDER BY id DESC LIMIT 1",
        64,
        (3, 12),
    ),
)


def one_of_ours(side: Side) -> Member:
    """Return a member that is Tallystick, of this revision or another."""
    open_jobs = "SELECT 1 FROM tallystick.jobs WHERE completed_at IS NULL ORDER BY job_id DESC LIMIT 1"
    return Member(side, open_jobs, 256)


def the_members() -> dict[str, Member]:
    """Return everybody who can take part here; who cannot is named aloud."""
    members = {OURS: one_of_ours(Side(OURS, (sys.executable, "-m", "bench.on_postgres.ours")))}
    for peer in PEERS:
        python = python_of(*peer.requirements, at_least=peer.at_least)
        if python is not None:
            side = Side(peer.name, (str(python), "-m", f"bench.on_postgres.{peer.program}"))
            members[peer.name] = Member(side, peer.open_jobs, peer.at_once)
    members[LIMIT] = Member(Side(LIMIT, (sys.executable, "-m", "bench.on_postgres.limit")))
    return members
