"""The guards of all verbs, each taken away: an answer is another than the tables say."""

from __future__ import annotations

import ast
import sys
from functools import partial
from pathlib import Path
from zlib import crc32

import pytest

from tallystick.core import verbs
from tests.model import protocol_rules
from tests.model.judging import Caught, judge_verb
from tests.model.mutants import EFFECTS, OF_PICTURES, SAVES, VERBS, Mutant, of_module, verb_mutants
from tests.model.rules import source

# All of them: the long tests, and `python -m tests.model`.
SHARE = 6


def missed(mutants: list[Mutant]) -> list[str]:
    """Return the mutants whose answers are all as the tables say, and print what catches each other one."""
    caught: list[Caught] = [judge_verb(mutant) for mutant in mutants]
    sys.stdout.writelines(f"{one}\n" for one in caught)
    return [one.mutant for one in caught if not one.by]


@pytest.mark.timeout(300)
def test_a_guard_of_a_verb_that_is_removed_is_missed():
    """A share of them, which is the same whatever others come and go."""
    assert not missed([each for each in verb_mutants() if crc32(each.name.encode()) % SHARE == 0])


@pytest.mark.long
@pytest.mark.timeout(600)
def test_every_guard_of_a_verb_that_is_removed_is_missed():
    assert not missed(verb_mutants())


@pytest.mark.timeout(300)
def test_verbs_that_are_made_again_without_a_change_answer_as_the_tables_say():
    """Otherwise everything would seem to be caught."""
    modules = ["digits", *OF_PICTURES, *VERBS]
    same = [
        Mutant(name, name, partial(ast.parse, source(name)), frozenset()) for name in dict.fromkeys(modules)
    ]
    assert missed(same) == modules


def test_every_module_of_verbs_has_a_judge():
    folder = Path(str(verbs.__file__)).parent
    modules = {path.stem for path in folder.rglob("*.py")} - {"__init__", "deciding"}
    assert modules == {*VERBS, *EFFECTS, *protocol_rules.GUARDED} - {"rows", "policy"}
    assert len(verb_mutants()) >= 500


def test_what_only_saves_work_is_still_there():
    assert {mutant.name for module in VERBS for mutant in of_module(module)} >= set(SAVES)
