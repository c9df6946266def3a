"""What the tables say of a parent and its children: every ledger that there is, as fifteen digits."""

from __future__ import annotations

from collections import Counter

from tests.app import digits_by_hand as expected


def books_of(app, parent_id: str, *, many: int) -> str:
    """Return a line as `digits_by_hand.CROWD` has it behind the name of a commit; no ledger is left out."""
    family = f"from jobs where '{parent_id}' in (job_id, parent_job_id)"
    theirs = f"where job_id in (select job_id {family})"
    words = f"select job_id, kind, ledger, acked_at is null, arrived from messages {theirs}"
    with app.connect() as db:
        jobs = db.execute(f"select job_id, root_ledger, start_ledger {family}")
        steps = db.execute(f"select job_id, kind, ledger from steps {theirs}")
        messages = db.execute(f"{words} order by arrived, ledger")
    ledgers = {job_id: (digits(root), digits(start)) for job_id, root, start in jobs}
    parent = ledgers.pop(parent_id)
    group = [digits(ledger) for *_, ledger in steps]
    assert [(job_id, kind) for job_id, kind, _ in steps] == [(parent_id, "group")] * len(group)
    found = Counter(ledgers.values())
    lives = [found.pop(both, 0) for both in expected.CHILD]
    assert not found, f"no child has such digits: {found}"
    others = [(job_id, digits(ledger)) for job_id, kind, ledger, *_ in messages if kind != "child"]
    joins = [ledger for job_id, ledger in others if job_id == parent_id]
    cancellations = [ledger for job_id, ledger in others if job_id != parent_id]
    assert cancellations == [expected.CANCELLED_QUEUED[2]] * lives[3]
    ends = counted([row[2:] for row in messages if row[1] == "child"], many)
    return " ".join(map(str, (*parent, *(group or "-"), *lives, *ends, *(joins or "-"))))


def counted(words: list[tuple[int, bool, int]], many: int) -> tuple[int, int]:
    """Return how many words of children wait, and how many have entered their group, in order of arrival."""
    waiting = [digits(ledger) for ledger, waits, _ in words if waits]
    assert set(waiting) <= {expected.WORD_WAITS}
    entered = [(digits(ledger), arrived) for ledger, waits, arrived in words if not waits]
    by_hand = [f"{expected.WORD_ENTERED}{entry:08d}" for entry in range(1, len(entered) + 1)]
    if len(entered) == many:
        by_hand[-1] = f"{expected.WORD_CLOSES}{many:08d}"
    assert sorted(ledger for ledger, _ in entered) == by_hand
    early = [ledger for ledger, arrived in entered if arrived]
    assert early == by_hand[: len(early)], "those that came too early have entered first, in their order"
    return len(waiting), len(entered)


def digits(ledger: int) -> str:
    return f"{ledger:015d}"
