"""Fifteen digits as a drawing or as data, with the decision that follows from them.

Needs neither click nor a store, so that it is quick. It decides nothing itself: every verdict comes from the
functions that the engine calls.
"""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING, NamedTuple

from tallystick.cli.render.output import Ink, show, show_data, tell_error
from tallystick.core.digits import ActivityLedger, GuidLedger
from tallystick.core.ledger.consistency import contradictions
from tallystick.core.ledger.decisions import NextStep, Verdict, enter_leg1, enter_leg2, next_step
from tallystick.core.printing.render import positions
from tallystick.errors import LedgerCorrupt

if TYPE_CHECKING:
    from tallystick.core.digits import Field

_GAP = "  "
_MARGIN = "  "


class Next(NamedTuple):
    """What happens next: a name for programs, a sentence for people, and what new messages would meet."""

    step: str
    sentence: str
    arrivals: tuple[Arrival, ...] = ()


class Arrival(NamedTuple):
    """A message that might arrive now, what becomes of it, and the ledger after its entry."""

    message: str
    verdict: Verdict
    ledger: str


def present(digits: str, *, guid: bool, as_json: bool) -> int:
    """Show the digits on stdout and return the exit code.

    Digits that contradict each other are still drawn, since a reader wants to see them; then they
    are called corrupt.
    """
    ledger = GuidLedger.parse(digits) if guid else ActivityLedger.parse(digits)
    doubts = contradictions(ledger)
    what_next = None if doubts else what_happens_next(ledger)
    if as_json:
        show_data(as_data(ledger, what_next, doubts))
    else:
        columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        show(draw(ledger, what_next, Ink.for_stream(sys.stdout), columns))
    return tell_error(_corrupt(ledger, doubts), as_json=as_json) if doubts else 0


def what_happens_next(ledger: ActivityLedger | GuidLedger) -> Next:
    """Return what a worker does that reads these digits."""
    if isinstance(ledger, GuidLedger):
        return _next_for_message(ledger)
    step, sentence = _next_for_activity(ledger)
    return Next(step, sentence, _arrivals(ledger))


def as_data(
    ledger: ActivityLedger | GuidLedger, what_next: Next | None, doubts: tuple[str, ...]
) -> dict[str, object]:
    """Return everything the drawing says, as data."""
    data: dict[str, object] = {
        "kind": ledger.KIND.lower(),
        "ledger": ledger.text,
        "value": int(ledger),
        "fields": [
            {
                "name": field.name,
                "positions": positions(field),
                "weight": field.weight,
                "value": field.of(ledger),
                "top": field.top,
                "meaning": field.meaning,
            }
            for field in ledger.FIELDS
        ],
        "contradictions": list(doubts),
        "next": None,
    }
    if isinstance(ledger, GuidLedger):
        data["dimension"] = ledger.dimension if ledger.get("entry") else None
    if what_next:
        data["next"] = {
            "step": what_next.step,
            "meaning": what_next.sentence,
            "arrivals": [
                {"message": arrival.message, "verdict": arrival.verdict.name, "ledger_after": arrival.ledger}
                for arrival in what_next.arrivals
            ],
        }
    return data


def draw(
    ledger: ActivityLedger | GuidLedger, what_next: Next | None, ink: Ink, columns: int | None = None
) -> str:
    """Return the drawing: the digits, a branch from each field to its meaning, and what happens next.

    Where a branch would be too wide for so many columns, the fields are a list instead.
    """
    title = f"{ink(f'{ledger.KIND} ledger', 'bold')} {ink(ledger.text, 'dim')}"
    widest = max(map(len, _branches(ledger, Ink(wet=False))))
    drawn = _branches if columns is None or widest <= columns else _listed
    lines = [title, "", *drawn(ledger, ink)]
    if what_next:
        rows = [("next", ink(what_next.sentence, "bold", "green"))]
        rows += [(new.message, new.verdict.value + _after(new, ledger)) for new in what_next.arrivals]
        width = max(len(label) for label, _ in rows)
        lines += ["", *(f"{_MARGIN}{ink(label.ljust(width), 'dim')}  {text}" for label, text in rows)]
    return "\n".join(lines)


def _branches(ledger: ActivityLedger | GuidLedger, ink: Ink) -> list[str]:
    """Draw the digits in groups, and below them a branch from each group to its meaning, the last first."""
    fields = ledger.FIELDS
    anchors: list[int] = []
    column = len(_MARGIN)
    for field in fields:
        anchors.append(column + (field.span - 1) // 2)
        column += field.span + len(_GAP)
    digits = [f"{field.of(ledger):0{field.span}d}" for field in fields]
    lines = [
        _MARGIN
        + _GAP.join(ink(text, *_style(field, text)) for field, text in zip(fields, digits, strict=True)),
        _MARGIN + ink(_GAP.join(_bracket(field.span) for field in fields), "dim"),
    ]
    width = max(len(str(int(text))) for text in digits)
    name_width = max(len(field.name) for field in fields)
    for index in reversed(range(len(fields))):
        field, text = fields[index], digits[index]
        stems = "".join("│" if position in anchors[:index] else " " for position in range(anchors[index]))
        branch = stems + "└".ljust(column - anchors[index], "─")
        value = ink(str(int(text)).rjust(width), *_style(field, text))
        lines.append(f"{ink(branch, 'dim')} {value}  {field.name:{name_width}}  {ink(field.meaning, 'dim')}")
    return lines


def _listed(ledger: ActivityLedger | GuidLedger, ink: Ink) -> list[str]:
    """Return a line for each field, in the order of the digits."""
    digits = [(field, str(field.of(ledger))) for field in ledger.FIELDS]
    widest = max(len(text) for _, text in digits)
    name_width = max(len(field.name) for field, _ in digits)
    return [
        f"{_MARGIN}{ink(text.rjust(widest), *_style(field, text))}  {field.name:{name_width}}  "
        f"{ink(field.meaning, 'dim')}"
        for field, text in digits
    ]


def _bracket(span: int) -> str:
    if span == 1:
        return "│"
    middle = (span - 1) // 2
    return "└" + "─" * (middle - 1) + "┬" + "─" * (span - middle - 2) + "┘"


def _style(field: Field, text: str) -> tuple[str, ...]:
    if not int(text):
        return ("dim",)
    return ("bold", "green") if field.top == 1 else ("bold", "cyan")


def _after(arrival: Arrival, ledger: ActivityLedger | GuidLedger) -> str:
    return "" if arrival.ledger == ledger.text else f" → {arrival.ledger}"


def _next_for_message(guid: GuidLedger) -> Next:
    if not guid.get("entry"):
        return Next("ENTER", "not entered yet → the entry is counted, then step 1 runs")
    step = next_step(guid)
    return Next(step.name, step.value)


def _next_for_activity(activity: ActivityLedger) -> tuple[str, str]:
    """Say what the activity waits for; past leg 1 that is what the message that got furthest waits for."""
    if not activity.leg1_complete:
        return _next_of_leg1(activity)
    if not activity.leg2_entries:
        return "WAIT", "leg 1 done → waits for its first leg-2 message"
    furthest = GuidLedger.of(
        work_done=activity.get("work_done"),
        children_spawned=activity.get("children_spawned"),
        tasks_done=activity.get("tasks_done"),
        closed_job=activity.get("tasks_done"),
        entry=activity.leg2_entries,
    )
    step = next_step(furthest)
    sentence = step.value
    if step is NextStep.ACKNOWLEDGE and not activity.get("tasks_done"):
        # Whether a message closed the job is written in its own ledger and nowhere else.
        sentence = "steps 1 and 2 done → acknowledge the message; if it closed the job, step 3 runs first"
    if activity.leg2_entries > 1:
        sentence = f"of {activity.leg2_entries:,} messages the furthest: {sentence} (ask each with --guid)"
    return step.name, sentence


def _next_of_leg1(activity: ActivityLedger) -> tuple[str, str]:
    entries = activity.leg1_entries
    if enter_leg1(activity).verdict is Verdict.ESCALATE:
        return "ESCALATE", f"leg 1 entered {entries} times and never completed → {Verdict.ESCALATE.value}"
    if not entries:
        return "LEG1", "nothing done yet → leg 1 runs next"
    times = "once" if entries == 1 else f"{entries} times"
    return "LEG1", f"leg 1 entered {times}, its work is not durable → leg 1 runs next, from its beginning"


def _arrivals(activity: ActivityLedger) -> tuple[Arrival, ...]:
    leg1 = enter_leg1(activity)
    leg2 = enter_leg2(activity, None)
    return (
        Arrival("a leg-1 message now", leg1.verdict, leg1.activity.text),
        Arrival("a new leg-2 message now", leg2.verdict, leg2.activity.text),
    )


def _corrupt(ledger: ActivityLedger | GuidLedger, doubts: tuple[str, ...]) -> LedgerCorrupt:
    hint = ""
    if isinstance(ledger, ActivityLedger) and not ledger.leg1_entries:
        hint = "; if these are the digits of a message, say --guid"
    return LedgerCorrupt(
        f"{ledger.KIND} ledger {ledger.text}: {', and '.join(doubts)}{hint}",
        ledger=ledger.text,
        kind=ledger.KIND,
        contradictions=list(doubts),
    )
