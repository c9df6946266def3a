"""The rules as SQL text, so that the database refuses what Python refuses.

A schema file is plain SQL that a person can read and run. The parts that follow from the rules stand between
`-- rule: ...` and `-- end rule`; `refresh` writes them again, and a test fails when a file is stale.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Final

from tallystick.core.digits import ActivityLedger, GuidLedger
from tallystick.core.lifecycles import MACHINES
from tallystick.core.verbs.hooks import due_expression

_BLOCK: Final = re.compile(r"^( *)-- rule: (\S+) (\S+) (\S+)\n.*?^ *-- end rule$", re.DOTALL | re.MULTILINE)


def refresh(schema: str) -> str:
    """Return the schema with every rule block written again."""

    def block(match: re.Match[str]) -> str:
        indent, rule, subject, place = match.groups()
        body = _RULES[rule](subject, place)
        lines = [f"-- rule: {rule} {subject} {place}", *body.splitlines(), "-- end rule"]
        return "\n".join(indent + line if line else line for line in lines)

    return _BLOCK.sub(block, schema)


def rule(database: str, name: str, subject: str, place: str) -> str:
    """Return a rule as a database is told it: there may be words of its own for it."""
    return (_RULES.get(f"{database}-{name}") or _RULES[name])(subject, place)


def one_of(database: str, column: str, words: Iterable[str]) -> str:
    """Return a test for membership as a database does it for least.

    >>> one_of("sqlite", "kind", ["a", "b"]), one_of("postgres", "kind", ["a", "b"])
    ("kind = 'a' OR kind = 'b'", "kind = ANY ('{a,b}')")
    """
    if database == "sqlite":
        return " OR ".join(f"{column} = '{word}'" for word in words)
    return f"{column} = ANY ('{{{','.join(words)}}}')"


def _states(machine: str, column: str) -> str:
    return f"CHECK ({_one_of(column, MACHINES[machine].states)}),"


def _digits(kind: str, column: str) -> str:
    fields = (ActivityLedger if kind == "activity" else GuidLedger).FIELDS
    tops = [
        f"{column} / {field.weight} % {10**field.span} <= {field.top}"
        for field in fields
        if field.top < 10**field.span - 1
    ]
    return f"CHECK ({column} BETWEEN 0 AND 999999999999999\n       AND " + "\n       AND ".join(tops) + "),"


def _sqlite_births(machine: str, place: str) -> str:
    """Print the trigger that refuses a row born in a state in which nothing begins, or without its `home`.

    It fails instead of aborting: nothing is written before it, and for an INSERT OR FAIL SQLite then keeps no
    copies of the pages that it touches.
    """
    table, column, *homes = place.split(".")
    homeless = "\n  OR NOT EXISTS (SELECT 1 FROM {0} WHERE {0}.job_id = NEW.job_id)"
    lost = "".join(homeless.format(home) for home in homes)
    without = "".join(f", or without its row in {home}" for home in homes)
    return f"""\
CREATE TRIGGER {table}_births BEFORE INSERT ON {table}
WHEN NOT ({_one_of(f"NEW.{column}", MACHINES[machine].births)}){lost}
BEGIN SELECT RAISE(FAIL, 'ILLEGAL_TRANSITION: no {machine} begins in this state{without}'); END;"""


def _sqlite_guard(machine: str, place: str) -> str:
    """Print the one trigger that refuses changes of ended rows, unlisted moves and ledgers that decrease.

    One trigger for all three, because each costs a busy table about as much as an index.
    """
    _table, column, *ledger = place.split(".")
    rules = MACHINES[machine]
    ended = _one_of(f"OLD.{column}", tuple(state for state in rules.states if state in rules.final))
    before = dict.fromkeys(before for before, _after in rules.stored_moves)
    # Not a CASE: SQLite would compute every comparison of it, where this leaves at the first that holds.
    moves = "\n       OR ".join(
        f"OLD.{column} = '{state.value}' AND ("
        + _one_of(f"NEW.{column}", tuple(after for source, after in rules.stored_moves if source is state))
        + ")"
        for state in before
    )
    shrinks = "".join(f"\n  OR NEW.{digits} < OLD.{digits}" for digits in ledger)
    return f"""\
WHEN {ended}{shrinks}
  OR (OLD.{column} <> NEW.{column} AND NOT (
          {moves}))
BEGIN
  SELECT RAISE(ABORT, 'FINAL: this {machine} has ended and cannot change') WHERE {ended};
  SELECT RAISE(ABORT, 'ILLEGAL_TRANSITION: the {machine} lifecycle has no such move')
   WHERE OLD.{column} <> NEW.{column};
  SELECT RAISE(ABORT, 'LEDGER: a ledger never decreases');
END;"""


def _learnt(kind: str, column: str) -> str:
    """Print what a ledger may still learn after the end of its activity: step 2 and step 3, each once."""
    fields = {
        field.name: field.weight for field in (ActivityLedger if kind == "activity" else GuidLedger).FIELDS
    }
    children, tasks = fields["children_spawned"], fields["tasks_done"]
    grown = f"NEW.{column} - OLD.{column}"
    return " OR ".join(f"{grown} = {weight}" for weight in (children, tasks, children + tasks))


def _sqlite_learns(machine: str, place: str) -> str:
    """Print the trigger that lets an ended activity learn digits, and nothing else."""
    _table, column, ledger = place.split(".")
    rules = MACHINES[machine]
    ended = _one_of(f"OLD.{column}", tuple(state for state in rules.states if state in rules.final))
    return f"""\
WHEN NEW.{ledger} < OLD.{ledger}
  OR (({ended}) AND NOT ({_learnt("activity", ledger)}))
BEGIN
  SELECT RAISE(ABORT, 'LEDGER: a ledger never decreases') WHERE NEW.{ledger} < OLD.{ledger};
  SELECT RAISE(ABORT, 'FINAL: this {machine} has ended and cannot change');
END;"""


def _postgres_learns(machine: str, place: str) -> str:
    """Print the condition of the trigger that lets an ended activity learn digits, and nothing else."""
    _table, column, ledger = place.split(".")
    rules = MACHINES[machine]
    ended = _any_of(f"OLD.{column}", tuple(state for state in rules.states if state in rules.final))
    return f"""\
WHEN ({ended} AND NOT ({_learnt("activity", ledger)}))
EXECUTE FUNCTION refuse_change('FINAL: this {machine} has ended and cannot change');"""


def _postgres_births(machine: str, place: str) -> str:
    """Print the trigger that refuses a row born in a state in which nothing begins."""
    table, column = place.split(".")
    return f"""\
CREATE TRIGGER {table}_births BEFORE INSERT ON {table} FOR EACH ROW
WHEN (NOT ({_any_of(f"NEW.{column}", MACHINES[machine].births)}))
EXECUTE FUNCTION refuse_change('ILLEGAL_TRANSITION: no {machine} begins in this state');"""


def _postgres_guard(machine: str, place: str) -> str:
    """Print the triggers that refuse changes of ended rows, unlisted moves and ledgers that decrease.

    Their conditions are evaluated without calling anything, so a legal change pays next to nothing.
    """
    _table, column, *_ledger = place.split(".")
    rules = MACHINES[machine]
    ended = _any_of(f"OLD.{column}", tuple(state for state in rules.states if state in rules.final))
    return f"""\
WHEN ({ended})
EXECUTE FUNCTION refuse_change('FINAL: this {machine} has ended and cannot change');

{_postgres_moves(machine, place)}"""


def _postgres_moves(machine: str, place: str) -> str:
    """Print the triggers that refuse unlisted moves and ledgers that decrease."""
    table, column, *ledger = place.split(".")
    rules = MACHINES[machine]
    moves = ",\n    ".join(f"{before.value}>{after.value}" for before, after in rules.stored_moves)
    shrinks = "".join(
        f"""

CREATE TRIGGER {table}_ledger BEFORE UPDATE ON {table} FOR EACH ROW
WHEN (NEW.{digits} < OLD.{digits})
EXECUTE FUNCTION refuse_change('LEDGER: a ledger never decreases');"""
        for digits in ledger
    )
    return f"""\
CREATE TRIGGER {table}_moves BEFORE UPDATE ON {table} FOR EACH ROW
WHEN (OLD.{column} <> NEW.{column} AND OLD.{column} || '>' || NEW.{column} <> ALL ('{{
    {moves}}}'))
EXECUTE FUNCTION refuse_change('ILLEGAL_TRANSITION: the {machine} lifecycle has no such move');{shrinks}"""


# What of a job that goes on may be removed: what stands in turns whose removal is written down.
_TRIMMED: Final = {
    "attempts": "SELECT ended.attempt >= OLD.attempt FROM pruned\n"
    "         JOIN events AS ended ON ended.job_id = pruned.job_id AND ended.n = pruned.last_n",
    "steps": "SELECT pruned.dimension >= OLD.dimension FROM pruned",
    "messages": "SELECT pruned.dimension >= OLD.dimension AND OLD.acked_at IS NOT NULL FROM pruned",
    "events": "SELECT pruned.last_n >= OLD.n FROM pruned",
}


def _sqlite_kept(row: str, table: str) -> str:
    """Print the trigger that keeps the books of a job until it is pruned, or their turn is trimmed."""
    trimmed = ""
    if table in _TRIMMED:
        trimmed = f"""
  AND NOT coalesce((
         {_TRIMMED[table]}
          WHERE pruned.job_id = OLD.job_id AND pruned.whole = 0 ORDER BY pruned.seq DESC LIMIT 1), 0)"""
    return f"""\
CREATE TRIGGER {table}_delete BEFORE DELETE ON {table}
WHEN (SELECT pruned_at IS NULL FROM jobs WHERE job_id = OLD.job_id){trimmed}
BEGIN SELECT RAISE(ABORT, 'DELETE: the job of this {row} is not pruned'); END;"""  # noqa: S608 (printed, never run)


def _postgres_kept(_row: str, table: str) -> str:
    """Print the triggers that keep the books of a job until it is pruned."""
    return f"""\
CREATE TRIGGER {table}_delete BEFORE DELETE ON {table} FOR EACH ROW EXECUTE FUNCTION refuse_unless_pruned();
CREATE TRIGGER {table}_truncate BEFORE TRUNCATE ON {table}
EXECUTE FUNCTION refuse_change('DELETE: books are pruned, never emptied');"""


def _final(machine: str, column: str) -> str:
    rules = MACHINES[machine]
    ends = _one_of(column, tuple(state for state in rules.states if state in rules.final))
    return f"CHECK (({ends}) = (completed_at IS NOT NULL)),"


def _postgres_states(machine: str, column: str) -> str:
    return f"CHECK ({_any_of(column, MACHINES[machine].states)}),"


def _postgres_final(machine: str, column: str) -> str:
    rules = MACHINES[machine]
    ends = _any_of(column, tuple(state for state in rules.states if state in rules.final))
    return f"CHECK (({ends}) = (completed_at IS NOT NULL)),"


def _any_of(column: str, states: tuple[Enum, ...]) -> str:
    """Print a test for membership in one constant: PostgreSQL reads a condition anew for each statement."""
    return one_of("postgres", column, [state.value for state in states])


def _one_of(column: str, states: tuple[Enum, ...]) -> str:
    """Print a test for membership without IN, for which SQLite builds a table at every row it checks."""
    return one_of("sqlite", column, [state.value for state in states])


_RULES: Final[dict[str, Callable[[str, str], str]]] = {
    "states": _states,
    "column-digits": lambda kind, column: _digits(kind, column).removesuffix(","),
    "digits": _digits,
    "final": _final,
    "hooks": lambda _machine, _column: due_expression(),
    "postgres-births": _postgres_births,
    "postgres-final": _postgres_final,
    "postgres-guard": _postgres_guard,
    "postgres-kept": _postgres_kept,
    "postgres-moves": _postgres_moves,
    "postgres-learns": _postgres_learns,
    "postgres-states": _postgres_states,
    "sqlite-births": _sqlite_births,
    "sqlite-guard": _sqlite_guard,
    "sqlite-kept": _sqlite_kept,
    "sqlite-learns": _sqlite_learns,
}
