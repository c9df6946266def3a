"""Every guard taken away, one at a time: those of verbs and decisions by their source, others by name.

A mutant is made from the module's own syntax tree: an `if` that never holds, a condition without one of its
parts, a choice that always goes one way. So the list is complete by construction, and a new guard in a verb
is a new mutant without anybody having to think of it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from tests.model.rules import source

GUARDED = {
    "decisions": (
        "enter_leg1",
        "enter_leg2",
        "next_step",
        "count_down",
        "decide_deliver",
        "decide_reclaim",
        "first_to_act",
        "settle_delta",
        "close_delta",
        "decide_cancel",
        "decide_end",
    ),
    "pictures": ("holds",),
    "job_view": ("charged_since_progress", "job_view"),
    "digits": ("first_seen", "_set", "mark_children"),
    "holds": ("decide_hold", "decide_resume", "stops_here"),
    "forking": ("decide_fork", "kept_before"),
}
"""The decisions: every guard of each is taken away in the tests."""

VERBS = (
    *("hooks", "trimming", "settling", "remote", "waiting", "children", "asking", "endings", "records"),
    *("control_requests", "control", "reclaiming", "claiming", "wants", "holds", "forking"),
)
"""The modules of verbs that tables of answers judge (`tests/core/verb_answers`), every function of them."""

OF_PICTURES = {
    "pictures": ("is_closed", "is_of_root", "is_owed", "open_activities", "named_by"),
    "marks": ("_settled",),
}
"""What verbs ask of pictures and digits; the tables judge it as well."""

SAVES = {
    "_as_child: never `(child.parent_job_id, child.deadline_at) == (parent.job_id, deadline_at)`": (
        "most children are as they are to be, and need no copy"
    ),
    "last_opened: never `last is None`": "most waits open no remote step, and share one row of no values",
}
"""Guards that change no answer, and what they save."""

EFFECTS = ("outcomes", "doubting", "answering", "calling")
"""The modules of verbs about effects, which have a table of their own (`tests/core/effect_answers`)."""

# Guards that no verb has: of a claim, of a store without wide transactions, of those who ask for forks.
OF_BUNDLES = {
    "fence": "a bundle is written without the fence",
    "fence in the bundle": "the fence is asked before the bundle and not in it",
    "marker in the bundle": "the marker is read before the bundle and not in it",
    "the look is under the lock": "a bundle is decided by what was there before it",
    "a claim asks whether a job is free": "a claim takes a job that is not due or that somebody runs",
    "acknowledge after the work": "a message is acknowledged when it is claimed",
    "ask when in doubt": "an intent without a result is called again without asking",
    "a closed job takes nothing": "a message that comes after the end does its work",
    "a held job is not claimed": "a claim takes a job that is held",
    "closer digit in the bundle": "the closer digit is not written with the semaphore",
    "a fork is decided in its bundle": "who asks for a fork looks before the bundle and not in it",
    "a retry moves the key": "the key stays with the job that failed",
    "a retry is known to the job that failed": "the job that failed does not learn what took its place",
    "a fork reserves its id": "the id of a fork is not kept",
    "completion by the closer": "completion tasks are driven by the semaphore and not by the closer digit",
}


KNOWN = (
    (
        "first_seen: the activity's markers become the message's",
        "digits",
        "cls(activity % 10**8)",
        "cls(activity)",
    ),
    ("count_down: requests are added up without a floor", "decisions", "if after < 0:", "if after < -9:"),
    (
        "enter_leg2: a redelivery is counted again",
        "decisions",
        "if guid is not None:",
        "if guid is not None and next_step(guid) is NextStep.ACKNOWLEDGE:",
    ),
    (
        "decide_reclaim: one attempt more than the budget",
        "decisions",
        "charged < budget",
        "charged <= budget",
    ),
    (
        "job_view: the very instant of the end still runs",
        "job_view",
        "now < attempt.expires_at",
        "now <= attempt.expires_at",
    ),
    (
        "first_to_act: the newest goes first",
        "decisions",
        "begun.index(True) if True in begun else 0",
        "len(begun) - 1",
    ),
    (
        "reclaim: the attempt that is lost is not counted",
        "reclaiming",
        "past.charged + 1",
        "past.charged",
    ),
    (
        "reclaim: another attempt than the one that was found",
        "reclaiming",
        "(lease.attempt, lease.lease_id) != request.fence[1:]",
        "False",
    ),
    (
        "reclaim: a job that is reclaimed is not due",
        "reclaiming",
        "ready_at=min(past.created_at, now.wall)",
        "ready_at=None",
    ),
    ("suspend_or_answer: the inbox is not looked at", "waiting", "if first is not None:", "if False:"),
    (
        "deliver: a message takes the time of its sender",
        "waiting",
        """    inbox = (max(now.wall, job.inbox_at), job.inbox_end + 1, None)
    message = Message(request.guid""",
        """    inbox = (now.wall, job.inbox_end + 1, None)
    message = Message(request.guid""",
    ),
    (
        "deliver: it is stored, and its job is not made due",
        "remote",
        "    return (MoveJob(job._replace(ready_at=now.wall, rev=job.rev + 1), job.rev, None, NO_VALUES),)",
        "    return ()",
    ),
    (
        "_loser: the timer that lost stays in the inbox",
        "waiting",
        "    return (MoveMessage(timer._replace(acked_at=now.wall), timer.ledger),)",
        "    return ()",
    ),
    (
        "take: an answer leaves the semaphore",
        "waiting",
        "semaphore=job.semaphore - 1, rev=job.rev + 1)",
        "semaphore=job.semaphore, rev=job.rev + 1)",
    ),
    (
        "_suspend: a wait that is opened is not counted",
        "waiting",
        "        opened += 1\n",
        "        opened += 0\n",
    ),
    (
        "_suspend: a job with a timer is due only by a signal",
        "waiting",
        "after = job._replace(ready_at=due_at, rev=job.rev + 1)",
        "after = job._replace(ready_at=None, rev=job.rev + 1)",
    ),
    (
        "enter: a message is acknowledged when it is claimed",
        "claiming",
        "begun = message._replace(ledger=found.guid)",
        "begun = message._replace(ledger=found.guid, acked_at=now.wall)",
    ),
    (
        "enter: the entry is not counted in the activity",
        "claiming",
        "counted = activity._replace(ledger=found.activity, rev=activity.rev + 1)",
        "counted = activity._replace(rev=activity.rev + 1)",
    ),
    (
        "settle: the closer forgets its digit",
        "settling",
        "settled(job.root_ledger, message.ledger, closes=closes)",
        "settled(job.root_ledger, message.ledger, closes=False)",
    ),
    (
        "settle: the start forgets its digit",
        "settling",
        "settled(job.root_ledger, job.start_ledger, closes=closes)",
        "settled(job.root_ledger, job.start_ledger, closes=False)",
    ),
    (
        "settle: a driver is not acknowledged",
        "settling",
        "message._replace(ledger=guid, acked_at=at)",
        "message._replace(ledger=guid)",
    ),
    (
        "settle: the activity does not learn what its message did",
        "settling",
        "None if digits == activity.ledger else activity._replace(ledger=digits, rev=activity.rev + 1)",
        "None",
    ),
    (
        "_closed: what is open is not dropped",
        "endings",
        "with_dropped(end.fact, pictures[job.job_id])",
        "end.fact, ()",
    ),
    (
        "_closed: the inbox is left",
        "endings",
        "        DropInbox(job.job_id, (keep, keep), signals=True),\n",
        "",
    ),
    ("_closed: a child ends and its parent does not hear of it", "endings", "        *counted,\n", ""),
    ("_closed: children are not asked to end with their parent", "endings", "        *below,\n", ""),
    ("ask: what is below a job that is asked to end is not", "asking", "(moved, *below)", "(moved,)"),
    (
        "why_asked: a deadline leaves no reason",
        "asking",
        "DEADLINE if request.late else job.code",
        "job.code",
    ),
    (
        "_at_once: a cancellation leaves the semaphore",
        "endings",
        "settle(rooted, Driver(word, None), -job.semaphore,",
        "settle(rooted, Driver(word, None), 0,",
    ),
    (
        "_at_once: the start is owed for ever",
        "endings",
        "start_acked_at=job.start_acked_at or now.wall",
        "start_acked_at=job.start_acked_at",
    ),
    (
        "_completed: only one of the early ends is entered",
        "children",
        "sorted(early, key=lambda each: each.arrived)",
        "sorted(early, key=lambda each: -each.arrived)[:1]",
    ),
    (
        "_completed: leg 1 is not complete with the last child",
        "children",
        "ledger=complete(group.ledger), rev",
        "ledger=group.ledger, rev",
    ),
    (
        "_opened: a group is not counted by its parent",
        "children",
        "semaphore=job.semaphore + 1, rev=job.rev + 1",
        "semaphore=job.semaphore, rev=job.rev + 1",
    ),
    (
        "_counted: a child that failed is not told",
        "children",
        "(group.failed or 0) + (word.payload != JobState.SUCCEEDED)",
        "group.failed or 0",
    ),
    ("_counted: the closer forgets its digit", "children", "closes=hit)", "closes=False)"),
    ("turn: the word to turn is forgotten", "control", "            InsertMessage(word),\n", ""),
    ("turn: signals are dropped", "control", "signals=False", "signals=True"),
    (
        "turn: what is open is left",
        "control",
        "with_dropped(request.fact, picture)",
        "request.fact, ()",
    ),
    ("hold: the flag is not set", "control", "job._replace(hold=request.hold.value, rev", "job._replace(rev"),
    ("resume: the flag stays", "control", "job._replace(hold=None, rev", "job._replace(rev"),
    (
        "cancel: a job that is asked to end stays held",
        "asking",
        "state=asked, hold=None, cancel_at",
        "state=asked, cancel_at",
    ),
    (
        "release: a job that is given back is not due",
        "records",
        "job._replace(ready_at=ready_at,",
        "job._replace(ready_at=None,",
    ),
)
"""Mistakes that no missing guard describes: those of others, and what a verb could forget."""


class Mutant(NamedTuple):
    """One guard that is gone: how to make the tree of its module, or None for a guard that no verb has."""

    name: str
    module: str
    tree: Callable[[], ast.Module] | None
    flaws: frozenset[str]

    def changed(self) -> dict[str, ast.Module] | None:
        return None if self.tree is None else {self.module: self.tree()}


def all_mutants() -> list[Mutant]:
    """Return every mutant that must be caught: guards of decisions, what a verb may forget, other guards."""
    found = [mutant for module, functions in GUARDED.items() for mutant in of_module(module, functions)]
    found += known()
    return found + [
        Mutant(f"bundle: {text}", "", None, frozenset({flaw})) for flaw, text in OF_BUNDLES.items()
    ]


def verb_mutants() -> list[Mutant]:
    """Return every guard of a verb taken away, but for those of effects and of protocol jobs."""
    of_verbs = [mutant for module in VERBS for mutant in of_module(module)]
    of_rows = [mutant for module, functions in OF_PICTURES.items() for mutant in of_module(module, functions)]
    return [mutant for mutant in of_verbs + of_rows if mutant.name not in SAVES]


def effect_mutants() -> list[Mutant]:
    """Return every guard of a verb about effects taken away."""
    return [mutant for module in EFFECTS for mutant in of_module(module)]


def of_module(module: str, functions: tuple[str, ...] = ()) -> Iterator[Mutant]:
    """Return every guard taken away, of these functions or of all."""
    tree = ast.parse(source(module))
    for function in functions or functions_of(tree):
        for n, (name, _change) in enumerate(changes_in(tree, function)):
            made = partial(_changed, module, function, n)
            yield Mutant(f"{function}: {name}", module, made, frozenset())


def _changed(module: str, function: str, n: int) -> ast.Module:
    tree = ast.parse(source(module))
    _name, change = list(changes_in(tree, function))[n]
    change()
    return ast.fix_missing_locations(tree)


def known() -> Iterator[Mutant]:
    """Return the mistakes that no missing guard describes."""
    for name, module, old, new in KNOWN:
        text = source(module)
        if text.count(old) != 1:
            raise LookupError(f"{module} says {old!r} {text.count(old)} times")
        yield Mutant(name, module, partial(ast.parse, text.replace(old, new)), frozenset())


def functions_of(tree: ast.Module) -> list[str]:
    """Return the functions that a module makes, each once."""
    return list(dict.fromkeys(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)))


def _nodes(tree: ast.Module, function: str) -> Iterator[ast.AST]:
    """Return everything inside the functions of this name; two classes may each have one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == function:
            yield from ast.walk(node)


def changes_in(tree: ast.Module, function: str) -> Iterator[tuple[str, Callable[[], object]]]:
    for node in _nodes(tree, function):
        if isinstance(node, ast.If):
            yield f"never `{ast.unparse(node.test)}`", lambda n=node: setattr(n, "test", ast.Constant(False))
        elif isinstance(node, ast.IfExp):
            said = ast.unparse(node.test)
            yield f"never `{said}`", lambda n=node: setattr(n, "test", ast.Constant(False))
            yield f"always `{said}`", lambda n=node: setattr(n, "test", ast.Constant(True))
        elif isinstance(node, ast.BoolOp):
            for i, part in enumerate(node.values):
                # Without a default (`x or 0`) there is nothing.
                default = i > 0 and isinstance(part, ast.Constant) and part.value is not None
                neutral = ast.Constant(None if default else isinstance(node.op, ast.And))
                yield (
                    f"without `{ast.unparse(part)}`",
                    lambda n=node, i=i, c=neutral: n.values.__setitem__(i, c),
                )
        elif isinstance(node, ast.comprehension):
            for i, part in enumerate(node.ifs):
                yield f"without `{ast.unparse(part)}`", lambda n=node, i=i: n.ifs.pop(i)
