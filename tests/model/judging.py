"""Who catches a mutant: the first small world in which a promise breaks or a state is stuck.

A guard of a verb may stand where no world comes, because no history does. Tables written by hand come there.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from tests.core.verb_answers.tables import TABLES
from tests.model import protocol_rules, protocols
from tests.model.configurations import SMALL, AnyShape, model_of
from tests.model.mutants import Mutant
from tests.model.rules import Rules, load
from tests.model.search import Endless, explore
from tests.model.world import Shape

# What worlds of messages and of forks call, too; a mutant of anything else is looked for among jobs alone.
SHARED = ("digits", "decisions", "job_view", "forking", "pictures")

# Most mutants break within a few states of the right world: all get a short look before one gets a long one.
LOOKS = (50, 400, 1_300, 60_000)
# A state of a world with remote steps costs about so many of another one.
DEAR = 8


class Caught(NamedTuple):
    """A mutant and the world that caught it; an empty name means that nobody did."""

    mutant: str
    by: str
    states: int
    why: str

    def __str__(self) -> str:
        return f"{self.mutant}\n    caught by {self.by or 'NOBODY'} after {self.states:,} states: {self.why}"


class Judges:
    """The small worlds, in the order in which they are asked.

    Neighbours in the list of mutants are mostly caught by the same world: it is asked first, unless it is one
    of those with remote steps, which are dear.
    """

    def __init__(self) -> None:
        self._order = list(SMALL)

    def judge(self, mutant: Mutant, looks: tuple[int, ...] = LOOKS) -> Caught:
        """Search the small worlds until one of them breaks."""
        caught = _judge(mutant, {name: SMALL[name] for name in self._order}, looks)
        if caught.by in SMALL and not _is_dear(caught.by):
            self._order.remove(caught.by)
            self._order.insert(0, caught.by)
        return caught


def _is_dear(world: str) -> bool:
    return world.startswith("remote step")


def _judge(mutant: Mutant, order: dict[str, AnyShape], looks: tuple[int, ...]) -> Caught:
    try:
        rules = Rules(load(mutant.changed()))
    except Exception as error:  # noqa: BLE001 (a module that cannot even be loaded is noticed)
        return Caught(mutant.name, "loading it", 0, str(error))
    verbs = mutant.tree is not None and mutant.module not in SHARED
    worlds = {name: shape for name, shape in order.items() if isinstance(shape, Shape) or not verbs}
    for limit in looks:
        for name, shape in worlds.items():
            most = limit // DEAR if _is_dear(name) and limit != LOOKS[-1] else limit
            try:
                report = explore(model_of(shape, rules, mutant.flaws), most)
            except Endless as endless:
                if limit == LOOKS[-1]:
                    return Caught(mutant.name, name, limit, str(endless))
                continue
            if report.broken:
                return Caught(mutant.name, name, report.states, report.broken.splitlines()[0])
    return Caught(mutant.name, "", 0, "every promise holds without this guard")


_TABLES = (
    *(f"tests.core.verb_answers.{name}" for name in ("rows", "told", *TABLES)),
    "tests.core.remote_ends",
)
_ANSWERS = ("tests.core.effect_situations", "tests.core.effect_answers")
_SITUATIONS = range(6_000)


def judge_effect(mutant: Mutant) -> Caught:
    """Ask for what comes of requests about effects, until an answer is another than the table says."""
    answers = load(mutant.changed(), *_ANSWERS).effect_answers
    return _asked(mutant, {f"situation {number}": partial(answers.judged, number) for number in _SITUATIONS})


def judge_verb(mutant: Mutant) -> Caught:
    """Ask all situations of the tables, until what comes of one is another than its table says."""
    made = load(mutant.changed(), *_TABLES)
    asked = {
        f"{table}: {one.name}": partial(made.told.judged, one)
        for table in TABLES
        for one in getattr(made, table).CASES
    }
    return _asked(mutant, asked | {"remote ends": made.remote_ends.judged})


# Small enough to be searched for every mutant, large enough to miss each guard; and with how many states a
# world has no end.
PROTOCOLS = {
    protocols.Shape(1, pull=True): 500,
    protocols.Shape(2, pull=True, again=0): 400,
    protocols.Shape(1, again=0): 3_000,
    protocols.Shape(2, again=0): 40_000,
    protocols.Shape(1, again=1): 30_000,
    protocols.Shape(1, again=0, relays=False): 3_000,
    protocols.Shape(2, pull=True, again=1, holds=True): 4_000,
    protocols.Shape(1, again=1, holds=True): 60_000,
}


def judge_protocol(mutant: Mutant) -> Caught:
    """Ask the table of protocol jobs, then search their small worlds until one of them breaks."""
    try:
        core = protocol_rules.load(mutant.changed(), "tests.core.verb_answers.protocols")
    except Exception as error:  # noqa: BLE001 (a module that cannot even be loaded is noticed)
        return Caught(mutant.name, "loading it", 0, str(error))
    table = core.protocols
    caught = _asked(mutant, {one.name: partial(table.judged, one) for one in table.CASES})
    for shape, limit in () if caught.by else PROTOCOLS.items():
        try:
            report = explore(protocols.ProtocolWorld(core, shape), limit=limit)
        except Endless as error:
            return Caught(mutant.name, str(shape), limit, str(error))
        except Exception as error:  # noqa: BLE001 (the first state of a world cannot be made)
            return Caught(mutant.name, str(shape), 0, repr(error))
        if report.broken:
            return Caught(mutant.name, str(shape), report.states, report.broken.splitlines()[0])
    return caught


def _asked(mutant: Mutant, questions: dict[str, Callable[[], object]]) -> Caught:
    for name, ask in questions.items():
        try:
            ask()
        except Exception as error:  # noqa: BLE001 (a verb that raises is not total, whatever it raises)
            return Caught(mutant.name, name, 0, f"{type(error).__name__}: {error}"[:200])
    return Caught(mutant.name, "", 0, "every answer is the same without this guard")
