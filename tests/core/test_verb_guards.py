"""Guards of verbs that refuse what no history writes, each with a picture by hand."""

from __future__ import annotations

import pytest

from tests.core.hand_pictures import CASES


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_a_guard_holds(case):
    case()
