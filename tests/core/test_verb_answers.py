"""What comes of each request, beside what must: tables written by hand, line by line, without a "
"rule of core."""

from __future__ import annotations

from importlib import import_module

import pytest

from tests.core.verb_answers import protocols
from tests.core.verb_answers.tables import TABLES
from tests.core.verb_answers.told import judged

CASES = [
    pytest.param(one, id=f"{table}: {one.name}")
    for table in TABLES
    for one in import_module(f"tests.core.verb_answers.{table}").CASES
]


@pytest.mark.parametrize("one", CASES)
def test_what_comes_of_a_request_is_what_its_table_says(one):
    judged(one)


@pytest.mark.parametrize("one", [pytest.param(one, id=one.name) for one in protocols.CASES])
def test_what_comes_of_a_request_about_a_protocol_job_is_what_its_table_says(one):
    protocols.judged(one)


def test_every_situation_has_a_name_of_its_own():
    names = [one.id for one in CASES]
    assert len(names) == len(set(names))
