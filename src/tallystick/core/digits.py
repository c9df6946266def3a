"""The fifteen digits: what an activity and a message have durably done, in one integer each.

A ledger only grows. Counters are raised by one entry at a time and never carry into a neighbour;
markers are set once. Reading never guesses: a digit outside its range is corruption.

The two ledgers share the shape and not the meaning (the fourth digit says "leg 1 complete" in one and
"closed the job" in the other), so they are two types with no constant in common.

>>> ActivityLedger(1_110_000_000_001).text
'001110000000001'
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple, Self

from tallystick.errors import LedgerCeiling, LedgerCorrupt

DIGITS = 15
TOP = 10**DIGITS


class Field(NamedTuple):
    """A run of digits with one meaning: its weight, how many digits it spans, and its highest value."""

    name: str
    weight: int
    span: int
    top: int
    meaning: str

    @property
    def base(self) -> int:
        """Return the number that its digits cannot reach."""
        return int(10**self.span)

    def of(self, value: int) -> int:
        """Return this field's digits of a ledger."""
        return value // self.weight % self.base


class _Ledger(int):
    """Fifteen digits in named fields; arithmetic goes through `_raised` only."""

    FIELDS: ClassVar[tuple[Field, ...]] = ()
    KIND: ClassVar[str] = "ledger"
    # Weight, base and top of each field by its name, and of those alone whose digits can be above their top.
    _NAMED: ClassVar[dict[str, tuple[int, int, int]]] = {}
    _BOUND: ClassVar[tuple[tuple[str, int, int, int], ...]] = ()

    def __init_subclass__(cls) -> None:
        """Note once what every ledger is read and checked by."""
        cls._NAMED = {field.name: (field.weight, field.base, field.top) for field in cls.FIELDS}
        cls._BOUND = tuple((name, *read) for name, read in cls._NAMED.items() if read[2] < read[1] - 1)

    def __new__(cls, value: int = 0) -> Self:
        """Refuse a value that no legal history can have written."""
        if not 0 <= value < TOP:
            raise LedgerCorrupt(
                f"{cls.KIND} ledger {value} does not have fifteen digits", ledger=value, kind=cls.KIND
            )
        for name, weight, base, top in cls._BOUND:
            if (held := value // weight % base) > top:
                raise LedgerCorrupt(
                    f"{cls.KIND} ledger {value:015d}: {name} reads {held}, its top is {top}",
                    ledger=f"{value:015d}",
                    kind=cls.KIND,
                    field=name,
                )
        return super().__new__(cls, value)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read exactly fifteen digits."""
        if len(text) != DIGITS or not (text.isascii() and text.isdigit()):
            raise LedgerCorrupt(
                f"{text!r} is no {cls.KIND} ledger: write exactly fifteen digits",
                ledger=text,
                kind=cls.KIND,
            )
        return cls(int(text))

    @classmethod
    def of(cls, **values: int) -> Self:
        """Encode field values; fields not named are zero."""
        total = 0
        for field in cls.FIELDS:
            held = values.pop(field.name, 0)
            if not 0 <= held <= field.top:
                raise LedgerCorrupt(
                    f"{field.name} must be 0..{field.top}, not {held}", kind=cls.KIND, field=field.name
                )
            total += held * field.weight
        if values:
            raise LedgerCorrupt(f"a {cls.KIND} ledger has no field {', '.join(values)}", kind=cls.KIND)
        return cls(total)

    @property
    def text(self) -> str:
        """Return all fifteen digits."""
        return f"{int(self):015d}"

    def fields(self) -> dict[str, int]:
        """Decode into named values."""
        return {name: self // weight % base for name, (weight, base, _top) in self._NAMED.items()}

    def get(self, name: str) -> int:
        """Return one field's value."""
        weight, base, _top = self._NAMED[name]
        return self // weight % base

    def _raised(self, name: str) -> Self:
        """Return the ledger with one more in a field, refusing at the field's ceiling."""
        weight, base, top = self._NAMED[name]
        if self // weight % base >= top:
            raise LedgerCeiling(
                f"{self.KIND} ledger {self.text}: {name} is full at {top}",
                ledger=self.text,
                kind=self.KIND,
                field=name,
            )
        # Below its top the field does not carry, so there is nothing to check again.
        return int.__new__(type(self), self + weight)


class ActivityLedger(_Ledger):
    """What one activity has done: its entries of leg 1 and leg 2 and the markers that prove them.

    The first leg, as the specification walks it:

    >>> ledger = ActivityLedger(0)
    >>> ledger = ledger.enter_leg1(); ledger.text
    '001000000000000'
    >>> ledger = ledger.complete_leg1(); ledger.text
    '001100000000000'
    >>> ledger.enter_leg1().text  # a replayed message is counted, and then acknowledged
    '002100000000000'

    The second leg, up to the crash after step 1:

    >>> ledger = ledger.enter_leg2(); ledger.text
    '001100000000001'
    >>> ledger.mark_work().text
    '001110000000001'
    """

    KIND = "activity"
    FIELDS = (
        Field("leg1_entries", 10**12, 3, 999, "times leg 1 was entered"),
        Field("leg1_complete", 10**11, 1, 1, "leg 1's work is durable"),
        Field("work_done", 10**10, 1, 1, "leg 2 step 1: a message's work is durable"),
        Field("children_spawned", 10**9, 1, 1, "leg 2 step 2: children and semaphore are durable"),
        Field("tasks_done", 10**8, 1, 1, "leg 2 step 3: the job's completion tasks are durable"),
        Field("leg2_entries", 1, 8, 99_999_999, "different messages that entered leg 2"),
    )

    @property
    def leg1_entries(self) -> int:
        """Return how often leg 1 was entered; all three digits, never one alone."""
        return self // 10**12

    @property
    def leg1_complete(self) -> bool:
        """Return whether leg 1's work is durable."""
        return self.get("leg1_complete") == 1

    @property
    def leg2_entries(self) -> int:
        """Return how many different messages entered leg 2."""
        return self % 10**8

    def enter_leg1(self) -> ActivityLedger:
        """Count an entry of leg 1."""
        return self._raised("leg1_entries")

    def complete_leg1(self) -> ActivityLedger:
        """Mark leg 1's work durable; a second time is refused, because it was counted already."""
        return self._raised("leg1_complete")

    def enter_leg2(self) -> ActivityLedger:
        """Count the entry of a message not seen before."""
        return self._raised("leg2_entries")

    def mark_work(self) -> ActivityLedger:
        """Set the marker of step 1; it saturates, because many messages pass and one digit stands for all."""
        return self._set("work_done")

    def mark_children(self) -> ActivityLedger:
        """Set the marker of step 2; it saturates."""
        return self._set("children_spawned")

    def mark_tasks(self) -> ActivityLedger:
        """Set the marker of step 3; it saturates."""
        return self._set("tasks_done")

    def _set(self, name: str) -> ActivityLedger:
        return self if self.get(name) else self._raised(name)


class GuidLedger(_Ledger):
    """What one leg-2 message has done; it alone decides what is still to do for that message.

    >>> guid = GuidLedger.first_seen(ActivityLedger(1_100_000_000_001)); guid.text
    '000000000000001'
    >>> guid = guid.mark_work(); guid.text
    '000010000000001'

    Two children open, the job goes on (semaphore 5 + 1 = 6); or none, and this message closes the job:

    >>> guid.mark_children(closed=False).text
    '000011000000001'
    >>> closer = guid.mark_children(closed=True); closer.text
    '000111000000001'
    >>> closer.mark_tasks().text
    '000111100000001'
    """

    KIND = "GUID"
    FIELDS = (
        Field("reserved", 10**12, 3, 0, "always zero"),
        Field("closed_job", 10**11, 1, 1, "this message brought the semaphore to its threshold"),
        Field("work_done", 10**10, 1, 1, "step 1: the work is durable"),
        Field("children_spawned", 10**9, 1, 1, "step 2: children and semaphore are durable"),
        Field("tasks_done", 10**8, 1, 1, "step 3: the completion tasks are durable"),
        Field("entry", 1, 8, 99_999_999, "which entry of the activity this message was"),
    )

    @classmethod
    def first_seen(cls, activity: ActivityLedger) -> GuidLedger:
        """Start a message's ledger from the entry just counted; the activity's markers are not its own."""
        return cls(activity % 10**8)

    @property
    def work_done(self) -> bool:
        """Return whether step 1 is durable."""
        return self.get("work_done") == 1

    @property
    def children_spawned(self) -> bool:
        """Return whether step 2 is durable."""
        return self.get("children_spawned") == 1

    @property
    def closed_job(self) -> bool:
        """Return whether this message is the closer."""
        return self.get("closed_job") == 1

    @property
    def tasks_done(self) -> bool:
        """Return whether step 3 is durable."""
        return self.get("tasks_done") == 1

    @property
    def dimension(self) -> int:
        """Return the dimensional index; taken from the message, so a redelivery keeps its dimension."""
        return self % 10**8 - 1

    def mark_work(self) -> GuidLedger:
        """Set the marker of step 1; a second time is refused."""
        return self._raised("work_done")

    def mark_children(self, *, closed: bool) -> GuidLedger:
        """Set the marker of step 2 and, in the same value, whether it closed the job."""
        marked = self._raised("children_spawned")
        return GuidLedger._raised(marked, "closed_job") if closed else marked

    def mark_tasks(self) -> GuidLedger:
        """Set the marker of step 3; only the closer has one to set."""
        if not self.closed_job:
            raise LedgerCorrupt(
                f"GUID ledger {self.text} did not close its job and has no step 3", ledger=self.text
            )
        return self._raised("tasks_done")


def _check_tiling(fields: tuple[Field, ...]) -> None:
    """Prove that the fields cover every digit exactly once, highest first."""
    end = TOP
    for field in fields:
        if field.weight * 10**field.span != end or field.top >= 10**field.span:
            raise ValueError(f"the field {field.name} does not tile fifteen digits")
        end = field.weight
    if end != 1:
        raise ValueError("the fields leave the lowest digits without a meaning")


_check_tiling(ActivityLedger.FIELDS)
_check_tiling(GuidLedger.FIELDS)
