"""Write the pages that are printed from code, or say which of them are stale.

`make docs` writes them, `make verify` checks them. A new page is a function and a line in `PAGES`.
"""

from __future__ import annotations

import argparse
import difflib
import json
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tallystick import crash, errors
from tallystick.cli.render.output import EXIT_MEANINGS
from tallystick.core.digits import ActivityLedger, GuidLedger
from tallystick.core.ledger.decisions import Delivery, NextStep, Reclaim, Verdict, next_step
from tallystick.core.ledger.promises import PROMISES
from tallystick.core.lifecycles import MACHINES, RUN, RUN_REWINDS, RUN_STABLE
from tallystick.core.printing import render
from tallystick.core.remote.wire import FORMS, schema_of
from tallystick.defaults import DEFAULTS
from tallystick.runs.log.events import PAYLOADS
from tallystick.runs.log.schemas import event_schema, schema_text, snapshot_schema
from tallystick.runs.orchestrator.start import start_or_resume  # noqa: F401 (loads every module that declares a crash point)
from tallystick.store.sql.schema import schema

if TYPE_CHECKING:
    from enum import Enum

    from tallystick.core.machine import Machine

ROOT = Path(__file__).resolve().parents[1]
SPECIFICATIONS = {"slot": "000", "job": "001", "step": "001", "outbox": "001", "attempt": "002", "run": "003"}

SCHEMA = """\
# The schema of both databases

<!-- Printed from code by `make docs`; change `src/tallystick/store/sql/schema.sql`, not this page. -->

## SQLite

```sql
{sqlite}```

## PostgreSQL

```sql
{postgres}```
"""

LIFECYCLES = """\
# Lifecycles

<!-- Printed from code by `make docs`; change the code, not this page. -->

What has a state follows one of these machines:
{links}.
They are declared in `src/tallystick/core/lifecycles.py`. Each is checked when it is loaded: no trigger leads
to two places, no final state has an exit, every state can be reached, and from every state a final one. A
verb that asks for the move of an empty cell gets `StateTransitionError`, and the guards by which both
databases refuse it for jobs, steps, attempts and the outbox are printed from the same table.

What users see of a job (PENDING, RUNNING, SUCCEEDED, FAILED, CANCELLED) is no machine: it is derived from the
attempts ([decision 0007](adr/0007-job-view-is-derived.md)).

{machines}
"""

MACHINE = """\
## {name}

{about} (specification {specification}). Begins in `{start}`, ends in {final}.

```mermaid
{mermaid}
```

{table}
{notes}
<details><summary>Grid, SQL and JSON Schema</summary>

{grid}

```sql
{sql}
```

```json
{schema}
```

</details>
"""

ADDED = """
Edges with a record are not in the specification's table; the [record](adr/README.md) says why.
"""

REWINDS = """
A resume goes back from a state in which it was interrupted. That is an event of its own, not a move:

{rewinds}
"""

LEDGER = """\
# The fifteen digits

<!-- Printed from code by `make docs`; change the code, not this page. -->

An activity and every message for it own one integer of fifteen digits each. A digit is raised in the same
transaction as the work it stands for: set means durable, not set means to be done again. Nothing is ever
taken back, and no counter carries into its neighbour. `tally ledger DIGITS` draws any of them.

## The activity ledger

{activity}

A marker of leg 2 is set by the first message that does the step, and then stays. It says that some message
has done it; which one, only the GUID ledgers say.

## The GUID ledger

{guid}

It starts as the low eight digits of the activity ledger after the entry was counted, and it alone decides
what is still to do for its message. The dimension of a message is its entry minus one.

## A walk through two crashes

A job waits for a signal, and its worker dies twice: when it has claimed the job because of the signal, and
when the wait is answered. Every line is what the tables of SQLite and PostgreSQL hold then. What follows is
`next_step` of `src/tallystick/core/ledger/decisions.py`; a claim asks it through `enter_leg2`.

{walk}

## What happens next

For a message that has entered:

{steps}

For a message that arrives at leg 1 or leg 2:

{verdicts}

For a signal, timer, result or child that arrives for a job:

{deliveries}

For an attempt that a sweep looks at:

{reclaims}

## What must agree

`tally doctor` reads the ledgers of a job and compares them with each other, after any commit:

- The entries of an activity are as many as the messages that entered it, and each of these is another
  entry. A marker is set in an activity exactly if it is set in one of its messages. Leg 1 of a job is its
  one submission.
- A message that is not acknowledged has entered because it drives the newest attempt, or waits to be taken.
  One that is acknowledged has done step 2; or it was never entered, because what it was for is over.
- The semaphore of a job counts its start until that is acknowledged, its open activities, and the message
  that was taken and has its step 2 still to do. That of a group counts the children that it has not
  counted.
- One message has closed a job that has ended, the one that drove its last attempt, and one child a group
  that is closed. Only where a ledger was full when a message came to it there is none.
- The fact of an activity that has ended has its digits, without step 2 and step 3 if it learnt them later.

## What each promise writes

The ledgers after each durable step. A promise without a GUID ledger needs no message: its answer is the
return value. What is called coming is in no file yet.

{promises}
"""


RUN_EVENTS = """\
# Events of a run

<!-- Printed from code by `make docs`; change the code, not this page. -->

Every line of `events.ndjson` is one of these. Around the payload stand `event_id`, `run_id`, `ts`, `type`,
`trace_id`, `span_id`, `prev_hash` and `event_hash`, and `parent_span_id` where there is one. The hash is the
SHA-256 of `event_id + ts + type + canonical payload + prev_hash`. The JSON Schemas are in the package, at
`src/tallystick/runs/log/schema_files/`. How runs work is told in the [guide](guides/runs.md).

{events}

## Where a process may be killed

The tests kill a run at every visit of each of these points, resume it, and compare the result byte for byte.

{points}
"""


def lifecycles_page() -> str:
    """Return docs/lifecycles.md."""
    return LIFECYCLES.format(
        links=", ".join(f"[{name}](#{name})" for name in MACHINES),
        machines="\n".join(machine_section(machine) for machine in MACHINES.values()).rstrip("\n"),
    )


def machine_section(machine: Machine[Enum]) -> str:
    """Return the section about one machine."""
    notes = ADDED if any(move.added for move in machine.transitions) else ""
    if machine.name == RUN.name:
        notes += REWINDS.format(rewinds=render.rewinds(RUN, RUN_STABLE, RUN_REWINDS))
    return MACHINE.format(
        name=machine.name,
        about=machine.about[0].upper() + machine.about[1:],
        specification=SPECIFICATIONS[machine.name],
        start=machine.start.name,
        final=", ".join(f"`{state.name}`" for state in machine.states if state in machine.final),
        mermaid=render.mermaid(machine),
        table=render.markdown(machine),
        notes=notes,
        grid=render.markdown_grid(machine),
        sql=render.sql_check(machine),
        schema=json.dumps(render.json_schema(machine), indent=2),
    )


def ledger_page() -> str:
    """Return docs/ledger.md."""
    return LEDGER.format(
        activity=render.digit_map(ActivityLedger.FIELDS),
        guid=render.digit_map(GuidLedger.FIELDS),
        walk=walk(),
        steps=answers(NextStep),
        verdicts=answers(Verdict),
        deliveries=answers(Delivery),
        reclaims=answers(Reclaim),
        promises=render.promise_table(PROMISES),
    )


def walk() -> str:
    """Return the table of the crashes: every durable step, both ledgers after it, and what follows."""
    bundles = {promise.name: promise.bundles for promise in PROMISES}["wait, sleep"]
    suspended, claimed, answered, _, returned = [(bundle.activity, bundle.guid) for bundle in bundles]
    crash = "**crash**; another worker claims the job"
    rows = [
        ("the job suspends at the wait: leg 1, with its work", suspended),
        ("the signal is delivered", (suspended[0], GuidLedger(0))),
        ("a worker claims the job: the message enters leg 2", claimed),
        (crash, claimed),
        ("the answer of the wait: step 1", answered),
        (crash, answered),
        ("the job returns: steps 2 and 3", returned),
    ]
    return render.markdown_table(
        ("what became durable", "activity ledger", "GUID ledger", "what follows"),
        [(event, f"`{activity.text}`", *told(guid)) for event, (activity, guid) in rows if activity],
    )


def told(guid: GuidLedger | None) -> tuple[str, str]:
    """Return a message's digits, if there is one, and the decision that follows."""
    if guid is None:
        return "", "waits for a message"
    return f"`{guid.text}`", next_step(guid).value if guid else "waits for a claim"


def answers(decision: type[NextStep | Verdict | Delivery | Reclaim]) -> str:
    """Return the possible answers of a decision as a table."""
    rows = [(f"`{answer.name}`", answer.value) for answer in decision]
    return render.markdown_table(("answer", "meaning"), rows)


def run_events_page() -> str:
    """Return the page about the events of a run and the points where it is killed in tests."""
    rows = [
        (f"`{kind}`", " ".join(f"`{name}`" for name in shape.__struct_fields__), str(shape.__doc__))
        for kind, shape in PAYLOADS.items()
    ]
    points = [
        (f"`{name}`", moment)
        for name, moment in crash.points().items()
        if name.partition(".")[0] in {"artifact", "folder", "recorder", "log", "receipt", "recovery"}
    ]
    return RUN_EVENTS.format(
        events=render.markdown_table(("type", "payload", "meaning"), rows),
        points=render.markdown_table(("point", "moment"), points),
    )


EXIT_CODES = """\
# Exit codes and errors

<!-- Printed from code by `make docs`; change the code, not this page. -->

`tally` ends with one of these:

{codes}

An error brings its exit code with it. With `--json` it is one line on stderr: an object `error` with `code`,
`message` and its fields. In Python each is a class of `tallystick.errors`, with the same code.

{errors}
"""


def exit_codes_page() -> str:
    """Return the page about exit codes: what each means, and which errors end with it."""
    kinds = [getattr(errors, name) for name in errors.__all__]
    rows = sorted(
        (kind.exit_code, f"`{kind.code}`", f"`{kind.__name__}`", (kind.__doc__ or "").splitlines()[0])
        for kind in kinds
    )
    missing = {row[0] for row in rows} - set(EXIT_MEANINGS)
    if missing:
        raise SystemExit(f"docs: say what the exit codes {missing} mean, in tallystick.cli.render.output")
    return EXIT_CODES.format(
        codes=render.markdown_table(
            ("exit code", "meaning"), [(str(c), m) for c, m in EXIT_MEANINGS.items()]
        ),
        errors=render.markdown_table(
            ("exit code", "code", "class", "meaning"), [(str(code), *rest) for code, *rest in rows]
        ),
    )


DEFAULTS_PAGE = """\
# Defaults

<!-- Printed from code by `make docs`; change `src/tallystick/defaults.py`, not this page. -->

What holds unless a program says otherwise:

{rows}
"""


def defaults_page() -> str:
    """Return the page about defaults."""
    rows = [(about, f"`{value}`", otherwise) for value, about, otherwise in DEFAULTS]
    return DEFAULTS_PAGE.format(rows=render.markdown_table(("what", "default", "how to change it"), rows))


EXAMPLES = """\
# Examples

<!-- Printed from the examples by `make docs`; change them, not this page. -->

Programs of at most sixty lines with one idea each, which need nothing but the package. Start them in an empty
folder: they write there. A comment at the end is what one prints; the tests run all of them and compare.

{groups}
"""

EXAMPLE_GROUPS = {"01": "Workflows", "2": "Runs", "3": "Stages"}


def examples_page() -> str:
    """Return the list of examples, each with the first sentence that it says about itself."""
    files = sorted((ROOT / "examples").glob("*.py"))
    groups = []
    for digits, title in EXAMPLE_GROUPS.items():
        rows = [
            [f"[{file.name}]({file.name})", file.read_text("utf-8").splitlines()[0].strip('"# ')]
            for file in files
            if file.name[0] in digits
        ]
        groups.append(f"## {title}\n\n{render.markdown_table(('program', 'what it shows'), rows)}")
    return EXAMPLES.format(groups="\n\n".join(groups))


def schema_page() -> str:
    """Print the tables, checks and guards of both databases."""
    return SCHEMA.format(sqlite=schema("sqlite"), postgres=schema("postgres"))


def form_page(name: str) -> str:
    """Print the JSON Schema of a form that goes in or out."""
    return schema_text(schema_of(name))


PAGES = {
    "docs/defaults.md": defaults_page,
    "docs/exit-codes.md": exit_codes_page,
    "docs/ledger.md": ledger_page,
    "docs/lifecycles.md": lifecycles_page,
    "docs/run-events.md": run_events_page,
    "docs/schema.md": schema_page,
    "examples/README.md": examples_page,
    **{
        f"src/tallystick/core/remote/schema_files/{name}.schema.json": partial(form_page, name)
        for name in FORMS
    },
    "src/tallystick/runs/log/schema_files/event.schema.json": lambda: schema_text(event_schema()),
    "src/tallystick/runs/log/schema_files/snapshot.schema.json": lambda: schema_text(snapshot_schema()),
}


def pages() -> dict[str, str]:
    """Return every generated page: its path below the project's root, and its text."""
    return {path: make() for path, make in PAGES.items()}


def write() -> None:
    """Write the pages that differ, and say which."""
    for path, text in pages().items():
        place = ROOT / path
        if not place.exists() or place.read_text("utf-8") != text:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, "utf-8")
            print(f"wrote {path}")


def check() -> int:
    """Print how each stale page differs from what the code would print; return the exit code."""
    stale = 0
    for path, text in pages().items():
        place = ROOT / path
        there = place.read_text("utf-8") if place.exists() else ""
        lines = difflib.unified_diff(
            there.splitlines(), text.splitlines(), f"{path} (on disk)", f"{path} (from code)", lineterm=""
        )
        for line in lines:
            print(line)
        if there != text:
            stale += 1
            print(f"{path} is stale; run `make docs`", file=sys.stderr)
    return 1 if stale else 0


def main(arguments: list[str] | None = None) -> int:
    """Write the pages or check them."""
    parser = argparse.ArgumentParser(prog="scripts/docs.py", description="Print pages from code.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail when a page is stale")
    if parser.parse_args(arguments).check:
        return check()
    write()
    return 0


if __name__ == "__main__":
    sys.exit(main())
