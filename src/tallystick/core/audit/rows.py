"""The rows of a job against each other: what an activity says is what its messages say together.

Activities come first, then every message once, in any order; of messages only sums are kept. Each rule is
one that runs: digits grow as `marks` lets them, semaphores count what `verbs` count, and a message is
acknowledged when its step 2 is done or nothing is left for it to do. Jobs of an older form are judged by
their semaphore alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from tallystick.core.audit.book import ActivityRow, AttemptRow, Book, Findings
from tallystick.core.audit.fingerprints import of_dropped
from tallystick.core.audit.groups import GroupSum, judge_group
from tallystick.core.audit.step_fact import LEARNT, revisions
from tallystick.core.audit.told import Account
from tallystick.core.digits import ActivityLedger, GuidLedger
from tallystick.core.ledger.consistency import contradictions
from tallystick.core.ledger.decisions import TAKERS
from tallystick.core.ledger.marks import OPENED
from tallystick.core.lifecycles import JOB, StepState
from tallystick.core.pictures import AGAIN, START, Activity, Message, Place, cancel_of
from tallystick.errors import LedgerCeiling, LedgerCorrupt

_LEG1_FULL: Final = ActivityLedger.FIELDS[0].top
_LEG2_FULL: Final = ActivityLedger.FIELDS[-1].top
_NAMED_MAX: Final = 3
# In which states an activity has taken its one answer.
_ANSWERED: Final = (StepState.SUCCEEDED, StepState.FAILED_FINAL)


class _Marks(NamedTuple):
    """The four markers of a message."""

    closed_job: int
    work_done: int
    children_spawned: int
    tasks_done: int


_ENTERED: Final = _Marks(0, 0, 0, 0)
_WORKED: Final = _Marks(0, 1, 0, 0)
_COUNTED: Final = _Marks(0, 1, 1, 0)
_CLOSER: Final = _Marks(1, 1, 1, 1)


class _Sum:
    """What the messages that entered one activity say together."""

    __slots__ = ("entered", "group", "guids", "marked", "seen", "taken", "timers")

    def __init__(self) -> None:
        self.entered = self.taken = self.timers = 0
        self.marked = {"work_done": False, "children_spawned": False, "tasks_done": False}
        self.seen = bytearray()
        self.guids: list[str] = []
        self.group = GroupSum()

    def enter(self, guid: str, ledger: GuidLedger, counted: int) -> str:
        """Count an entry, and say what is wrong with its number among those that the activity counts."""
        entry = ledger.get("entry")
        if not entry:
            return ""
        self.entered += 1
        self.taken += ledger.work_done
        for name in self.marked:
            self.marked[name] |= bool(ledger.get(name))
        if len(self.guids) < _NAMED_MAX:
            self.guids.append(guid)
        if entry > counted:
            return f"is entry {entry} of {counted}"
        self.seen.extend(bytes(max(0, entry + 1 - len(self.seen))))
        self.seen[entry] += self.seen[entry] < 2
        return "has the entry of another message" if self.seen[entry] > 1 else ""


class Rows:
    """The activities and messages of one job, and what does not agree about them."""

    def __init__(self, book: Book, findings: Findings, attempts: Sequence[AttemptRow], said: Account) -> None:
        """Begin with the row of the job, its attempts, oldest first, and what its facts say."""
        self._book = book
        self._findings = findings
        self._driver = attempts[-1].guid if attempts else ""
        self._said = said
        self._final = book.state in JOB.final
        self._rows: dict[Place, tuple[ActivityRow, ActivityLedger]] = {}
        self._sums: dict[Place | None, _Sum] = {}
        self._closers: list[str] = []
        self._owed = int(book.start_acked_at is None)
        root = self._activity("root", book.root_ledger)
        self._root = ActivityLedger(OPENED) if root is None else root
        self._left = self._left_at_work(attempts) if self._final else None
        if book.ledger_form:
            self._judge_start()

    def add_activity(self, row: ActivityRow) -> None:
        """Take the row of a wait, a sleep, a remote step or a group."""
        activity = row.activity
        self._owed += activity.is_open
        ledger = self._activity(_label(activity), activity.ledger)
        if ledger is not None:
            self._rows[activity.place] = (row, ledger)

    def add_message(self, message: Message) -> bool:
        """Take a message, after all activities, and tell whether its digits can be read."""
        book, label = self._book, f"{message.kind} {message.guid}"
        try:
            ledger = GuidLedger(message.ledger)
        except LedgerCorrupt as error:
            self._findings.note("digits", f"{label}: {error.message}")
            return False
        self._owed += message.is_owed
        if not book.ledger_form:
            return True
        for contradiction in contradictions(ledger):
            self._findings.note("digits", f"{label}: {ledger.text}: {contradiction}")
        place = None if message.is_of_root else message.place
        if message.is_of_root or place is not None:
            self._enter(label, message, place, ledger)
        if message.kind == "child":
            return True
        if ledger.closed_job:
            self._closers.append(message.guid)
        self._judge_message(label, message, ledger)
        return True

    def judge_dropped(self, dropped: Mapping[int, object], prints: Mapping[Place, str]) -> None:
        """Compare what was dropped when a turn ended with what its fact says, and `prints`."""
        for dimension, told in dropped.items():
            rows = [
                row.activity for row, _ledger in self._rows.values() if row.activity.dimension == dimension
            ]
            if of_dropped((one for one in rows if one.state == StepState.CANCELLED), prints) != told:
                turn = f" of turn {dimension}" if dimension else ""
                self._findings.note("columns", f"what was dropped at the end{turn} is not what its fact says")

    def close(self, told: dict[Place, int], open_children: dict[str, int]) -> None:
        """Compare everything that was read; `told` are the digits in the facts of activities that ended."""
        book, note = self._book, self._findings.note
        expected = 0 if self._final else self._owed
        if book.semaphore != expected:
            note("semaphore", f"the semaphore is {book.semaphore}, open obligations are {expected}")
        if not book.ledger_form:
            return
        root = self._sums.get(None) or _Sum()
        # Each turn but the first was entered by a word of its own, which is gone with it.
        root.entered += max(0, self._said.turns_gone - 1)
        self._adds_up("root", self._root, root)
        for place, (row, ledger) in self._rows.items():
            self._judge_activity(row, ledger, told.get(place))
            if not row.is_copy:
                self._judge_answers(row.activity, ledger, self._sums.get(place) or _Sum(), open_children)
        self._judge_closers()

    def _activity(self, label: str, digits: int) -> ActivityLedger | None:
        try:
            ledger = ActivityLedger(digits)
        except LedgerCorrupt as error:
            self._findings.note("digits", f"{label}: {error.message}")
            return None
        for contradiction in contradictions(ledger) if self._book.ledger_form else ():
            self._findings.note("digits", f"{label}: {ledger.text}: {contradiction}")
        return ledger

    def _is_escalated(self) -> bool:
        book = self._book
        return book.state == "FAILED_FINAL" and book.error_code == LedgerCeiling.code

    def _left_at_work(self, attempts: Sequence[AttemptRow]) -> AttemptRow | None:
        """Return the attempt whose message keeps the digits that it had: the job ended over its head.

        A cancellation of a job that no worker runs does that, with a message and an attempt of its own.
        """
        cancelled = self._driver == cancel_of(self._book.job_id) and len(attempts) > 1
        return attempts[-2] if cancelled else None

    def _enter(self, label: str, message: Message, place: Place | None, ledger: GuidLedger) -> None:
        """Add a message to what is said of the activity that it names or has entered."""
        if place is None:
            counted = self._root
        elif place in self._rows:
            counted = self._rows[place][1]
        else:
            self._findings.note("digits", f"{label} names {place[1]}#{place[2]}, which is not there")
            return
        heard = self._sums.setdefault(place, _Sum())
        wrong = heard.enter(message.guid, ledger, counted.leg2_entries)
        if wrong:
            self._findings.note("digits", f"{label}: {ledger.text} {wrong}")
        heard.timers += message.kind == "timer"
        activity = None if place is None else self._rows[place][0].activity
        if activity is not None and activity.kind not in TAKERS.get(message.kind, ()):
            self._findings.note("messages", f"{label} is for {_label(activity)}, which takes no such message")
        if activity is not None and activity.kind == "group":
            wrong = heard.group.add(activity, counted, message, ledger, final=self._final)
            if wrong:
                self._findings.note("digits", f"{label}: {ledger.text}: {wrong}")

    def _judge_start(self) -> None:
        """Judge the message that began the job, whose digits are a column of it."""
        book, note = self._book, self._findings.note
        try:
            ledger = GuidLedger(book.start_ledger)
        except LedgerCorrupt as error:
            note("digits", f"{START}: {error.message}")
            return
        for contradiction in contradictions(ledger):
            note("digits", f"{START}: {ledger.text}: {contradiction}")
        if ledger.get("entry") != self._said.is_claimed:
            claimed = "was" if self._said.is_claimed else "was never"
            note("digits", f"{START}: {ledger.text} in a job that {claimed} claimed")
        wrong = self._sums.setdefault(None, _Sum()).enter(START, ledger, self._root.leg2_entries)
        if wrong:
            note("digits", f"{START}: {ledger.text} {wrong}")
        if ledger.closed_job:
            self._closers.append(START)
        acked_at = book.start_acked_at
        legal = self._legal(START, acked_at, of_root=True)
        if not (_marks(ledger) in legal if ledger else (acked_at is not None) == self._final):
            note("digits", f"{START}: {ledger.text}, {_acked(acked_at)}, in a job {book.state}")
        self._judge_driver(START, ledger, book.start_acked_at)

    def _judge_driver(self, guid: str, ledger: GuidLedger, acked_at: int | None) -> None:
        """Judge a message that is at work: it drove the newest attempt."""
        if ledger and acked_at is None and guid != self._driver:
            driver = self._driver or "nothing"
            self._findings.note("digits", f"{guid} is at work, and {driver} drove the newest attempt")

    def _legal(self, guid: str, acked_at: int | None, *, of_root: bool) -> tuple[_Marks, ...]:
        """Return the markers that a message may have that has entered."""
        if not self._final:
            if acked_at is not None:
                return (_COUNTED,)
            return (_ENTERED,) if of_root else (_ENTERED, _WORKED)
        if acked_at is None:
            return ()
        if self._left is None or guid != self._left.guid:
            return (_COUNTED, _CLOSER)
        # One that was taken is settled when its segment ends in a wait or a turn; running takes the root's.
        if self._said.settles(self._left.attempt):
            return (_COUNTED,) if of_root else (_ENTERED, _COUNTED)
        return (_ENTERED,) if of_root else (_ENTERED, _WORKED)

    def _judge_message(self, label: str, message: Message, ledger: GuidLedger) -> None:
        """Judge a message that may drive the job: what it has done, and whether it is acknowledged."""
        note, book = self._findings.note, self._book
        acked = _acked(message.acked_at)
        entry = ledger.get("entry")
        if message.kind == "signal" and bool(entry) != (message.occurrence is not None):
            note("digits", f"{label}: {ledger.text} with the occurrence {message.occurrence}")
        if message.name == AGAIN and message.is_of_root and entry not in (0, message.dimension + 1):
            note("digits", f"{label}: {ledger.text} in turn {message.dimension}")
        if not ledger:
            allowed = self._may_wait(message) if message.acked_at is None else self._may_be_unread(message)
        else:
            allowed = _marks(ledger) in self._legal(
                message.guid, message.acked_at, of_root=message.is_of_root
            )
        if not allowed:
            note("digits", f"{label}: {ledger.text}, {acked}, in a job {book.state}")
        self._judge_driver(message.guid, ledger, message.acked_at)

    def _may_wait(self, message: Message) -> bool:
        """Tell whether a message may wait to be taken: the job goes on, and so does what it names."""
        if self._final:
            return False
        if message.kind == "signal":
            return True
        if message.is_of_root:
            return message.dimension == self._book.dimension
        place = message.place
        return place in self._rows and self._rows[place][0].activity.is_open

    def _may_be_unread(self, message: Message) -> bool:
        """Tell whether a message may be acknowledged that nothing took: what it was for is over."""
        if self._final:
            return True
        place = message.place
        answered = (
            message.kind == "timer"
            and place in self._rows
            and self._rows[place][0].activity.state == StepState.SUCCEEDED
        )
        return answered or (message.kind != "signal" and message.dimension < self._book.dimension)

    def _judge_activity(self, row: ActivityRow, ledger: ActivityLedger, told: int | None) -> None:
        """Judge a row by itself: its state, the digits of its fact, and how often it changed."""
        activity, note = row.activity, self._findings.note
        label = _label(activity)
        over = self._final or activity.dimension < self._book.dimension
        match activity.state:
            case StepState.IN_PROGRESS:
                legal = row.n is None and not over
            case StepState.CANCELLED:
                legal = row.n is None and over
            case StepState.SUCCEEDED:
                legal = row.n is not None
            case _:
                # Only a remote step is on its way to a worker; that and an effect may fail.
                legal = activity.kind in ("remote", "effect") and activity.is_open == (row.n is None)
                legal = legal and not (activity.is_open and over)
        if activity.kind == "group":
            legal = legal and (activity.state != StepState.SUCCEEDED or activity.is_closed)
        if not row.is_copy and not ledger.leg1_entries:
            note("digits", f"{label}: {ledger.text}, and it was never opened")
        if not legal:
            place = "without a fact" if row.n is None else f"with fact {row.n}"
            note("state", f"{label} is {activity.state} {place}, in a job {self._book.state}")
        if told is not None and row.n is not None:
            learnt = ledger - told
            if learnt and (row.is_copy or learnt not in LEARNT):
                note("digits", f"{label}: {ledger.text} was {told:015d} when it ended")
        elif row.n is None and activity.kind != "remote" and activity.rev not in revisions(activity, ledger):
            note("digits", f"{label}: {ledger.text} after {activity.rev} revisions")

    def _judge_answers(
        self, activity: Activity, ledger: ActivityLedger, heard: _Sum, open_children: dict[str, int]
    ) -> None:
        label, note = _label(activity), self._findings.note
        self._adds_up(label, ledger, heard)
        if activity.kind == "group":
            born = open_children.get(f"{activity.dimension}:{activity.name}#{activity.occurrence}", 0)
            for check, wrong in judge_group(activity, ledger, heard.group, born):
                note(check, f"{label}: {wrong}")
            return
        if not ledger.leg1_complete:
            note("digits", f"{label}: {ledger.text} is not open")
        dropped = activity.state == StepState.CANCELLED
        if heard.taken != (activity.state in _ANSWERED) and not (dropped and heard.taken == 1):
            answers = ", ".join(heard.guids) or "nothing"
            note("state", f"{label} is {activity.state}, answered {heard.taken} times ({answers})")
        if heard.timers > 1:
            note("state", f"{label} has {heard.timers} timers")

    def _adds_up(self, label: str, ledger: ActivityLedger, heard: _Sum) -> None:
        """Compare an activity with its messages: an entry for each, and one marker for all."""
        markers = {name: bool(ledger.get(name)) for name in heard.marked}
        wrong = []
        if ledger.leg2_entries != heard.entered:
            wrong.append(f"{heard.entered} messages entered")
        wrong += [
            f"{name} is {'set' if said else 'not set'} in its messages"
            for name, said in heard.marked.items()
            if said != markers[name]
        ]
        if label == "root" and (ledger.leg1_entries, ledger.leg1_complete) != (1, True):
            wrong.append("leg 1 of a job is its one submission")
        if wrong:
            guids = f" ({', '.join(heard.guids)})" if heard.guids else ""
            self._findings.note("digits", f"{label}: {ledger.text}, and {'; '.join(wrong)}{guids}")

    def _judge_closers(self) -> None:
        """One message has closed a job that has ended; where a ledger was full, none need have."""
        expected = [self._driver] if self._final else []
        if self._closers == expected:
            return
        full = any(
            ledger.leg1_entries >= _LEG1_FULL or ledger.leg2_entries >= _LEG2_FULL
            for ledger in (self._root, *(ledger for _row, ledger in self._rows.values()))
        )
        if not self._closers and self._is_escalated() and full:
            return
        closers = ", ".join(self._closers[:_NAMED_MAX]) or "nothing"
        last = f", and {self._driver or 'nothing'} drove its newest attempt" if self._final else ""
        self._findings.note("closer", f"closed by {closers}, in a job {self._book.state}{last}")


def _label(activity: Activity) -> str:
    turn = f" of turn {activity.dimension}" if activity.dimension else ""
    return f"{activity.kind} {activity.name}#{activity.occurrence}{turn}"


def _marks(ledger: GuidLedger) -> _Marks:
    return _Marks(*(ledger.get(name) for name in _Marks._fields))


def _acked(acked_at: int | None) -> str:
    return "not acknowledged" if acked_at is None else "acknowledged"
