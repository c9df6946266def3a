"""Two processes at one job, their requests in every order, with every crash; and one that sleeps."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from zlib import crc32

import pytest

from tallystick.core.remote.plans import ProtocolPlan
from tallystick.core.remote.requests import AnswerStep, ExpireStep
from tallystick.errors import StoreBusy
from tallystick.store.azure import changing, due, keys, submitting, tail
from tallystick.store.azure.changing import Here
from tallystick.store.azure.heads import Seen
from tallystick.store.azure.requests import Asking, Drop, Put, Reply, Row, Together, Wrote, write
from tallystick.testing.conformance.drafts import done
from tallystick.testing.conformance.protocol_runs import PULLED, PUSHED, RETRY, RunningProtocol, command
from tests.azure import interleaving
from tests.azure.interleaving import Verb, asked
from tests.azure.lives import Lives, by_form, by_rows
from tests.azure.situations import SITUATIONS, pairs, search, search_submissions, verbs
from tests.azure.test_prefixes import VERBS
from tests.azure.worlds import ModelSubject, judge, mend, run_out


@pytest.fixture(autouse=True)
def one_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    """Note all looks in one partition: the jobs of a search are one or two, and each look reads them all."""
    monkeypatch.setattr(keys, "DUE_PARTITIONS", ("00",))


SHARE = 40
"""Of so many pairs one is tried in `make test`; all of them are a minute or two of `make test-long`."""


def chosen(situation: str) -> list[tuple[str, str]]:
    return [pair for pair in pairs(situation) if crc32(f"{situation} {pair}".encode()) % SHARE == 0]


@pytest.mark.slow
@pytest.mark.parametrize("situation", SITUATIONS)
def test_two_processes_at_once_and_any_crash(situation: str):
    tried = [("ok", "sweep"), *chosen(situation)]
    assert sum(search(situation, *pair) for pair in tried) > 10


@pytest.mark.slow
def test_a_whole_life_one_process_at_a_time_with_two_crashes():
    lives = Lives(1, 2)
    lives.search()
    assert lives.by_crashes[-1] > 600


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("steps", [2, 3])
def test_a_whole_life_of_several_steps_with_two_crashes(steps: int):
    lives = Lives(steps, 2)
    lives.search()
    tell(f"lives of {steps} steps", lives)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_a_whole_life_in_which_every_try_may_fail_with_two_crashes():
    lives = Lives(1, 2, all_tries=True)
    lives.search()
    tell("lives of 1 step and all of its tries", lives)


def tell(what: str, lives: Lives) -> None:
    said = ", ".join(f"{states:,}" for states in lives.by_crashes)
    sys.stdout.write(f"{what}: {said} states with 0, 1, … crashes, {lives.ends:,} of them ends\n")


@pytest.mark.slow
def test_lives_of_one_form_go_on_alike():
    compare_forms(1, 0)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("steps", [1, 2])
def test_lives_of_one_form_go_on_alike_with_two_crashes(steps: int):
    compare_forms(steps, 2)


def compare_forms(steps: int, crashes: int) -> None:
    """Visit all that rows tell apart, and find no form that was not found by forms."""
    short, whole = (Lives(steps, crashes, name=name) for name in (by_form, by_rows))
    short.search()
    whole.search()
    tell(f"lives of {steps} steps, by their rows", whole)
    assert len(whole.forms) == len(short.forms) == short.by_crashes[-1] < whole.by_crashes[-1]


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("steps", [1, 2, 3])
@pytest.mark.parametrize("situation", SITUATIONS)
def test_any_two_processes_at_once_and_any_crash(situation: str, steps: int):
    states = sum(search(situation, *pair, steps=steps) for pair in pairs(situation, steps))
    sys.stdout.write(f"{situation}, {steps} steps: {states:,} states\n")


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("situation", "names"),
    [
        ("to be taken", ("take", "sent", "sweep")),
        ("left to relays", ("relay", "sweep", "ack")),
        ("late", ("sweep", "sweep", "ok")),
        ("at work", ("ok", "cancel", "heartbeat")),
        ("at work", ("retry", "force", "sweep")),
        ("to be asked for", ("deliver", "ack", "cancel")),
        ("to be tried again", ("sweep", "sweep", "cancel")),
    ],
)
def test_three_processes_at_once_and_any_crash(situation: str, names: tuple[str, ...]):
    sys.stdout.write(f"{situation}, {names}: {search(situation, *names):,} states\n")


@pytest.mark.slow
def test_two_processes_that_submit_the_same_make_one_job():
    assert search_submissions() > 100


class Sleeper:
    """A process that goes on as far as it is told, and then sleeps."""

    def __init__(self, subject: ModelSubject, verb: Verb) -> None:
        self._subject = subject
        self._asking = verb(Here(subject.clock.wall_ms, "sleeper"))
        self._reply: Reply = None
        self.over = False

    def go_on(self, requests: int = 1_000) -> None:
        """Send so many requests, if there are as many."""
        try:
            for _each in range(requests):
                self._reply = self._subject.client.tables.answer(self._asking.send(self._reply))
        except StopIteration:
            self.over = True


@pytest.mark.parametrize("name", VERBS)
def test_a_process_that_slept_through_a_day_spoils_nothing(name: str):
    policy, setup = VERBS[name]
    for after in range(100):
        subject = ModelSubject()
        run = RunningProtocol(subject, 2, policy)
        sleeper = Sleeper(subject, asked(setup(run)))
        sleeper.go_on(after)
        if sleeper.over:
            return
        subject.clock.advance(86_400_000)
        mend(subject)
        sleeper.go_on()
        assert sleeper.over
        mend(subject)
        judge(subject)
        run_out(subject)
        judge(subject)
    raise AssertionError("it never ends")


@pytest.mark.parametrize("policy", [PUSHED, PULLED], ids=["pushed", "pulled"])
def test_a_submission_that_slept_is_one_job_or_none_and_is_told_so(policy):
    for after in range(100):
        subject, request = ModelSubject(), command(1, policy)
        sleeper = Sleeper(subject, asked(request))
        sleeper.go_on(after)
        if sleeper.over:
            return
        subject.clock.advance(1_000_000)
        mend(subject)
        try:
            sleeper.go_on()
        except StoreBusy:
            assert subject.store.protocol(request.job_id) is None
            assert not subject.rows(keys.DUE)
        else:
            assert subject.store.protocol(request.job_id) is not None
        mend(subject)
        judge(subject)
        run_out(subject)
        judge(subject)
    raise AssertionError("it never ends")


def test_a_process_that_slept_until_an_instant_came_again_deletes_nothing():
    """The next try is due at the very instant at which the lease would have ended."""
    subject = ModelSubject()
    run = RunningProtocol(subject)
    run.publish()
    run.ack()
    lease = run.picture.steps[0].lease_expires_at or 0
    subject.clock.advance(60_000)
    mend_now(subject)
    run.until(lease - 90_000)
    answer = AnswerStep(run.fence, RETRY, "lease-2")
    sleeper = Sleeper(subject, asked(answer))
    sleeper.go_on(4)  # it has read the job and its copy, written the truth and the fact
    other = subject.reopened()
    done(other.store, answer)  # sent again: it is a duplicate, and finishes what is behind
    run.subject = other
    run.until(lease - 30_000)
    mend_now(other)
    (row,) = subject.rows(keys.DUE)
    assert keys.due_instant(row.rk) == lease
    subject.clock.advance(60_000)
    sleeper.go_on()
    judge(other)


def mend_now(subject: ModelSubject) -> None:
    """Let the sweep do what is due at this instant; who makes a directive publishes it."""
    for job_id, _step in subject.store.due_steps(10):
        done(subject.store, ExpireStep(job_id, "lease-3", relays=True))


# --- orders that are wrong: each of these was believed to be right once


def _a_changed_copy_is_a_finished_one(seen: Seen) -> Asking[Seen]:
    values = tail.copy_values(seen.head)
    place = (seen.head.partition, keys.encoded(seen.head.job.job_id))
    reply = yield from write(Put(keys.JOBS, *place, values, seen.copy_etag))
    return seen._replace(copy_n=seen.head.n, copy_etag=reply.etags[0] if isinstance(reply, Wrote) else None)


_write, _make, _finish, _due_row, _look, _leave = (
    changing._write,
    submitting._make,
    tail.finish,
    keys.due_row,
    due.look,
    due._leave,
)


def _due_before_truth(seen: Seen, plan: ProtocolPlan | None, now: int, token: str) -> Asking[object]:
    after = changing.applied(seen, plan, now, token).head
    if after.former is not None:
        armed = tail.due_put(after)
        yield from write(Together((armed, Drop(keys.DUE, armed.pk, after.former))))
    return (yield from _write(seen, plan, now, token))


def _keys_used_twice(instant: int, job_id: str, n: int) -> str:
    return _due_row(instant, job_id, 0 * n)


def _later_before_taking(row: object, here: Here) -> Asking[Seen | None]:
    """Look at a job, and note at once that it is looked at again when all of its budget is over."""
    seen = yield from _look(row, here)  # type: ignore[arg-type]  # it is given a row
    if seen is None or seen.head.pending is None:
        return seen
    at = keys.due_row(here.now() + 86_400_000, seen.head.job.job_id, seen.head.n + 1)
    later = seen.head._replace(n=seen.head.n + 1, armed=at, former=seen.head.armed, redo=changing.HeadRedo())
    put = Put(
        keys.STEPS, keys.encoded(seen.head.job.job_id), keys.HEAD, changing.head_values(later), seen.etag
    )
    reply = yield from write(put)
    if not isinstance(reply, Wrote):
        return None
    return (yield from _finish(seen._replace(head=later, etag=reply.etags[0])))


def _copy_first(seen: Seen) -> Asking[Seen]:
    if seen.copy_n < seen.head.n:
        yield from tail._copy(seen)
    return (yield from _finish(seen))


def _truth_before_due(born: Seen, plan: ProtocolPlan, here: Here) -> Asking[object]:
    making = _make(born, plan, here)
    due = making.send(None)
    truth = making.send(Wrote(("1",)))
    reply = yield truth
    yield due
    try:
        while True:
            reply = yield making.send(reply)
    except StopIteration as ended:
        return ended.value


def _left_for_good(row: Row, _until: int) -> Asking[None]:
    return (yield from _leave(row, 10**14))


MUTANTS: dict[str, dict[object, dict[str, object]]] = {
    "a changed copy is a finished one": {tail: {"_copy": _a_changed_copy_is_a_finished_one}},
    "when to look is written before the truth": {changing: {"_write": _due_before_truth}},
    "keys of what is due are used twice": {keys: {"due_row": _keys_used_twice}},
    "the next look is written before a try is taken": {
        interleaving: {"look": _later_before_taking},
        due: {"look": _later_before_taking},
    },
    "the copy is written first": {
        tail: {"finish": _copy_first},
        changing: {"finish": _copy_first},
        submitting: {"finish": _copy_first},
        due: {"finish": _copy_first},
    },
    "the truth is written before when to look": {submitting: {"_make": _truth_before_due}},
    "a look is not moved to the relays of a directive": {changing: {"reader_of": lambda *_about: ""}},
    "what is left to relays is left for good": {due: {"_leave": _left_for_good}},
}


@contextmanager
def mutated(name: str) -> Iterator[None]:
    patch = pytest.MonkeyPatch()
    for module, functions in MUTANTS[name].items():
        for function, wrong in functions.items():
            patch.setattr(module, function, wrong)
    try:
        yield
    finally:
        patch.undo()


TRIALS: list[Callable[[], object]] = [
    lambda: search("to be taken", "sweep", "take"),
    lambda: search("to be taken", "relay", "sweep"),
    lambda: search("late", "sweep", "ok"),
    lambda: search("at work", "ok", "cancel"),
    lambda: search("to be tried again", "sweep", "sweep"),
    search_submissions,
    lambda: test_a_process_that_slept_through_a_day_spoils_nothing("taken"),
    lambda: test_a_process_that_slept_through_a_day_spoils_nothing("result"),
    lambda: test_a_process_that_slept_through_a_day_spoils_nothing("next attempt"),
    test_a_process_that_slept_until_an_instant_came_again_deletes_nothing,
]


@pytest.mark.slow
def test_the_right_orders_pass_all_that_the_wrong_ones_are_tried_by():
    for trial in TRIALS:
        trial()


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_order_of_writes_is_found(name: str):
    with mutated(name):
        for trial in TRIALS:
            try:
                trial()
            except AssertionError as error:
                sys.stdout.write(f"{name}: {error}\n"[:400])
                return
    raise AssertionError(f"nobody saw that {name}")


def test_a_name_of_a_verb_is_one_of_those_that_are_tried():
    run = RunningProtocol(ModelSubject())
    assert {"sweep", "ok", "take"} <= set(verbs(run))
