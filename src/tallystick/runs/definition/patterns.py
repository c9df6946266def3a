"""Names of artifacts as nodes declare them: plain, or with `*`, `{scope}` and a final `?`.

`drafts/{scope}.md` is one artifact a scope, `drafts/*.md` all of them, `patch.json?` one that may be
missing.
"""

from __future__ import annotations

import re
from functools import cache

from tallystick.core.limits import check_name
from tallystick.log.folder import check_path

SCOPE = "{scope}"


def check_pattern(kind: str, pattern: str) -> str:
    """Return a declared name if every artifact it can mean is safe, or raise BadName."""
    plain = pattern.removesuffix("?").replace(SCOPE, "x").replace("*", "x")
    check_path(kind, plain)
    return pattern


def is_optional(pattern: str) -> bool:
    """Return whether the work can begin without any artifact of this name."""
    return pattern.endswith("?") or "*" in pattern


def bind(pattern: str, scope_key: str) -> str:
    """Return the declared name for one scope."""
    return pattern.removesuffix("?").replace(SCOPE, scope_key)


def matches(pattern: str, name: str) -> bool:
    """Return whether a bound pattern means this artifact; `*` stays within one part of the name.

    >>> matches("drafts/*.md", "drafts/intro.md"), matches("drafts/*.md", "drafts/a/b.md")
    (True, False)
    """
    return _compiled(pattern).fullmatch(name) is not None


def fits(pattern: str, name: str) -> bool:
    """Return whether a declared name means this artifact for some scope."""
    return matches(bind(pattern, "*"), name)


def overlap(one: str, other: str) -> bool:
    """Return whether two declared names can mean the same artifact.

    >>> overlap("drafts/{scope}.md", "drafts/*"), overlap("drafts/*.md", "facts.json")
    (True, False)
    """
    return _overlap(one.removesuffix("?").replace(SCOPE, "*"), other.removesuffix("?").replace(SCOPE, "*"))


def check_scope(scope_key: str) -> str:
    """Return the key of a scope if it can be part of a file name, or raise BadName."""
    return check_name("scope", scope_key)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile("[^/]*".join(re.escape(part) for part in pattern.split("*")))


@cache
def _overlap(one: str, other: str) -> bool:
    if not one or not other:
        return not (one + other).strip("*")
    if one[0] == "*":
        return _overlap(one[1:], other) or (other[0] != "/" and _overlap(one, other[1:]))
    if other[0] == "*":
        return _overlap(other, one)
    return one[0] == other[0] and _overlap(one[1:], other[1:])
