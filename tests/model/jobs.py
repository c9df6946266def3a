"""Jobs, segments, messages and groups as a state machine whose every decision is core's.

A state is a tuple of small tuples. What is durable (jobs, group, messages) changes only in a *bundle*; what
a worker knows (which attempt it runs, how far it got, what its sweep has read) is lost in a crash. Every
call of a workflow is two moves, *run* and *write*: leases end, messages arrive and others act between them.

`flaws` takes guards of the bundles away by name; see `mutants.py`.
"""

from __future__ import annotations

from typing import Any

from tests.model import promises
from tests.model.holding import Holding
from tests.model.rules import ROW_END, Rules
from tests.model.search import Violation
from tests.model.world import (
    ABSENT,
    ACKED,
    CANCELLED,
    CANCELLING,
    DROPPED,
    FAILED,
    IDLE,
    INBOX,
    JOINED,
    LEASE,
    MOVES,
    NOBODY,
    OPEN,
    QUEUED,
    RUN,
    RUNNING,
    SET,
    START,
    STATES,
    SUCCEEDED,
    SWEEP,
    UNOPENED,
    Draft,
    Group,
    Job,
    Shape,
    State,
)


class Stale(Exception):
    """The bundle was refused and changed nothing."""


class Jobs(Holding):
    """All moves of a small world."""

    def __init__(self, shape: Shape, rules: Rules, flaws: frozenset[str] = frozenset()) -> None:
        self.shape, self.rules, self.flaws = shape, rules, flaws
        self.resume = {m: message.kind in ("join", "again") for m, message in enumerate(shape.messages)}
        self.signals = [m for m, message in enumerate(shape.messages) if message.kind in ("signal", "result")]
        self.timers = {
            message.answers: m for m, message in enumerate(shape.messages) if message.kind == "timer"
        }
        self.agains = {
            message.answers: m for m, message in enumerate(shape.messages) if message.kind == "again"
        }
        self.join = next((m for m, message in enumerate(shape.messages) if message.kind == "join"), -1)

    # What a search asks.

    def initial(self) -> State:
        shape = self.shape
        children = (Job(ready=0),) * shape.children
        deliveries = (shape.deliveries for _ in self.signals)
        env = (shape.crashes, shape.zombies, shape.cancels, *deliveries, shape.pauses)
        messages = ((ABSENT, 0),) * len(shape.messages)
        return ((Job(), *children), Group(), messages, (), (IDLE,) * shape.workers, env)

    def final(self, state: State) -> bool:
        return state[0][0].state >= SUCCEEDED

    def helpful(self, label: tuple[Any, ...]) -> bool:
        return label[0] not in {"crash", "cancel", "fail", "pause"}

    def ledgers(self, state: State) -> tuple[int, ...]:
        return (*(job.start for job in state[0]), state[1].ledger, *(ledger for _, ledger in state[2]))

    def successors(self, state: State) -> list[tuple[tuple[Any, ...], State]]:
        found: list[tuple[tuple[Any, ...], State]] = []
        for w, worker in enumerate(state[4]):
            if worker == IDLE:
                self._idle_moves(state, w, found)
            elif worker[0] == RUN:
                self._running_moves(state, w, worker, found)
            else:
                found.append(self._reclaimed(state, w, worker))
            if worker != IDLE and state[5][0]:
                found.append((("crash", w), self._without(state, w, crash=1)))
        self._outside_moves(state, found)
        if self.shape.pauses:
            self._hold_moves(state, found)
        return found

    def check(self, state: State) -> None:
        promises.check(self, state)

    # What workers do.

    def _idle_moves(self, state: State, w: int, found: list[Any]) -> None:
        jobs, messages = state[0], state[2]
        for j, job in enumerate(jobs):
            if self._claimable(job, messages):
                found.append((("claim", w, j), self._claim(state, w, j)))
            verdict = self._verdict(job) if job.attempt else "LEAVE"
            if verdict != "LEAVE":
                draft = Draft(state)
                draft.workers[w] = (SWEEP, j, job.attempt, verdict, job.driver)
                found.append((("look", w, j), draft.freeze()))

    def _claimable(self, job: Job, messages: tuple[Any, ...]) -> bool:
        if job.state >= SUCCEEDED:
            return False
        if job.hold and "a held job is not claimed" not in self.flaws:
            return False
        if "a claim asks whether a job is free" in self.flaws:
            return job.attempt < 3
        if self.rules.is_live(0, ROW_END if job.live else None):
            return False
        return job.ready == 1 or (job.ready == 2 and self._timer_due(job, messages))

    def _timer_due(self, job: Job, messages: tuple[Any, ...]) -> bool:
        timer = self.timers.get(job.place)
        return timer is not None and messages[timer][0] == INBOX

    def _verdict(self, job: Job) -> str:
        """Return what a sweep would do with the newest attempt; it looks at every one."""
        charged = job.charged + ("budget counts before" not in self.flaws)
        status = "COMMITTED" if job.committed else "IN_PROGRESS" if job.live else "ABORTED"
        verdict = self.rules.reclaim(
            "DONE" if job.done else status,
            job.live != 1,
            job.state == CANCELLING,
            charged,
            self.shape.budget,
        )
        if job.live != 2 and verdict != "LEAVE":
            raise Violation(f"a sweep wants to {verdict} an attempt that is live or has ended")
        if job.live == 2 and job.state == CANCELLING and verdict != "SETTLE":
            raise Violation(f"a job that is being cancelled is to {verdict}")
        if job.live == 2 and job.committed and verdict != "FINISH":
            raise Violation(f"a committed attempt is to {verdict}")
        if job.live == 2 and job.intent == 1:
            doubt = self.rules.reclaim("COMMITTED", True, False, charged, self.shape.budget, True)
            if doubt != "IN_DOUBT":
                raise Violation(f"an intent without a result is to {doubt}: nobody knows whether it happened")
        return verdict

    def _running_moves(self, state: State, w: int, worker: tuple[Any, ...], found: list[Any]) -> None:
        _, j, attempt, place, phase = worker[:5]
        job = state[0][j]
        if phase == 0:
            draft = Draft(state)
            if self._op(j, place)[0] == "effect" and len(worker) > 5:
                draft.jobs[j] = job._replace(calls=job.calls + 1)
            seen = self._seen(state, j, attempt, place)
            draft.workers[w] = (RUN, j, attempt, place, 1, *(worker[5:] or seen))
            found.append((("run", w, j), draft.freeze()))
            return
        found.append(self._written(state, w, worker, "write"))
        if job.state == CANCELLING and job.attempt == attempt and job.live:
            found.append(self._written(state, w, worker, "stop"))
        if self.shape.pauses and j == 0 and self._stops(job):
            found.append(self._written(state, w, worker, "rest"))
        if j and self.shape.child_fails:
            found.append(self._written(state, w, worker, "fail"))

    def _seen(self, state: State, j: int, attempt: int, place: int) -> tuple[Any, ...]:
        """Return what a worker remembers from before its bundle; nothing, unless a guard is missing."""
        if "fence in the bundle" in self.flaws:
            return (self._holds(state[0][j], attempt),)
        if "inbox in the bundle" in self.flaws and j == 0 and self._op(j, place)[0] in ("wait", "join"):
            return (self._answer(Draft(state), place),)
        return ()

    def _holds(self, job: Job, attempt: int) -> bool:
        row = None if job.state >= SUCCEEDED else (job.attempt, LEASE)
        status = "IN_PROGRESS" if job.live else "ABORTED"
        return self.rules.held(row, attempt, LEASE, status, job.live == 2)

    def _op(self, j: int, place: int) -> tuple[Any, ...]:
        script = self.shape.child_script if j else self.shape.script
        return script[place]

    def _written(self, state: State, w: int, worker: tuple[Any, ...], verb: str) -> tuple[Any, State]:
        """Write the bundle of a worker's call; a stale one changes nothing and its worker gives up."""
        _, j, attempt = worker[:3]
        draft = Draft(state)
        try:
            if "fence in the bundle" in self.flaws:
                held = worker[5]
            else:
                held = "fence" in self.flaws or self._holds(draft.jobs[j], attempt)
            if not held:
                raise Stale
            outcome = self._bundle(draft, w, worker, verb)
        except Stale:
            return (verb, w, j, "stale"), self._without(state, w)
        job = state[0][j]
        if not (job.live == 1 and job.attempt == attempt and job.state < SUCCEEDED):
            raise Violation(f"a stale report changed something: {verb} of attempt {attempt} of job {j}")
        return (verb, w, j, outcome), draft.freeze()

    def _bundle(self, draft: Draft, w: int, worker: tuple[Any, ...], verb: str) -> str:
        _, j, attempt, place, _phase = worker[:5]
        op = self._op(j, place)
        if verb == "stop":
            self._end(draft, j, CANCELLED)
        elif verb == "rest":
            self._rest(draft, j)
        elif verb == "fail":
            self._end(draft, j, FAILED, "FATAL")
        elif op[0] == "tx":
            job = draft.jobs[j]
            draft.jobs[j] = job._replace(place=place + 1, charged=0, effects=job.effects + 4**place)
            draft.workers[w] = (RUN, j, attempt, place + 1, 0)
            return "tx"
        elif op[0] == "spawn":
            self._spawn(draft, j, place)
            draft.workers[w] = (RUN, j, attempt, place + 1, 0)
            return "spawn"
        elif op[0] in ("wait", "join"):
            return self._await(draft, w, worker)
        elif op[0] == "effect":
            return self._effect(draft, w, worker)
        elif op[0] == "again" and draft.jobs[j].state == CANCELLING:
            self._end(draft, j, CANCELLED)
        elif op[0] == "again":
            self._turn(draft, j, place)
        elif self.shape.two_bundles and not draft.jobs[j].committed:
            draft.jobs[j] = draft.jobs[j]._replace(committed=1)
            draft.workers[w] = (RUN, j, attempt, place, 0)
            return "commit"
        else:
            self._end(draft, j, SUCCEEDED)
        draft.workers[w] = IDLE
        return str(op[0])

    def _effect(self, draft: Draft, w: int, worker: tuple[Any, ...]) -> str:
        """Write the intent, then call, then write the result; ask about an intent of somebody else."""
        _, j, attempt, place, _phase = worker[:5]
        job = draft.jobs[j]
        if job.intent == 0:
            draft.jobs[j] = job._replace(intent=1, charged=0)
            draft.workers[w] = (RUN, j, attempt, place, 0, "intended")
            return "intent"
        if job.intent == 1 and len(worker) < 6 and not job.calls and "ask when in doubt" not in self.flaws:
            # The probe says that it did not happen: it is called now, under the same intent.
            draft.workers[w] = (RUN, j, attempt, place, 0, "intended")
            return "probe: no"
        if job.intent == 1 and len(worker) < 6 and "ask when in doubt" in self.flaws:
            draft.workers[w] = (RUN, j, attempt, place, 0, "intended")
            return "guess"
        draft.jobs[j] = job._replace(intent=2, place=place + 1, charged=0)
        draft.workers[w] = (RUN, j, attempt, place + 1, 0)
        return "result"

    # Bundles.

    def _claim(self, state: State, w: int, j: int) -> State:
        draft, rules = Draft(state), self.rules
        job = draft.jobs[j]
        if job.hold:
            raise Violation(f"job {j} is held, and somebody claims it")
        driver, start, wait = START, job.start, job.wait
        if not job.acked:
            _verdict, _root, start = rules.leg2(rules.complete, start)
        else:
            driver = self._driver(draft, job)
            if driver != NOBODY:
                wait = self._enter(draft, job, driver)
        after = CANCELLING if job.state == CANCELLING else RUNNING
        draft.jobs[j] = job._replace(
            state=after, attempt=job.attempt + 1, live=1, ready=0, start=start, driver=driver, wait=wait
        )
        if "acknowledge after the work" in self.flaws:
            self._acknowledge_early(draft, j, driver)
        # Spawning leaves no record before the join, so a replay does it again.
        again = job.place > 0 and self._op(j, job.place - 1)[0] == "spawn"
        draft.workers[w] = (RUN, j, job.attempt + 1, job.place - again, 0)
        return draft.freeze()

    def _driver(self, draft: Draft, job: Job) -> int:
        """Return the message that drives this claim: one that has begun, else the oldest that is due."""
        ready = [
            m
            for m in draft.order
            if draft.messages[m][1] or self.resume[m] or (job.wait and self._fits(m, job.place))
        ]
        chosen = self.rules.first(tuple(draft.messages[m][1] > 0 for m in ready))
        return NOBODY if chosen is None else ready[chosen]

    def _fits(self, m: int, place: int) -> bool:
        message, op = self.shape.messages[m], self.shape.script[place]
        if message.kind == "signal":
            return op[0] == "wait" and op[1] == message.answers
        return message.answers == place

    def _enter(self, draft: Draft, job: Job, m: int) -> int:
        status, ledger = draft.messages[m]
        root = self.resume[m] or not self._fits(m, job.place) or not job.wait
        verdict, activity, entered = self.rules.leg2(self.rules.complete if root else job.wait, ledger)
        if verdict != "RUN":
            raise Violation(f"message {m} drives a claim although its verdict is {verdict}")
        draft.messages[m] = (status, entered)
        return job.wait if root else activity

    def _acknowledge_early(self, draft: Draft, j: int, driver: int) -> None:
        if driver >= 0:
            self._ack(draft, driver)
        elif driver == START:
            draft.jobs[j] = draft.jobs[j]._replace(acked=1)

    def _answer(self, draft: Draft, place: int) -> int | None:
        """Return the message that answers this wait, if one is there."""
        rules = self.rules
        inbox = [m for m in draft.order if self._fits(m, place) and not rules.work_done(draft.messages[m][1])]
        suspend, _answered = rules.suspend("this", ("this",) * len(inbox) or ("another",))
        chosen = rules.first(tuple(draft.messages[m][1] > 0 for m in inbox))
        if suspend is not (chosen is None):
            raise Violation(f"suspend is {suspend} with the messages {inbox} in the inbox")
        return None if chosen is None else inbox[chosen]

    def _await(self, draft: Draft, w: int, worker: tuple[Any, ...]) -> str:
        _, j, attempt, place, _phase = worker[:5]
        job, group = draft.jobs[j], self._op(j, place)[0] == "join"
        if job.hold:
            self._rest(draft, j)
            draft.workers[w] = IDLE
            return "held"
        timer = self.timers.get(place)
        opened = group or job.wait > 0
        if timer is not None and not opened:
            draft.messages[timer] = (SET, 0)
        early = "inbox in the bundle" in self.flaws
        answer = worker[5] if early else self._answer(draft, place)
        if answer is None:
            self._suspend(draft, j, place, opened=opened)
            draft.workers[w] = IDLE
            return "suspended"
        self._take(draft, j, place, answer, opened=opened)
        draft.workers[w] = (RUN, j, attempt, place + 1, 0)
        return f"took {answer}"

    def _opened_wait(self) -> int:
        rules = self.rules
        _verdict, ledger = rules.leg1(0)
        return rules.complete_leg1(ledger)

    def _take(self, draft: Draft, j: int, place: int, m: int, *, opened: bool) -> None:
        rules, job = self.rules, draft.jobs[j]
        status, ledger = draft.messages[m]
        if status != INBOX or rules.work_done(ledger):
            raise Violation(f"message {m} is taken twice")
        if self._op(j, place)[0] == "join":
            group = draft.group
            enough = group.semaphore <= self.shape.threshold or (group.failed and self.shape.fail_fast)
            if group.state != OPEN or not enough:
                raise Violation("a group is joined that is not closed")
            joined = group._replace(state=JOINED, ledger=rules.mark_activity(group.ledger, "tasks"))
            draft.group = joined._replace(joins=group.joins + 1)
        if not ledger:
            base = job.wait if opened and job.wait else self._opened_wait()
            _verdict, _activity, ledger = rules.leg2(rules.complete if self.resume[m] else base, 0)
        ledger = rules.mark_work(ledger)
        draft.messages[m] = (status, ledger)
        if "losers are acknowledged" not in self.flaws:
            for other, message in enumerate(self.shape.messages):
                lost = message.kind in ("timer", "result") and message.answers == place and other != m
                if lost and draft.messages[other][0] in (SET, INBOX):
                    self._ack(draft, other)
        semaphore = job.semaphore
        if m != job.driver:
            semaphore, hit = rules.count(semaphore, -1 if opened else 0, 0)
            draft.messages[m] = (status, rules.mark_children(ledger, hit))
            self._ack(draft, m)
        draft.jobs[j] = job._replace(semaphore=semaphore, place=place + 1, wait=0, charged=0)

    def _suspend(self, draft: Draft, j: int, place: int, *, opened: bool) -> None:
        job = draft.jobs[j]
        if not opened:
            job = job._replace(wait=self._opened_wait())
        draft.jobs[j] = job._replace(charged=0)
        self._settle(draft, j, opened=0 if opened else 1)
        timer = self.timers.get(place)
        timed = timer is not None and draft.messages[timer][0] in (SET, INBOX)
        ready = 2 if timed else 0
        draft.jobs[j] = draft.jobs[j]._replace(live=0, ready=ready, driver=NOBODY, hold=self._kept(job))

    def _settle(self, draft: Draft, j: int, *, opened: int, finished: bool = False) -> None:
        """Do step 2 of the message that drove the segment, if it has answered something."""
        rules, job = self.rules, draft.jobs[j]
        driver = job.driver
        starts = driver == START
        ledger = job.start if starts else draft.messages[driver][1] if driver >= 0 else 0
        taken = driver >= 0 and (rules.work_done(ledger) or self.shape.messages[driver].kind == "again")
        delta = rules.settle(starts, taken, opened, finished) if driver != NOBODY else None
        if delta is None:
            draft.jobs[j] = job._replace(semaphore=job.semaphore + opened)
            return
        semaphore, hit = rules.count(job.semaphore, delta, 0)
        ledger = ledger if rules.work_done(ledger) else rules.mark_work(ledger)
        ledger = rules.mark_children(ledger, hit)
        if starts:
            draft.jobs[j] = job._replace(semaphore=semaphore, start=ledger, acked=1)
            return
        draft.messages[driver] = (draft.messages[driver][0], ledger)
        self._ack(draft, driver)
        draft.jobs[j] = job._replace(semaphore=semaphore)

    def _turn(self, draft: Draft, j: int, place: int) -> None:
        """End the segment by a turn of the job: what the old turn had open is dropped, signals are kept."""
        still_open = self._drop(draft, j, keep_signals=True)
        again = self.agains[place]
        draft.messages[again] = (INBOX, 0)
        draft.order += (again,)
        self._settle(draft, j, opened=1 - still_open, finished=True)
        draft.jobs[j] = draft.jobs[j]._replace(
            live=0, ready=1, driver=NOBODY, place=place + 1, charged=0, wait=0
        )

    def _drop(self, draft: Draft, j: int, *, keep_signals: bool = False) -> int:
        """Drop what is open and every message but the driver; return how many activities were open."""
        if j:
            return 0
        job, group = draft.jobs[j], draft.group
        still_open = int(job.wait > 0) + int(group.state == OPEN)
        if group.state == OPEN:
            draft.group = group._replace(state=DROPPED)
        for m, (status, _ledger) in enumerate(draft.messages):
            kept = keep_signals and self.shape.messages[m].kind == "signal"
            if status in (SET, INBOX) and m != job.driver and not kept:
                self._ack(draft, m)
        return still_open

    def _end(self, draft: Draft, j: int, wanted: int, reason: str = "") -> None:
        """Close a job: its driver is the closer, its parent counts it."""
        rules, job = self.rules, draft.jobs[j]
        cancelling = job.state == CANCELLING and "a cancelled job stays cancelled" not in self.flaws
        attempt = "DONE" if wanted == SUCCEEDED else "ABORTED"
        state, status, cancelled = rules.end(STATES[wanted], attempt, cancelling)
        if (STATES[job.state], state) not in MOVES:
            raise Violation(f"no job moves from {STATES[job.state]} to {state}")
        still_open = self._drop(draft, j)
        driver = job.driver
        ledger = job.start if driver == START else draft.messages[driver][1] if driver >= 0 else 0
        taken = driver >= 0 and (rules.work_done(ledger) or self.shape.messages[driver].kind == "again")
        if driver == NOBODY:
            raise Violation("a job ends and no message drove it: nobody can be the closer")
        semaphore, hit = rules.count(job.semaphore, rules.close(driver == START, taken, still_open), 0)
        ledger = ledger if rules.work_done(ledger) else rules.mark_work(ledger)
        ledger = rules.mark_children(ledger, hit)
        if rules.step(ledger) == "TASKS":
            ledger = rules.mark_tasks(ledger)
        if driver == START:
            job = job._replace(start=ledger, acked=1)
        else:
            draft.messages[driver] = (draft.messages[driver][0], ledger)
            self._ack(draft, driver)
        ended = "CANCELLED" if cancelled else reason
        draft.jobs[j] = job._replace(
            state=STATES.index(state),
            live=0,
            ready=0,
            semaphore=semaphore,
            wait=0,
            done=job.done + (status == "DONE"),
            ended=ended,
            driver=NOBODY,
            hold=0,
            wish=0,
        )
        if j:
            self._count_child(draft, state != "SUCCEEDED")

    def _spawn(self, draft: Draft, j: int, place: int) -> None:
        if draft.group.state != UNOPENED and "a group opens once" not in self.flaws:
            return
        draft.group = Group(OPEN, self._opened_wait(), self.shape.children, 0)
        job = draft.jobs[j]
        draft.jobs[j] = job._replace(semaphore=job.semaphore + 1, place=place + 1, charged=0)
        for child in range(1, len(draft.jobs)):
            if draft.jobs[child].state == QUEUED and not draft.jobs[child].live:
                draft.jobs[child] = draft.jobs[child]._replace(ready=1)

    def _count_child(self, draft: Draft, failed: bool) -> None:
        """Count a child that has ended; whoever closes the group leaves the word for its parent, once."""
        rules, group, shape = self.rules, draft.group, self.shape
        if group.state != OPEN and "a closed group counts nobody" not in self.flaws:
            return
        if group.state != OPEN:
            raise Violation("a group that was joined or dropped is counted down")
        verdict, activity, guid = rules.leg2(group.ledger, 0)
        if verdict != "RUN":
            raise Violation(f"a child's end is answered with {verdict}")
        activity = rules.mark_activity(activity, "work")
        semaphore, hit = rules.count(group.semaphore, -1, shape.threshold)
        guid = rules.mark_children(rules.mark_work(guid), hit)
        activity = rules.mark_activity(activity, "children")
        draft.group = group._replace(ledger=activity, semaphore=semaphore, failed=group.failed + failed)
        if rules.step(guid) == "TASKS" or (failed and shape.fail_fast):
            self._deliver(draft, self.join)

    def _ack(self, draft: Draft, m: int) -> None:
        draft.messages[m] = (ACKED, draft.messages[m][1])
        draft.order = tuple(other for other in draft.order if other != m)

    def _reclaimed(self, state: State, w: int, worker: tuple[Any, ...]) -> tuple[Any, State]:
        """Write what a sweep decided, if the attempt is still the one that it looked at."""
        _, j, attempt, verdict, driver = worker
        job = state[0][j]
        same = job.attempt == attempt and job.live == 2
        if "reclaim looks again" in self.flaws:
            same = job.state < SUCCEEDED
        if not same or verdict == "LEAVE":
            return ("reclaim", w, j, "stale"), self._without(state, w)
        draft = Draft(state)
        draft.workers[w] = IDLE
        if verdict == "SETTLE":
            draft.jobs[j] = job._replace(driver=driver)
            self._end(draft, j, CANCELLED)
        elif verdict == "RETRY":
            draft.jobs[j] = job._replace(
                live=0, ready=1, charged=job.charged + 1, driver=NOBODY, hold=self._kept(job)
            )
        elif verdict == "FINISH":
            draft.jobs[j] = job._replace(driver=driver)
            self._end(draft, j, SUCCEEDED)
        elif verdict == "FAIL":
            draft.jobs[j] = job._replace(charged=job.charged + 1, driver=driver)
            self._end(draft, j, FAILED)
        else:
            raise Violation(f"a sweep of a running attempt says {verdict}")
        if not (job.attempt == attempt and job.live == 2):
            raise Violation(f"a sweep took attempt {job.attempt} from its holder; it had looked at {attempt}")
        return ("reclaim", w, j, verdict), draft.freeze()

    def _without(self, state: State, w: int, crash: int = 0) -> State:
        draft = Draft(state)
        draft.workers[w] = IDLE
        draft.env[0] -= crash
        return draft.freeze()
