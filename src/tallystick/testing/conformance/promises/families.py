"""Children and groups: born once, counted once, in the order of their ends, and one of them closes."""

from __future__ import annotations

from tallystick.errors import StaleLease
from tallystick.store.api import ClaimedJob, EndJob, Fence, Group, Spawn
from tallystick.testing.conformance.drafts import (
    bundles,
    claim,
    claimed,
    done,
    fail,
    finish,
    held_job,
    submission,
)
from tallystick.testing.conformance.promises.waiting import awaiting
from tallystick.testing.conformance.subject import Subject
from tallystick.testing.expected_digits import CHILD, CLOSER, COUNTED, GROUP_CLOSED

GROUP = Group(0, "gather", 1)


def spawning(
    subject: Subject, held: ClaimedJob, total: int, *, start: int = 0, end: int | None = None
) -> Spawn:
    """Return the birth of the children from `start` to `end` of a group of `total`."""
    born = []
    for index in range(start, total if end is None else end):
        plain = submission(subject.clock, GROUP.child_id(held.fence.job_id, index))
        born.append((plain.job, plain.facts[0]))
    return Spawn(held.fence, held.chain, GROUP, total, 0, False, tuple(born), subject.clock.wall_ms())


def family(subject: Subject, total: int) -> tuple[ClaimedJob, list[ClaimedJob]]:
    """Return a parent and its children, all of them claimed, in their order."""
    held = held_job(subject.store, subject.clock)
    assert done(subject.store, spawning(subject, held, total)) is False
    children = claimed(subject.store, claim(total))
    return held, sorted(children, key=lambda child: child.fence.job_id)


def ending(subject: Subject, child: ClaimedJob, *, well: bool = True) -> EndJob:
    """Return the end of a child."""
    end = finish(child, subject.clock) if well else fail(child, subject.clock)
    return end._replace(parent=child.parent)


def told(subject: Subject) -> list[int]:
    """Return the digits of the messages that children left, in the order of their entries."""
    ledgers = [row.ledger for row in subject.messages() if row.kind == "child"]
    return sorted((int(ledger) for ledger in ledgers), key=lambda ledger: ledger % 100_000_000)


def group_of(subject: Subject) -> tuple[object, ...]:
    """Return what the row of the only group says."""
    (row,) = [row for row in subject.steps() if row.kind == "group"]
    return row.ledger, row.semaphore, row.failed


class Families:
    """One activity in the parent, however many children."""

    def test_children_that_end_in_one_flush_are_counted_in_order_and_the_last_one_closes(
        self, subject: Subject
    ) -> None:
        held, children = family(subject, 5)
        ends = [ending(subject, child, well=number != 2) for number, child in enumerate(children)]
        assert subject.store.apply(bundles(*ends)) == [None] * 5
        assert told(subject) == [CHILD + 1, CHILD + 2, CHILD + 3, CHILD + 4, CLOSER + 5]
        assert group_of(subject) == (GROUP_CLOSED + 5, 0, 1)
        words = [row.guid for row in subject.messages() if row.kind == "resume"]
        assert words == [f"join:{held.fence.job_id}:{GROUP}"]

    def test_a_stale_report_in_the_flush_spoils_no_child_and_no_group(self, subject: Subject) -> None:
        held, children = family(subject, 3)
        stale = Fence(held.fence.job_id, held.fence.attempt, "another")
        batch = bundles(
            awaiting(subject, held)._replace(fence=stale),
            ending(subject, children[0]),
            ending(subject, children[1])._replace(fence=Fence(*children[1].fence[:2], "another")),
            ending(subject, children[2]),
            spawning(subject, held, 3)._replace(fence=stale),
        )
        outcomes = subject.store.apply(batch)
        refused = [isinstance(outcome, StaleLease) for outcome in outcomes]
        assert refused == [True, False, True, False, True]
        assert told(subject) == [CHILD + 1, CHILD + 2]
        assert group_of(subject) == (COUNTED + 2, 1, 0)
        done(subject.store, ending(subject, children[1]))
        assert told(subject)[-1] == CLOSER + 3

    def test_a_child_is_born_once_however_often_its_parent_spawns(self, subject: Subject) -> None:
        """A parent that lost its worker between two bundles, or after them, begins again with the first."""
        store = subject.store
        held = held_job(store, subject.clock)
        assert done(store, spawning(subject, held, 4, end=2)) is False
        half = subject.books()
        assert done(store, spawning(subject, held, 4, end=2)) is False
        assert subject.books() == half
        assert done(store, spawning(subject, held, 4, start=1)) is False
        whole = subject.books()
        assert done(store, spawning(subject, held, 4, end=2)) is True
        assert subject.books() == whole
        assert len(claimed(store, claim(10))) == 4

    def test_the_children_of_a_group_are_read_page_by_page(self, subject: Subject) -> None:
        held, children = family(subject, 3)
        ids = [child.fence.job_id for child in children]
        done(subject.store, ending(subject, children[0]))
        pages, after = [], ""
        while page := subject.store.children(held.fence.job_id, GROUP, after=after, limit=2):
            pages.append([(row.job_id, row.state) for row in page])
            after = page[-1].job_id
        assert pages == [[(ids[0], "SUCCEEDED"), (ids[1], "IN_PROGRESS")], [(ids[2], "IN_PROGRESS")]]
        (first, _second) = subject.store.children(held.fence.job_id, GROUP, after="", limit=2)
        assert subject.store.finished_children([*ids, "nobody"]) == {ids[0]: first}

    def test_a_child_that_ends_after_its_group_has_closed_has_not_ended_for_its_parent(
        self, subject: Subject
    ) -> None:
        """A parent that replays its join sees what the first run saw: those that were counted."""
        held = held_job(subject.store, subject.clock)
        done(subject.store, spawning(subject, held, 3)._replace(threshold=1))
        children = sorted(claimed(subject.store, claim(3)), key=lambda child: child.fence.job_id)
        for child in children:
            done(subject.store, ending(subject, child))
        assert told(subject) == [0, CHILD + 1, CLOSER + 2]
        rows = subject.store.children(held.fence.job_id, GROUP, after="", limit=3)
        assert [row.state for row in rows] == ["SUCCEEDED", "SUCCEEDED", "IN_PROGRESS"]
