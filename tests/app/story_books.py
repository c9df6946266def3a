"""What the tables say of one job and of all that came of it: every ledger there is, as fifteen digits."""

from __future__ import annotations

from collections import Counter

Ledgers = dict[str, str]


def ledgers_of(app, job_id: str) -> Ledgers:
    """Return every ledger by its name: of the job, its activities and messages, its children and forks."""
    with app.connect() as db:
        children = db.execute(f"select job_id from jobs where parent_job_id = '{job_id}' order by 1")
        copies = f"where origin_job_id = '{job_id}' and job_id <> '{job_id}'"
        forks = db.execute(f"select distinct job_id from steps {copies}")
    names = {job_id: ""}
    names |= {child: f"child {n} " for n, (child,) in enumerate(children, 1)}
    names |= {fork: "fork " for (fork,) in forks}
    found: Ledgers = {}
    for each, prefix in names.items():
        found |= {f"{prefix}{name}": f"{ledger:015d}" for name, ledger in _own(app, each)}
    return found


def _own(app, job_id: str) -> list[tuple[str, int]]:
    mine = f"where job_id = '{job_id}'"
    with app.connect() as db:
        ((root, start),) = db.execute(f"select root_ledger, start_ledger from jobs {mine}")
        steps = db.execute(f"select dimension, name, occurrence, ledger from steps {mine} order by 1, 2, 3")
        words = db.execute(
            f"select kind, name, dimension, ledger from messages {mine} order by arrived, ledger"
        )
    found = [("root", root), ("start", start)]
    found += [
        (f"{name}#{n}" + (f" of turn {turn}" if turn else ""), ledger) for turn, name, n, ledger in steps
    ]
    seen: Counter[str] = Counter()
    for kind, name, dimension, ledger in sorted(words, key=lambda word: word[3] % 10**8):
        word = _called(kind, name, dimension)
        seen[word] += 1
        found.append((word if seen[word] == 1 else f"{word} {seen[word]}", ledger))
    return found


def _called(kind: str, name: str, dimension: int) -> str:
    """Return what a message is called in the tables by hand."""
    if kind == "resume":
        return {"again": f"turn {dimension}", "cancel": "cancellation"}.get(name, "join")
    return {"signal": f"signal {name}", "child": "end of a child"}.get(kind, kind)
