"""Pictures by hand, for guards that no small world and few random pictures come to; each case is one of them.

What is right is written out here and not asked of the verbs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tallystick.core.chain import Chain
from tallystick.core.deciding import decide
from tallystick.core.pictures import (
    Activity,
    JobFacts,
    Lease,
    Message,
    Now,
    Picture,
    Pictures,
    cancel_of,
    timer_of,
    turn_of,
)
from tallystick.core.plans import Decision, Plan, Refusal
from tallystick.core.requests import Await, CancelJob, Cycle, TakeAnswer
from tallystick.core.values import Fact, Fence, Wait, Wake
from tallystick.core.verbs.settling import Driver, driver_of
from tallystick.core.verbs.wants import Planned

PLACE = (0, "go", 1)
OPENED, ENTERED, ANSWERED = 1_100_000_000_000, 1_100_000_000_001, 1_110_000_000_001
MET, TAKEN = 1, 10_000_000_001


def a_job(**facts: object) -> Picture:
    inbox = (1, 500)
    digits = (1_111_000_000_001, 11_000_000_001, 500)
    row = JobFacts("j", "IN_PROGRESS", 1, 0, None, None, 1, *digits, None, None, 3, 1, None, None, *inbox)
    return Picture(row._replace(**facts), Lease(1, "lease", "IN_PROGRESS", True, "m"))  # type: ignore[arg-type]  # cases name columns


def a_message(**columns: object) -> Message:
    row = Message("m", "j", *PLACE, "signal", "7", None, MET, 0, 500, 1, None)
    return row._replace(**columns)  # type: ignore[arg-type]  # cases name columns


def a_wait(**columns: object) -> Activity:
    return Activity("j", *PLACE, "wait", "IN_PROGRESS", ENTERED, 1, 1)._replace(**columns)  # type: ignore[arg-type]  # cases name columns


def driven_by(message: Message, *activities: Activity) -> Driver | Refusal:
    """Return what drives a job whose attempt names this message."""
    picture = a_job()
    picture.messages[message.guid] = message
    picture.activities = {each.place: each for each in activities}
    return driver_of(picture, message.guid)


def decided(
    request: Planned, *rows: Message | Activity, runs: bool = True, **facts: object
) -> tuple[Decision, Picture]:
    """Return what a request about a job with these rows comes to."""
    picture = a_job(**facts)
    picture.lease = picture.lease if runs else None
    for row in rows:
        if isinstance(row, Message):
            picture.messages[row.guid] = row
        else:
            picture.activities[row.place] = row
    return decide(Pictures({"j": picture}), request, Now(1_000)), picture


def is_refused(request: Planned, *rows: Message | Activity, **about: object) -> bool:
    decision, _picture = decided(request, *rows, **about)  # type: ignore[arg-type]  # cases name columns
    assert isinstance(decision, Plan | Refusal), decision
    return isinstance(decision, Refusal)


FENCE = Fence("j", 1, "lease")
GO = Wait("wait", "go", 1, None)
TAKE = TakeAnswer(FENCE, Chain("j"), 0, GO, Wake("m", "signal", 0, "go", 1, "7", taken=False), 990)


def waiting(wait: Wait) -> Await:
    return Await(FENCE, "m", 0, (wait,), Fact(Chain("j"), "suspend", 990, 1, "{}"))


def a_message_that_is_acknowledged_is_owed_nothing() -> None:
    assert a_message(ledger=TAKEN).is_owed
    assert not a_message(ledger=TAKEN, acked_at=600).is_owed


def a_word_of_a_child_counts_in_its_group_and_not_in_its_job() -> None:
    assert not a_message(kind="child", ledger=TAKEN).is_owed


def a_message_that_is_done_with_drives_nothing() -> None:
    assert isinstance(driven_by(a_message(acked_at=600), a_wait()), Refusal)
    assert driven_by(a_message(), a_wait()) == Driver(a_message(), a_wait())


def a_signal_of_an_older_form_drives_though_it_does_not_say_its_wait() -> None:
    old = a_message(occurrence=None, ledger=TAKEN)
    assert driven_by(old) == Driver(old, None)
    assert isinstance(driven_by(a_message(occurrence=None)), Refusal)


def an_open_wait_and_a_message_that_is_taken_disagree() -> None:
    assert isinstance(driven_by(a_message(ledger=TAKEN), a_wait()), Refusal)


def a_wait_that_is_over_without_an_answer_and_its_message_disagree() -> None:
    over = a_wait(state="SUCCEEDED")
    assert isinstance(driven_by(a_message(ledger=TAKEN), over), Refusal)
    assert isinstance(driven_by(a_message(ledger=TAKEN), over._replace(ledger=ANSWERED)), Driver)


def what_a_wait_takes_is_there_and_was_not_taken() -> None:
    assert not is_refused(TAKE, a_message(), a_wait())
    assert is_refused(TAKE, a_wait())
    assert is_refused(TAKE, a_message(acked_at=600), a_wait())
    assert is_refused(TAKE, a_message(ledger=TAKEN), a_wait())


def what_takes_a_message_is_open() -> None:
    assert is_refused(TAKE, a_message(), a_wait(state="SUCCEEDED", ledger=ANSWERED))
    assert is_refused(TAKE, a_message())
    assert not is_refused(TAKE, a_message(occurrence=None, ledger=0))


def a_wait_takes_its_own_message() -> None:
    assert is_refused(TAKE, a_message(name="stop"), a_wait())
    assert is_refused(TAKE, a_message(occurrence=2), a_wait())
    assert is_refused(TAKE, a_message(dimension=1), a_wait())


def an_answer_beside_the_one_that_drives_counts_two() -> None:
    beside = TAKE._replace(wake=TAKE.wake._replace(guid="n"))
    other = a_message(guid="n", occurrence=None, ledger=0)
    fresh = a_wait(ledger=OPENED)
    assert is_refused(beside, other._replace(ledger=MET, occurrence=1), fresh, semaphore=1)
    assert not is_refused(beside, other, fresh, semaphore=2)
    assert is_refused(beside, other, fresh, semaphore=1)


def a_wait_that_is_over_is_not_waited_for_again() -> None:
    assert not is_refused(waiting(GO._replace(name="other")), a_message(), a_wait(), semaphore=1)
    over = a_wait(name="other", state="SUCCEEDED", ledger=ANSWERED)
    assert is_refused(waiting(GO._replace(name="other")), a_message(), a_wait(), over, semaphore=1)


def a_timer_without_its_wait_is_not_set_again() -> None:
    timed = GO._replace(name="other", due_at=5_000)
    place = (0, "other", 1)
    timer = a_message(guid=timer_of("j", place), name="other", kind="timer", due_at=9_000, ledger=0)
    assert not is_refused(waiting(timed), a_message(), a_wait(), semaphore=1)
    assert is_refused(waiting(timed), a_message(), a_wait(), timer, semaphore=1)


def a_job_turns_once_to_a_turn() -> None:
    turn = Cycle(FENCE, "m", 0, "{}", Fact(Chain("j"), "again", 990, 1, "{}"))
    word = a_message(guid=turn_of("j", 1), dimension=1, name="again", kind="resume", ledger=0)
    assert not is_refused(turn, a_message(), a_wait(), semaphore=1)
    assert is_refused(turn, a_message(), a_wait(), word, semaphore=1)


def a_job_that_nobody_runs_is_cancelled_if_it_counts_what_is_open() -> None:
    cancel, idle = CancelJob("j", 0), {"runs": False}
    fresh = a_wait(ledger=OPENED)
    word = a_message(guid=cancel_of("j"), name="cancel", kind="resume", ledger=0, acked_at=600)
    assert not is_refused(cancel, fresh, semaphore=1, **idle)
    assert is_refused(cancel, fresh, semaphore=2, **idle)
    assert is_refused(cancel, fresh, word, semaphore=1, **idle)


CASES: Final[tuple[Callable[[], None], ...]] = (
    a_message_that_is_acknowledged_is_owed_nothing,
    a_word_of_a_child_counts_in_its_group_and_not_in_its_job,
    a_message_that_is_done_with_drives_nothing,
    a_signal_of_an_older_form_drives_though_it_does_not_say_its_wait,
    an_open_wait_and_a_message_that_is_taken_disagree,
    a_wait_that_is_over_without_an_answer_and_its_message_disagree,
    what_a_wait_takes_is_there_and_was_not_taken,
    what_takes_a_message_is_open,
    a_wait_takes_its_own_message,
    an_answer_beside_the_one_that_drives_counts_two,
    a_wait_that_is_over_is_not_waited_for_again,
    a_timer_without_its_wait_is_not_set_again,
    a_job_turns_once_to_a_turn,
    a_job_that_nobody_runs_is_cancelled_if_it_counts_what_is_open,
)
