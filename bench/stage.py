"""Sequences and stages against their peers: `python -m bench.stage [--quick]`.

What is measured, and what the figures taught:

- A transition is a legality check and a write under a lock, with counters and leases kept. Scalar calls are
  bound by the interpreter (a method call, a lock, six array accesses), so the peers differ by what they do
  beside that: `transitions` and `python-statemachine` run callbacks and build event objects for every move.
- The batch path is bound by memory. On consecutive seqs it streams; on seqs in random order over 10 million
  slots every access misses the cache, and that is the slower figure, given as its own row.
- In a stage of trivial items computing is nothing and waking threads is everything. Waking the commit lane
  for every item cost 40 % of the rate; now it is woken at most every few milliseconds while it is busy, and
  at once when it is idle. The journal costs little because a sync takes whatever has gathered meanwhile.
- A process lane hands one item at a time through a pipe; for items below a millisecond threads win.

Rates are items or transitions a second; the sync rate of the disk is printed because it wanders.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import numpy as np

from tallystick.stage import Sequence, SequenceBatch, Stage

HERE = Path(__file__).parent
ENVIRONMENT = HERE / ".envs" / "stage-peers"
PEERS = ("transitions", "python-statemachine")
BATCH = 10_000
WORKERS = 4

PEER_SCRIPT = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
moves, slots = int(sys.argv[2]), int(sys.argv[3])
if sys.argv[1] == "transitions":
    from transitions import Machine
    class Slot:
        pass
    pool = [Slot() for _ in range(slots)]
    states = ["unseen", "dispatched", "in_flight", "success", "committed"]
    moves_of = zip(["dispatch", "start", "succeed", "commit"], states, states[1:])
    table = [list(move) for move in moves_of]
    Machine(pool, states=states, initial="unseen", auto_transitions=False, transitions=table)
else:
    from statemachine import State, StateMachine
    class SlotMachine(StateMachine):
        unseen = State(initial=True)
        dispatched = State()
        in_flight = State()
        success = State()
        committed = State(final=True)
        dispatch = unseen.to(dispatched)
        start = dispatched.to(in_flight)
        succeed = in_flight.to(success)
        commit = success.to(committed)
    pool = [SlotMachine() for _ in range(slots)]
began = time.perf_counter()
done = 0
for slot in pool:
    slot.dispatch(); slot.start(); slot.succeed(); slot.commit()
    done += 4
    if done >= moves:
        break
print(json.dumps(done / (time.perf_counter() - began)))
"""


def main(*, quick: bool, rounds: int | None = None) -> list[dict]:
    slots = 1_000_000 if quick else 10_000_000
    items = 20_000 if quick else 100_000
    rounds = rounds or (3 if quick else 5)
    rows = [
        *transition_rows(slots, quick=quick),
        memory_row(slots),
        *stage_rows(items, rounds),
        process_row(items // 5),
        async_row(items, rounds),
    ]
    print(f"sync rate of this disk: {sync_rate():,.0f}/s")
    return rows


def row(name, ours, peer_name, peer, limit, unit) -> dict:
    return {
        "name": name,
        "ours": ours,
        "peer_name": peer_name,
        "peer": peer,
        "limit": limit,
        "unit": unit,
        "ratio": ours / peer if peer else None,
        "of_limit": ours / limit if limit else None,
    }


def transition_rows(slots: int, *, quick: bool) -> list[dict]:
    scalar = scalar_rate(slots, min(slots, 400_000 if quick else 1_000_000))
    bare = bare_rate(min(slots, 1_000_000))
    unit = "transitions/s"
    rows = [
        row(f"scalar transitions, {slots:,} slots", scalar, name, peer_rate(name, quick=quick), bare, unit)
        for name in PEERS
    ]
    memory = memory_rate(slots)
    rows.append(
        row("batch, consecutive seqs", batch_rate(slots, shuffled=False), "scalar path", scalar, memory, unit)
    )
    rows.append(
        row(
            "batch, seqs in random order",
            batch_rate(slots, shuffled=True),
            "scalar path",
            scalar,
            memory,
            unit,
        )
    )
    return rows


def scalar_rate(slots: int, used: int) -> float:
    best = 0.0
    for _ in range(3):
        sequence = Sequence(slots)
        began = time.perf_counter()
        for seq in range(used):
            sequence.dispatch(seq, 1_000)
            sequence.start(seq, "worker-1", 1_000)
            sequence.succeed(seq, "worker-1", 1, 1_001)
            sequence.mark_committed(seq)
        best = max(best, 4 * used / (time.perf_counter() - began))
        assert sequence.committed_count == used
    return best


def bare_rate(used: int) -> float:
    """The least that Python can do: look up the next state and store it, without a call or a lock."""
    state, table = bytearray(used), bytes((1, 2, 3, 7))
    began = time.perf_counter()
    for _ in range(4):
        for seq in range(used):
            state[seq] = table[state[seq]]
    return 4 * used / (time.perf_counter() - began)


def batch_rate(slots: int, *, shuffled: bool) -> float:
    return max(one_batch_rate(slots, shuffled=shuffled) for _ in range(2))


def one_batch_rate(slots: int, *, shuffled: bool) -> float:
    sequence = Sequence(slots)
    batch = SequenceBatch(sequence)
    order = np.random.default_rng(7).permutation(slots) if shuffled else None
    began = time.perf_counter()
    for first in range(0, slots, BATCH):
        seqs = range(first, first + BATCH) if order is None else order[first : first + BATCH]
        batch.dispatch(seqs, 1_000)
        batch.start(seqs, "worker-1", 1_000)
        batch.succeed(seqs, "worker-1", 1, 1_001)
        sequence.commit_ready()
    rate = 4 * slots / (time.perf_counter() - began)
    assert sequence.committed_count == slots
    assert sequence.counts() == sequence.recount()
    return rate


def memory_rate(slots: int) -> float:
    """The least that numpy can do: write the four arrays of a slot once for every four transitions."""
    arrays = [np.ones(slots, dtype=kind) for kind in (np.uint8, np.uint16, np.uint32, np.int64)]
    best = 0.0
    for _ in range(3):
        began = time.perf_counter()
        for first in range(0, slots, BATCH):
            for array in arrays:
                array[first : first + BATCH] = 1
            for _ in range(3):
                arrays[0][first : first + BATCH] = 2
        best = max(best, 4 * slots / (time.perf_counter() - began))
    return best


def memory_row(slots: int) -> dict:
    """Every slot in flight at once, which is when the indexes of leases and offers are largest."""
    tracemalloc.start()
    sequence = Sequence(slots)
    batch = SequenceBatch(sequence)
    for first in range(0, slots, BATCH):
        seqs = range(first, first + BATCH)
        batch.dispatch(seqs, 1_000)
        batch.start(seqs, "worker-1", 1_000)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return row("memory, all slots in flight", held / slots, "wanted", 24.0, 15.0, "bytes/slot")


def double(item):
    return item * 2


def futures_rate(items: int) -> float:
    """The peer at its best: as completed, or mapped, whichever is faster in this round."""
    began = time.perf_counter()
    with ThreadPoolExecutor(WORKERS) as pool:
        for future in as_completed([pool.submit(double, item) for item in range(items)]):
            future.result()
    between = time.perf_counter()
    with ThreadPoolExecutor(WORKERS) as pool:
        for _ in pool.map(double, range(items)):
            pass
    return items / min(between - began, time.perf_counter() - between)


def stage_rate(items: int, *, journal: bool) -> float:
    with tempfile.TemporaryDirectory() as folder:
        stage = Stage(
            double, workers=WORKERS, journal=Path(folder) / "j" if journal else None, progress=False
        )
        began = time.perf_counter()
        summary = stage.run(range(items))
        assert summary.ok
        return items / (time.perf_counter() - began)


def stage_rows(items: int, rounds: int) -> list[dict]:
    """Interleaved rounds, because the machine is not ours alone."""
    peer, journaled, bare = [], [], []
    for _ in range(rounds):
        peer.append(futures_rate(items))
        journaled.append(stage_rate(items, journal=True))
        bare.append(stage_rate(items, journal=False))
    unordered = statistics.median(peer)
    return [
        row(
            "stage of trivial items, threads, ordered and journaled",
            statistics.median(journaled),
            "concurrent.futures, unjournaled",
            unordered,
            unordered,
            "items/s",
        ),
        row(
            "the same without a journal",
            statistics.median(bare),
            "concurrent.futures, unjournaled",
            unordered,
            unordered,
            "items/s",
        ),
    ]


def process_row(items: int) -> dict:
    began = time.perf_counter()
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        for _ in pool.imap(abs, range(items)):
            pass
    peer = items / (time.perf_counter() - began)
    with tempfile.TemporaryDirectory() as folder:
        stage = Stage(abs, lane="processes", workers=2, journal=Path(folder) / "j", progress=False)
        began = time.perf_counter()
        assert stage.run(range(items)).ok
        ours = items / (time.perf_counter() - began)
    return row(
        "stage of trivial items, two processes, journaled",
        ours,
        "multiprocessing.imap",
        peer,
        peer,
        "items/s",
    )


async def double_async(item):
    return item * 2


def async_row(items: int, rounds: int) -> dict:
    async def gathered() -> float:
        gate = asyncio.Semaphore(64)

        async def one(item):
            async with gate:
                return await double_async(item)

        began = time.perf_counter()
        await asyncio.gather(*(one(item) for item in range(items)))
        return items / (time.perf_counter() - began)

    def staged() -> float:
        with tempfile.TemporaryDirectory() as folder:
            began = time.perf_counter()
            assert Stage(double_async, journal=Path(folder) / "j", progress=False).run(range(items)).ok
            return items / (time.perf_counter() - began)

    peer, ours = [], []
    for _ in range(rounds):
        peer.append(asyncio.run(gathered()))
        ours.append(staged())
    limit = statistics.median(peer)
    name = "stage of trivial items, asyncio, ordered and journaled"
    return row(name, statistics.median(ours), "asyncio.gather", limit, limit, "items/s")


def peer_rate(name: str, *, quick: bool) -> float | None:
    """The peer in an environment of its own; None, said aloud, where it cannot be had."""
    if not (ENVIRONMENT / name.replace("python-", "")).exists():
        # A venv may have no pip; the Python that it was made from has one.
        python = Path(sys.base_prefix) / "bin" / "python3"
        pip = [str(python), "-m", "pip", "install", "-qq", "--target", str(ENVIRONMENT), *PEERS]
        if subprocess.run(pip, check=False).returncode:
            print(f"{name} could not be installed; its row has no peer")
            return None
    slots = 2_000 if quick else 20_000
    done = subprocess.run(
        [sys.executable, "-c", PEER_SCRIPT, name, str(4 * slots), str(slots)],
        env={**os.environ, "PYTHONPATH": str(ENVIRONMENT)},
        capture_output=True,
        text=True,
        check=True,
    )
    return float(json.loads(done.stdout))


def sync_rate() -> float:
    with tempfile.TemporaryFile() as file:
        began = time.perf_counter()
        for _ in range(100):
            file.write(b"x" * 512)
            file.flush()
            os.fsync(file.fileno())
        return 100 / (time.perf_counter() - began)


def report(rows: list[dict]) -> None:
    for one in rows:
        peer = f"{one['peer_name']} {one['peer']:,.0f}" if one["peer"] else f"{one['peer_name']} not here"
        ratio = f"{one['ratio']:.2f} x" if one["ratio"] else "-"
        limit = f"{one['of_limit']:.0%} of {one['limit']:,.0f}" if one["of_limit"] else "-"
        print(f"{one['name']}: {one['ours']:,.1f} {one['unit']}; {peer}; {ratio}; {limit}")


if __name__ == "__main__":
    report(main(quick="--quick" in sys.argv))
