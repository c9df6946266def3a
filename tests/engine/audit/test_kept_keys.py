"""Keys of effects whose job or turn was removed: no fact tells of them, and none changes or goes unseen."""

from __future__ import annotations

import pytest

from tallystick import Key, Tally, again
from tallystick.core.audit.removals import LogEnd, PrunedRow
from tallystick.core.effects.kept_keys import print_of
from tallystick.core.effects.requests import PruneEffects
from tallystick.engine.audit.sealing import seal
from tallystick.engine.audit.whole_store import verify
from tallystick.testing.stepping import check_store
from tests.engine.audit.hostile import HostileValues
from tests.engine.audit.tampering import Books

DAY = 86_400_000
LEFT = "they are not those that are kept"


@pytest.fixture
def timed(url, clock):
    """It keeps two turns of a loop."""
    tally = Tally(url, clock=clock, keep_turns=2)
    yield tally
    tally.close()


@pytest.fixture
def books(timed, hand, clock, url):
    """Two jobs with two effects each and one without are gone; of a loop that goes on four turns are."""

    @timed.effect(key="charge:{n}")
    def charge(key: Key, n: int) -> str:
        return f"receipt of {n}"

    @timed.workflow
    def buys(n: int) -> list[str]:
        return [charge(n), charge(n + 1)]

    @timed.workflow
    def looks() -> None:
        pass

    @timed.workflow
    def shops(n: int) -> str:
        charge(1_000 + n)
        return again(n + 1) if n < 5 else "over"

    for n in (10, 20):
        buys.submit(n)
        looks.submit()
        hand.work_all()
        clock.advance(DAY)
    shops.submit(0)
    hand.work_all()
    assert timed.prune(older_than="1d") == 4
    assert check_store(timed) == []
    made = Books(url, timed.runtime().store.inspect())
    yield made
    made.close()


def found(timed) -> list[str]:
    return [finding.message for finding in check_store(timed)]


def lines(books: Books) -> list[PrunedRow]:
    names = ", ".join(PrunedRow._fields)
    return [PrunedRow._make(row) for row in books.db.run(f"select {names} from pruned order by seq")]


def rewrite(books: Books, changed: list[PrunedRow]) -> None:
    """Write the log of removals anew, hashed from its beginning, as one who knows every rule would."""
    end = LogEnd()
    books.db.run("delete from pruned")
    for old in changed:
        linked = old._replace(prev_hash=end.event_hash)
        line = linked._replace(event_hash=linked.made_hash)
        end = LogEnd(line.seq, line.event_hash)
        places = ", ".join("?" * len(line))
        books.db.run(f"insert into pruned ({', '.join(line._fields)}) values ({places})", tuple(line))


@pytest.mark.slow
def test_no_column_of_a_key_changes_unseen_when_its_job_or_turn_is_gone(timed, books):
    """But how often the row was written, which means nothing any more."""
    names = [name for name, _kind, _null in books.columns("effect_keys")]
    rows = [
        dict(zip(names, row, strict=True))
        for row in books.db.run(f"select {', '.join(names)} from effect_keys")
    ]
    of_a_job = next(row for row in rows if row["key"] == "charge:11")
    of_a_turn = next(row for row in rows if row["key"] == "charge:1001")
    hostile = HostileValues("effect_keys", rows)
    tried = 0
    for row in (of_a_job, of_a_turn):
        for name, kind, nullable in books.columns("effect_keys"):
            for value in hostile.of(row, name, kind, nullable=nullable) if name != "rev" else ():
                change = books.changed("effect_keys", row, name, value)
                if change is not None:
                    tried += 1
                    assert books.found(change), change
        assert books.found(books.gone("effect_keys", row))
        assert books.found(books.twice("effect_keys", row))
    assert tried > 200
    assert found(timed) == []


def test_a_key_that_appears_beside_a_job_which_left_none_is_found(timed, books):
    (plain, *_others) = [line.job_id for line in lines(books) if line.keys == ""]
    assert [line.keys for line in lines(books) if line.whole].count("") == 2
    books.db.run(
        "update effect_keys set job_id = ?, exec_id = ? where key = 'charge:10'",
        (plain, f"{plain}:0/charge#1:1"),
    )
    assert any("nothing else of it" in message for message in found(timed))


def test_keys_that_were_kept_long_enough_leave_a_line_and_the_others_are_held(timed, books, clock):
    """Two keys of one job go one after the other."""
    keys = dict(books.db.run("select key, exec_id from effect_keys"))
    ((first,),) = books.db.run("select min(ended_at) from effect_keys")
    prune = PruneEffects(clock.wall_ms() - first, 1)
    assert timed.runtime().committer.call((prune,)) == 1
    (left,) = {"charge:10", "charge:11"} & {key for (key,) in books.db.run("select key from effect_keys")}
    assert found(timed) == []
    (line,) = [line for line in lines(books) if line.who == "keep_effects"]
    assert (line.whole, line.keys is not None and line.keys.startswith("[[0,")) == (0, True)
    with books.made(books.gone("effect_keys", books.row("effect_keys", keys[left]))):
        assert any(LEFT in message for message in found(timed))
    # What goes without a line was taken.
    with books.made(books.gone("pruned", books.row("pruned", line.seq))):
        assert any(LEFT in message for message in found(timed))
    assert timed.runtime().committer.call((PruneEffects(0, 100),)) == 3
    assert found(timed) == []
    ((kept,),) = books.db.run("select count(*) from effect_keys")
    assert kept == 6


def test_a_loop_that_was_trimmed_and_removed_has_left_all_its_keys(timed, books, clock):
    clock.advance(DAY)
    assert timed.prune(older_than="1d") == 1
    assert found(timed) == []
    for key in ("charge:1000", "charge:1003", "charge:1005"):
        ((exec_id,),) = books.db.run(f"select exec_id from effect_keys where key = '{key}'")
        assert books.found(books.gone("effect_keys", books.row("effect_keys", exec_id))), key
    assert timed.runtime().committer.call((PruneEffects(0, 4),)) == 4
    assert found(timed) == []
    assert timed.runtime().committer.call((PruneEffects(0, 100),)) == 6
    assert found(timed) == []


def test_keys_of_removals_of_an_older_version_are_not_judged(timed, books):
    rewrite(books, [line._replace(keys=None) for line in lines(books)])
    assert found(timed) == []
    books.db.run("update effect_keys set result = '\"x\"' where key = 'charge:10'")
    assert found(timed) == []


def test_a_seal_finds_keys_that_were_changed_with_all_that_tells_of_them(timed, books):
    store = timed.runtime().store
    sealed = seal(store, 0)
    books.db.run("update effect_keys set result = '\"x\"' where key = 'charge:10'")
    (wrong,) = found(timed)
    inspection = store.inspect()
    changed = [
        line._replace(keys=print_of(inspection.keys_of(line.job_id))) if line.whole else line
        for line in lines(books)
    ]
    rewrite(books, changed)
    assert found(timed) == [], wrong
    messages = [finding.message for finding in verify(store, sealed=sealed).findings]
    assert messages == [f"removal {sealed.removals} is not in the log as it was sealed"]
