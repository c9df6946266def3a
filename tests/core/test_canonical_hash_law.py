"""The law of the content hash: equal exactly when the contents are equal.

Equal means: after null members were dropped from objects, with numbers compared as exact rationals and
text compared by code points. The comparison here knows nothing of JSON text.
"""

from __future__ import annotations

from fractions import Fraction
from random import Random

import pytest

from tallystick.core.json_forms.canonical import content_hash

PAIRS = (10_000, pytest.param(100_000, marks=pytest.mark.long))

# Each line holds spellings that are close to each other: some equal, some not.
CLOSE_ATOMS: tuple[tuple[object, ...], ...] = (
    (1, 1.0, True, "1"),
    (0, 0.0, -0.0, False, None, "", "0"),
    (-1, -1.0, 1),
    (10**21, 1e21, 10**21 + 1, 10**21 - 1, "1e+21"),
    (-(10**21), -1e21),
    (10**22, 1e22, 10**22 + 1),
    (10**23, 1e23, int(1e23)),
    (2**80, 2.0**80, 2**80 + 1, 1208925819614629200000000),
    (2**53 - 1, float(2**53 - 1), 2**53, 2**53 + 1, 2**53 + 2),
    (-(2**53), -(2**53) - 1, -(2**53) + 1, float(-(2**53) + 1)),
    (2**63, 2**63 - 1, 2**64, 2**64 - 1),
    (10**308, 1e308, int(1e308), 10**309, 10**309 + 1),
    (0.1, 0.1 + 2**-56, 0.30000000000000004, 0.3),
    (1e-5, 0.00001, 1e-6, 1e-7, 1.5e-7),
    (5e-324, 0.0, 2.5e-323),
    (0.5, 5e-1, "0.5"),
    ("\u00e9", "e\u0301", "é"),
    ("\uffff", "\U00010000", "\U0010ffff"),
    ("\x7f", "\u2028", "\x00", "\\u0000", '"', "\\"),
    ([], {}, [None], [[]], [{}]),
)
KEYS = ("a", "b", "B", "", "\u00e9", "e\u0301", "\uffff", "\U00010000", "\ue000", "1", "\x7f")


def exact(value: object) -> object:
    """Return a hashable stand-in that is equal exactly when the content is."""
    if isinstance(value, bool):
        return ("truth", value)
    if isinstance(value, int | float):
        return Fraction(value)
    if isinstance(value, str):
        return ("text", value)
    if isinstance(value, list | tuple):
        return ("array", tuple(map(exact, value)))
    if isinstance(value, dict):
        return (
            "object",
            frozenset((key, exact(member)) for key, member in value.items() if member is not None),
        )
    return None


def grow(random: Random, depth: int = 0) -> object:
    """Return a random value in which spellings that are close to each other are common."""
    shape = random.random()
    if shape < 0.2 and depth < 2:
        return [grow(random, depth + 1) for _ in range(random.randint(0, 3))]
    if shape < (1.0 if depth == 0 else 0.45) and depth < 2:
        return {key: grow(random, depth + 1) for key in random.sample(KEYS, random.randint(depth == 0, 3))}
    return random.choice(random.choice(CLOSE_ATOMS))


def respell(random: Random, value: object, care: float) -> object:
    """Return the value spelt differently; the less care, the more often it becomes another content."""
    if isinstance(value, dict):
        members = [(key, respell(random, member, care)) for key, member in value.items()]
        members += [(key, None) for key in KEYS if key not in value and random.random() < 0.1]
        random.shuffle(members)
        return dict(members)
    if isinstance(value, list) and (value or random.random() < care):
        items = [respell(random, item, care) for item in value]
        if random.random() > care:
            items.insert(random.randint(0, len(items)), None)
        return tuple(items) if random.random() < 0.3 else items
    close = [atom for line in CLOSE_ATOMS for atom in line if atom == value] or [value]
    if random.random() > care:
        close = [atom for line in CLOSE_ATOMS if value in line for atom in line] or [value]
    return random.choice(close) if not isinstance(value, bool) else value


@pytest.mark.slow
@pytest.mark.parametrize("pairs", PAIRS)
def test_hashes_are_equal_exactly_when_the_contents_are(pairs):
    random = Random(1785)
    equal = respelt = 0
    for _ in range(pairs):
        one = grow(random)
        other = respell(random, one, care=random.choice((1.0, 0.6, 0.2)))
        same = exact(one) == exact(other)
        equal += same
        respelt += same and repr(one) != repr(other)
        assert (content_hash(one) == content_hash(other)) is same, (one, other)
    # Both answers must be common, or nothing was shown.
    assert 0.4 < equal / pairs < 0.6
    assert respelt / pairs > 0.3


def test_hashes_of_all_close_atoms_are_equal_exactly_when_the_atoms_are():
    atoms = [atom for line in CLOSE_ATOMS for atom in line]
    for one in atoms:
        for other in atoms:
            for wrap in (lambda atom: [atom], lambda atom: {"k": atom}, lambda atom: {"k": [atom]}):
                same = exact(wrap(one)) == exact(wrap(other))
                assert (content_hash(wrap(one)) == content_hash(wrap(other))) is same, (one, other)
