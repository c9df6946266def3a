"""Runs: how fast a log takes events and gives them back, against the disk, the machine and a peer.

The disk's sync rate wanders, so ours and the bare write + fsync alternate in one process, block by block,
and the median of the blocks counts. The peer runs in an environment of its own.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from bench.runs_log import TRACE, created, moves, write_log
from tallystick.clock import SystemClock
from tallystick.ids import SystemIds
from tallystick.log.event import LogEvent
from tallystick.log.folder import Folder
from tallystick.log.reader import Tail
from tallystick.log.writer import LogWriter
from tallystick.runs.log.inspection import replay_bytes

ENVIRONMENT = Path(__file__).parent / ".envs" / "eventsourcing"
PEER = "eventsourcing"
PEER_PIN = "eventsourcing==9.5.6"


# So many events share one sync where batches are measured: whole rounds of `moves`, so they can be repeated.
BATCH = 9_600
RATE_GOAL = 300_000


def main(*, quick: bool, rounds: int | None = None) -> list[dict]:
    singles, replayed, long = (600, 60_000, 200_000) if quick else (3_000, 180_000, 1_000_000)
    rounds = rounds or (5 if quick else 15)
    with tempfile.TemporaryDirectory(dir=Path(__file__).parent) as folder:
        rows = []
        for measure, count in ((single_appends, singles), (batched_appends, BATCH), (replay, replayed)):
            # The disk wanders, so the peer has its turn right before and right after ours.
            around = [peer_rates(folder, singles, BATCH)]
            rows.append(measure(folder, count, rounds))
            around.append(peer_rates(folder, singles, BATCH))
            rows[-1] |= compared(rows[-1], [rates[measure.__name__] for rates in around])
        return [*rows, memory(folder, long)]


def row(name: str, ours: float, limit: float, unit: str) -> dict:
    empty = {"peer_name": "", "peer": None, "ratio": None}
    return {"name": name, "ours": ours, "limit": limit, "unit": unit, "of_limit": ours / limit, **empty}


def with_goal(found: dict, share: float = 0.0) -> dict:
    """Return the row with what it has to reach: a share of the limit, or else a rate of its own."""
    if share:
        goal, met = f">= {share:.0%}", found["of_limit"] >= share
        return {**found, "goal_of_limit": goal, "met_of_limit": met}
    return {**found, "goal": f">= {RATE_GOAL:,}/s", "met": found["ours"] >= RATE_GOAL}


def compared(found: dict, rates: list[float | None]) -> dict:
    known = [rate for rate in rates if rate]
    if not known:
        return {}
    peer = statistics.mean(known)
    return {"peer_name": PEER, "peer": peer, "ratio": found["ours"] / peer}


def new_log(folder: str, name: str) -> LogWriter:
    with Folder.open(folder) as base:
        run = base.child(name, create=True)
    writer = LogWriter(
        run, "events.ndjson", Tail(), run_id=name, trace_id=TRACE, clock=SystemClock(), ids=SystemIds()
    )
    writer.append([created()])
    return writer


def size_of(folder: str, run_id: str) -> int:
    return Path(folder, run_id, "events.ndjson").stat().st_size


def rate(count: int, work: Callable[[], None]) -> float:
    start = time.perf_counter()
    work()
    return count / (time.perf_counter() - start)


def single_appends(folder: str, count: int, rounds: int) -> dict:
    """Append with one sync each, in turns with the bare write + fsync of as many bytes."""
    writer = new_log(folder, "single")
    drafts = moves(60)
    size = size_of(folder, "single")
    writer.append(drafts)
    line = b"x" * ((size_of(folder, "single") - size) // 60)
    bare = os.open(f"{folder}/bare", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def ours() -> None:
        for number in range(count // rounds):
            writer.append(drafts[number % 60 : number % 60 + 1])

    def limit() -> None:
        for _ in range(count // rounds):
            os.write(bare, line)
            os.fsync(bare)

    pairs = [(rate(count // rounds, ours), rate(count // rounds, limit)) for _ in range(rounds)]
    os.close(bare)
    ratio = statistics.median(one / other for one, other in pairs)
    floor = statistics.median(other for _, other in pairs)
    return with_goal(row("append, one fsync an event", floor * ratio, floor, "events/s"), 0.8)


def batched_appends(folder: str, count: int, rounds: int) -> dict:
    """Append in batches of one sync, in turns with the bare write + fsync of as many bytes."""
    writer = new_log(folder, "batched")
    drafts = moves(count)
    before = size_of(folder, "batched")
    writer.append(drafts)
    block = b"x" * (size_of(folder, "batched") - before)
    bare = os.open(f"{folder}/bare", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def limit() -> None:
        os.write(bare, block)
        os.fsync(bare)

    pairs = [
        (rate(len(drafts), lambda: writer.append(drafts)), rate(len(drafts), limit))
        for _ in range(4 * rounds)
    ]
    os.close(bare)
    ours = statistics.median(one for one, _ in pairs)
    floor = statistics.median(other for _, other in pairs)
    return with_goal(row(f"append, {len(drafts)} events a batch", ours, floor, "events/s"))


def replay(folder: str, count: int, rounds: int) -> dict:
    """Replay a log with every check, in turns with bare decoding and hashing of its lines."""
    write_log(folder, "replayed", count)
    lines = Path(folder, "replayed", "events.ndjson").read_bytes().splitlines()
    decode = msgspec.json.Decoder(LogEvent).decode

    def limit() -> None:
        for line in lines:
            decode(line)
            hashlib.sha256(line).hexdigest()

    pairs = [
        (rate(count, lambda: replay_bytes(folder, "replayed")), rate(count, limit)) for _ in range(rounds)
    ]
    ours = statistics.median(one for one, _ in pairs)
    floor = statistics.median(other for _, other in pairs)
    return with_goal(row(f"replay of {count} events, all hashes checked", ours, floor, "events/s"))


def memory(folder: str, count: int) -> dict:
    """Replay a long log in a fresh process; its peak is compared with the peak of one a hundredth as long."""
    write_log(folder, "short", count // 100)
    write_log(folder, "long", count)
    program = (
        "import sys\nfrom tallystick.runs.log.inspection import replay_bytes\n"
        "replay_bytes(sys.argv[1], sys.argv[2])\n"
        "print(next(int(line.split()[1]) for line in open('/proc/self/status') if 'VmHWM' in line) / 1024)"
    )
    peaks = [
        float(
            subprocess.run(
                [sys.executable, "-c", program, folder, name], capture_output=True, text=True, check=True
            ).stdout
        )
        for name in ("long", "short")
    ]
    found = row(f"peak memory of a replay of {count} events", peaks[0], peaks[1], "MiB")
    return {**found, "goal_of_limit": "<= 110%", "met_of_limit": found["of_limit"] <= 1.1}


def peer_rates(folder: str, singles: int, batch: int) -> dict:
    """Return what the peer reaches, by the name of our measurement; nothing where it cannot be installed."""
    python = ENVIRONMENT / "bin" / "python"
    names = ("single_appends", "batched_appends", "replay")
    if not python.exists():
        try:
            install_peer(python)
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"the peer cannot be installed: {error}", file=sys.stderr)
            shutil.rmtree(ENVIRONMENT, ignore_errors=True)
            return dict.fromkeys(names)
    script = Path(__file__).with_name("runs_peer.py")
    command = [str(python), str(script), folder, str(singles), str(batch)]
    answer = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return dict(zip(names, (answer["single"], answer["batch"], answer["replay"]), strict=True))


def install_peer(python: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(ENVIRONMENT)], check=True)
    uv = Path(__file__).parents[1] / ".tools" / "uv" / "bin" / "uv"
    mirror = (
        os.environ.get("PIP_INDEX_URL")
        or subprocess.run(
            ["python3", "-m", "pip", "config", "get", "global.index-url"],
            capture_output=True,
            text=True,
            check=False,
        ).stdout.strip()
    )
    environment = {**os.environ, "UV_NO_CONFIG": "1", **({"UV_DEFAULT_INDEX": mirror} if mirror else {})}
    install = [str(uv), "pip", "install", "--quiet", "--python", str(python), PEER_PIN]
    subprocess.run(install, check=True, env=environment)


def show(rows: list[dict]) -> None:
    for found in rows:
        goal = found.get("goal") or found["goal_of_limit"]
        verdict = f"{goal}: {'met' if found.get('met', found.get('met_of_limit')) else 'MISSED'}"
        peer = f"{found['ratio']:.1f}x {found['peer_name']} ({found['peer']:,.0f})" if found["peer"] else ""
        print(
            f"{found['name']:55} {found['ours']:>12,.1f} {found['unit']:9} "
            f"{found['of_limit']:>7.0%} of {found['limit']:,.1f}  {peer}  {verdict}"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    show(main(quick=parser.parse_args().quick))
