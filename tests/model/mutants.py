"""Every guard taken away, one at a time: those of the core by their source, those of bundles by name.

A mutant of the core is made from the module's own syntax tree: an `if` that never holds, a condition without
one of its parts, a choice that always goes one way. So the list is complete by construction, and a new guard
in a decision function is a new mutant without anybody having to think of it.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from typing import NamedTuple

from tests.model.rules import source

GUARDED = {
    "decisions": (
        "enter_leg1",
        "enter_leg2",
        "next_step",
        "count_down",
        "decide_suspend",
        "decide_deliver",
        "decide_reclaim",
        "first_to_act",
        "settle_delta",
        "close_delta",
        "decide_cancel",
        "decide_end",
    ),
    "lease": ("is_live", "fence"),
    "derive": ("charged_since_progress", "job_view"),
    "digits": ("first_seen", "_set", "mark_children"),
    "holds": ("decide_hold", "decide_resume", "stops_here"),
    "forking": ("decide_fork", "kept_before"),
}

# The guards of a bundle, by the name under which the models know them.
OF_BUNDLES = {
    "fence": "a bundle is written without the fence",
    "fence in the bundle": "the fence is asked before the bundle and not in it",
    "marker in the bundle": "the marker is read before the bundle and not in it",
    "inbox in the bundle": "a suspension looks at the inbox before its bundle",
    "a claim asks whether a job is free": "a claim takes a job that is not due or that somebody runs",
    "acknowledge after the work": "a message is acknowledged when it is claimed",
    "losers are acknowledged": "the timer that lost its race stays in the inbox",
    "a cancelled job stays cancelled": "a job that is being cancelled ends as its function says",
    "a group opens once": "spawning again opens the group again",
    "a closed group counts nobody": "a child that ends after the join is counted",
    "a message is known by its guid": "a second delivery is a second message",
    "delivery wakes": "a message is stored and its job is not made due",
    "reclaim looks again": "a sweep writes what it decided without looking again",
    "budget counts before": "the budget is checked after the attempt that spends it",
    "ask when in doubt": "an intent without a result is called again without asking",
    "a closed job takes nothing": "a message that comes after the end does its work",
    "a held job is not claimed": "a claim takes a job that is held",
    "the end of an attempt keeps the hold": "the end of an attempt takes away a hold that it did not know of",
    "closer digit in the bundle": "the closer digit is not written with the semaphore",
    "a fork is decided in its bundle": "who asks for a fork looks before the bundle and not in it",
    "a retry moves the key": "the key stays with the job that failed",
    "a retry is known to the job that failed": "the job that failed does not learn what took its place",
    "a fork reserves its id": "the id of a fork is not kept",
    "completion by the closer": "completion tasks are driven by the semaphore and not by the closer digit",
}


class Mutant(NamedTuple):
    """One guard that is gone: `changed` is the tree of its module, or None for a guard of a bundle."""

    name: str
    changed: dict[str, ast.Module] | None
    flaws: frozenset[str]


def all_mutants() -> list[Mutant]:
    """Return every mutant, those of the core first."""
    found = [
        Mutant(name, {module: tree}, frozenset())
        for module, functions in GUARDED.items()
        for name, tree in of_core(module, functions)
    ]
    found += [Mutant(name, tree, frozenset()) for name, tree in known()]
    return found + [Mutant(f"bundle: {text}", None, frozenset({flaw})) for flaw, text in OF_BUNDLES.items()]


def of_core(module: str, functions: tuple[str, ...]) -> Iterator[tuple[str, ast.Module]]:
    tree = ast.parse(source(module))
    for function in functions:
        for n in range(len(list(_changes(tree, function)))):
            mutated = copy.deepcopy(tree)
            name, change = list(_changes(mutated, function))[n]
            change()
            yield f"{function}: {name}", ast.fix_missing_locations(mutated)


def known() -> Iterator[tuple[str, dict[str, ast.Module]]]:
    """Return the mistakes that others have made and that no missing guard describes."""
    for name, module, old, new in (
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
            "decide_suspend: any message answers",
            "decisions",
            "suspend=False, answered=waits.index(name)",
            "suspend=True, answered=None",
        ),
        (
            "is_live: the very instant of the end still counts",
            "lease",
            "now < expires_at",
            "now <= expires_at",
        ),
        (
            "decide_reclaim: one attempt more than the budget",
            "decisions",
            "charged < budget",
            "charged <= budget",
        ),
        (
            "job_view: the very instant of the end still runs",
            "derive",
            "now < attempt.expires_at",
            "now <= attempt.expires_at",
        ),
        (
            "first_to_act: the newest goes first",
            "decisions",
            "begun.index(True) if True in begun else 0",
            "len(begun) - 1",
        ),
    ):
        text = source(module)
        if text.count(old) != 1:
            raise LookupError(f"{module} says {old!r} {text.count(old)} times")
        yield name, {module: ast.parse(text.replace(old, new))}


def _nodes(tree: ast.Module, function: str) -> Iterator[ast.AST]:
    """Return everything inside the functions of this name; two classes may each have one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == function:
            yield from ast.walk(node)


def _changes(tree: ast.Module, function: str) -> Iterator[tuple[str, Callable[[], object]]]:
    for node in _nodes(tree, function):
        if isinstance(node, ast.If):
            yield f"never `{ast.unparse(node.test)}`", lambda n=node: setattr(n, "test", ast.Constant(False))
        elif isinstance(node, ast.IfExp):
            said = ast.unparse(node.test)
            yield f"never `{said}`", lambda n=node: setattr(n, "test", ast.Constant(False))
            yield f"always `{said}`", lambda n=node: setattr(n, "test", ast.Constant(True))
        elif isinstance(node, ast.BoolOp):
            for i, part in enumerate(node.values):
                neutral = ast.Constant(isinstance(node.op, ast.And))
                yield (
                    f"without `{ast.unparse(part)}`",
                    lambda n=node, i=i, c=neutral: n.values.__setitem__(i, c),
                )
        elif isinstance(node, ast.comprehension):
            for i, part in enumerate(node.ifs):
                yield f"without `{ast.unparse(part)}`", lambda n=node, i=i: n.ifs.pop(i)
