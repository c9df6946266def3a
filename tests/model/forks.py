"""Forks and retries of one job: who asks, who asks again because an answer was lost, and what is made.

The job records its steps one by one and then succeeds or fails. Askers read, and later write their bundle,
so that others act in between; an answer may be lost, and then the same wish is said again. A new submission
may take the key of the job when that has ended. Beside the rows the state counts which steps every new job
has really done.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tests.model.rules import Rules
from tests.model.search import Violation

STEPS = 2
RUNS, SUCCEEDED, FAILED = range(3)
ASKING, LOOKED, ANSWERED = range(3)
TAKEN = -1


class Wish(NamedTuple):
    """A fork at a step (1 is the first), under an id or not; or a retry."""

    id: str | None
    at: int
    retry: bool = False


RETRY = Wish(None, STEPS, retry=True)


class Shape(NamedTuple):
    """Who wants what, how many answers are lost, and whether another submission may take the key."""

    wishes: tuple[Wish, ...]
    losses: int = 1
    reuse: bool = False


class Original(NamedTuple):
    """The job that is forked: its row, and who its key belongs to (0 is itself, n the n-th new job).

    TAKEN: a job has it that was submitted under the key.
    """

    state: int = RUNS
    recorded: int = 0
    retried_as: int = 0
    key_of: int = 0


class New(NamedTuple):
    """A job that was made from it: for which wish, what it kept, and the steps that it has done itself."""

    wish: Wish
    kept: int
    place: int
    done: tuple[int, ...] = ()


class Forks:
    """All moves of the job, of its forks, and of those who ask for them."""

    def __init__(self, shape: Shape, rules: Rules, flaws: frozenset[str] = frozenset()) -> None:
        self.shape, self.rules, self.flaws = shape, rules, flaws

    def initial(self) -> Any:
        askers = tuple((ASKING, "", 0) for _ in self.shape.wishes)
        return Original(), (), (), askers, self.shape.losses

    def final(self, state: Any) -> bool:
        original, made, _ids, askers, _losses = state
        idle = all(phase == ANSWERED for phase, _, _ in askers)
        return original.state != RUNS and idle and all(job.place == STEPS for job in made)

    def helpful(self, label: Any) -> bool:
        return label[0] not in ("lose", "take the key")

    def ledgers(self, state: Any) -> tuple[int, ...]:
        return (state[0].recorded,)

    def successors(self, state: Any) -> list[tuple[Any, Any]]:
        original, made, ids, askers, losses = state
        found: list[tuple[Any, Any]] = []
        if original.state == RUNS and original.recorded < STEPS:
            found.append((("step",), (original._replace(recorded=original.recorded + 1), *state[1:])))
        if original.state == RUNS and original.recorded:
            ends = (SUCCEEDED, FAILED) if original.recorded == STEPS else (FAILED,)
            found += [(("end", end), (original._replace(state=end), *state[1:])) for end in ends]
        if self.shape.reuse and original.state != RUNS and original.key_of == 0:
            found.append((("take the key",), (original._replace(key_of=TAKEN), *state[1:])))
        for n, job in enumerate(made):
            if job.place < STEPS:
                after = job._replace(place=job.place + 1, done=(*job.done, job.place))
                found.append((("go on", n), (original, put(made, n, after), ids, askers, losses)))
        for n, (phase, seen, answer) in enumerate(askers):
            wish = self.shape.wishes[n]
            if phase == ASKING and self._never(original, wish):
                taken = self._verdict(state, wish) == "CONFLICT"
                said = "CONFLICT" if taken else "NO_SUCH_STEP"
                refused = put(askers, n, (ANSWERED, said, 0))
                found.append((("refuse", n, said), (original, made, ids, refused, losses)))
            elif phase == ASKING and (wish.retry or original.recorded >= wish.at):
                looked = put(askers, n, (LOOKED, self._verdict(state, wish), 0))
                found.append((("look", n), (original, made, ids, looked, losses)))
            elif phase == LOOKED:
                found.append(self._written(state, n, wish, seen))
            elif phase == ANSWERED and losses:
                again = put(askers, n, (ASKING, "", 0))
                found.append((("lose", n, answer), (original, made, ids, again, losses - 1)))
        return found

    def _never(self, original: Original, wish: Wish) -> bool:
        """Tell whether the job has ended without having come to the step that somebody names."""
        return not wish.retry and original.state != RUNS and original.recorded < wish.at

    def _verdict(self, state: Any, wish: Wish) -> str:
        original, _made, ids, _askers, _losses = state
        reserved = dict(ids).get(wish.id)
        content = None if wish.id is None else f"at {wish.at}"
        before = None if reserved is None else reserved[0]
        failed = original.state == FAILED
        moved = original.key_of != 0
        return str(self.rules.fork(wish.retry, failed, original.retried_as > 0, moved, before, content))

    def _written(self, state: Any, n: int, wish: Wish, seen: str) -> tuple[Any, Any]:
        original, made, ids, askers, losses = state
        early = "a fork is decided in its bundle" in self.flaws
        verdict = seen if early else self._verdict(state, wish)
        answer = 0
        if verdict == "NOT_FAILED" and original.state == FAILED and not early:
            raise Violation("a job that has failed is not retried")
        if verdict == "KEY_MOVED" and original.key_of != TAKEN and not early:
            raise Violation("a job that has its key is not retried")
        if verdict == "KNOWN":
            answer = original.retried_as if wish.retry else dict(ids)[wish.id][1]
        elif verdict == "MAKE":
            places = tuple(range(1, original.recorded + 1))
            kept = self.rules.kept(places, None if wish.retry and original.recorded < wish.at else wish.at)
            made = (*made, New(wish, kept, kept))
            answer = len(made)
            if wish.retry:
                original = self._took_place(original, answer)
            elif wish.id is not None and "a fork reserves its id" not in self.flaws:
                ids = (*ids, (wish.id, (f"at {wish.at}", answer)))
        done = put(askers, n, (ANSWERED, verdict, answer))
        return ("write", n, verdict), (original, made, ids, done, losses)

    def _took_place(self, original: Original, job: int) -> Original:
        if "a retry is known to the job that failed" not in self.flaws:
            original = original._replace(retried_as=job)
        # The key is moved from the job that failed, and from no other.
        moves = original.key_of == 0 and "a retry moves the key" not in self.flaws
        return original._replace(key_of=job) if moves else original

    def check(self, state: Any) -> None:
        original, made, _ids, askers, _losses = state
        retries = [n for n, job in enumerate(made, 1) if job.wish.retry]
        if len(retries) > 1:
            raise Violation(f"{len(retries)} jobs took the place of one")
        if retries and original.state != FAILED:
            raise Violation("a job that has not failed was retried")
        place = (retries or [0])[0]
        if original.retried_as != place or original.key_of not in (place, TAKEN):
            raise Violation("the key, or the job that failed, does not know who took its place")
        if place and original.key_of == TAKEN:
            raise Violation("two jobs are under one key: the one that took it, and a retry")
        under = [job.wish.id for job in made if job.wish.id is not None]
        if len(set(under)) != len(under):
            raise Violation("two forks were made under one id")
        for job in made:
            if job.kept != min(job.wish.at - 1, original.recorded) or any(at < job.kept for at in job.done):
                raise Violation(f"a fork at {job.wish.at} kept {job.kept} records and did {job.done}")
            if job.place == STEPS and job.done != tuple(range(job.kept, STEPS)):
                raise Violation(f"a fork that kept {job.kept} records did {job.done}")
        for (phase, verdict, answer), wish in zip(askers, self.shape.wishes, strict=True):
            if phase == ANSWERED:
                self._check_answer(original, made, verdict, answer, wish)

    def _check_answer(self, original: Original, made: Any, verdict: str, answer: int, wish: Wish) -> None:
        if answer and made[answer - 1].wish != wish:
            raise Violation(f"who asked for {wish} was given {made[answer - 1].wish}")
        refused = ("NOT_FAILED", "KEY_MOVED") if wish.retry else ("CONFLICT", "NO_SUCH_STEP")
        if not answer and verdict not in refused:
            raise Violation(f"{wish} was answered with {verdict} and no job")
        if verdict == "CONFLICT" and not any(job.wish.id == wish.id and job.wish != wish for job in made):
            raise Violation(f"{wish} was refused, and nobody has asked for anything else under its id")


def put(values: tuple[Any, ...], n: int, value: Any) -> tuple[Any, ...]:
    return (*values[:n], value, *values[n + 1 :])
