"""What a worker is told about jobs that it runs: they are to end, were ended without it, or are held."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tallystick.engine.segment import Segment
    from tallystick.worker.worker import Worker


def notice_ended(worker: Worker, job_id: str, *, asked: bool) -> None:
    """Tell a segment that its job was `asked` to end, or has been ended without it.

    One that was asked meets that at its next call, and an async step of it at once.
    """
    segment = worker.running.get(job_id)
    if segment is None:
        return
    if not asked:
        lose(worker, segment)
    elif not segment.cancelled:
        segment.cancelled = True
        if (interrupt := segment.interrupt) is not None:
            interrupt()
        worker.notify(job_id)


def lose(worker: Worker, segment: Segment) -> bool:
    """Let a segment that has lost its lease stop, an async one at once; tell whether that is new."""
    # What ends or is put away cannot lose its lease: that is durable, or it is refused by itself.
    if segment.over or segment.leaving or segment.lost:
        return False
    segment.lost = True
    worker.stop_task(segment)
    return True


def notice_held(worker: Worker, job_id: str, *, held: bool) -> None:
    """Let a segment stop at its next call because its job is held, or go on after all."""
    segment = worker.running.get(job_id)
    if segment is not None:
        segment.paused = held
