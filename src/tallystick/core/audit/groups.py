"""A group of children against the words that they leave when they end: counted one by one, closed by one."""

from __future__ import annotations

from collections.abc import Iterator

from tallystick.core.digits import ActivityLedger, GuidLedger
from tallystick.core.lifecycles import JOB, JobState, StepState
from tallystick.core.pictures import OPEN, Activity, Message


class GroupSum:
    """What the words for one group say together: of its children, and that it is closed."""

    __slots__ = ("closers", "counted", "failed", "joins", "joins_taken", "late", "words")

    def __init__(self) -> None:
        """Begin with no word."""
        self.words = self.counted = self.failed = self.late = self.joins = self.joins_taken = 0
        self.closers: list[int] = []

    def add(
        self, group: Activity, counts: ActivityLedger, word: Message, ledger: GuidLedger, *, final: bool
    ) -> str:
        """Take a word, and say what is wrong with it alone."""
        if word.kind != "child":
            self.joins += 1
            self.joins_taken += ledger.work_done
            return ""
        self.words += 1
        if word.payload not in JOB.final:
            return f"it says that the child is {word.payload}"
        entry = ledger.get("entry")
        if not entry:
            self.late += word.acked_at is not None
            may_wait = group.state == OPEN and not counts.leg1_complete and not final
            return "" if word.acked_at is not None or may_wait else "it waits, and its group counts children"
        self.counted += 1
        self.failed += word.payload != JobState.SUCCEEDED
        if ledger.closed_job:
            self.closers.append(entry)
        if word.acked_at is None:
            return "it was counted and is not acknowledged"
        counted = ledger.work_done and ledger.children_spawned
        return "" if counted and ledger.closed_job == ledger.tasks_done else "it was counted in part"


def judge_group(
    group: Activity, ledger: ActivityLedger, heard: GroupSum, open_children: int
) -> Iterator[tuple[str, str]]:
    """Say what a group claims that its children do not: (rule, words).

    A child that has ended has left a word, so its own row need not be there any more.
    """
    born = heard.words + open_children
    semaphore, threshold = group.semaphore or 0, group.threshold or 0
    if not ledger.leg1_complete:
        if heard.counted or group.failed or semaphore <= born:
            yield "semaphore", f"semaphore {semaphore} with {born} children, not all of which are born"
        if heard.late and group.state == OPEN:
            yield "digits", f"{heard.late} words of children are acknowledged and not counted"
        return
    if semaphore != born - heard.counted:
        yield (
            "semaphore",
            f"the semaphore is {semaphore}, and of {born} children {heard.counted} are counted",
        )
    if group.failed != heard.failed:
        yield "semaphore", f"it counts {group.failed} failed children, and {heard.failed} have failed"
    closing = born - threshold
    expected = [closing] if heard.counted >= closing else []
    if heard.closers != expected:
        yield "closer", f"closed by the entries {heard.closers}, and it takes {closing} children to close it"
    if heard.joins != group.is_closed:
        closed = "closed" if group.is_closed else "open"
        yield "state", f"it is {closed}, and {heard.joins} words for its parent are there"
    if heard.late and group.state == OPEN and heard.counted < closing:
        yield "digits", f"{heard.late} words of children are acknowledged and not counted"
    joined = group.state == StepState.SUCCEEDED
    if joined != bool(heard.joins_taken) and group.state != StepState.CANCELLED:
        yield "state", f"it is {group.state}, and its word was taken {heard.joins_taken} times"
