"""Whoever silences a checker says why, on the same line."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.tidy.tree import ROOT, comments, offences, project_files

DIRECTIVE = re.compile(
    r"#\s*(?P<tool>type:\s*ignore|pyright:\s*ignore|noqa|pragma:\s*no\s+cover)"
    r"(?P<codes>\s*\[[^\]]*\]|\s*:\s*[A-Z]+[0-9]+(?:\s*,\s*[A-Z]+[0-9]+)*)?"
    r"(?P<reason>.*)"
)


def test_every_silenced_checker_has_a_reason():
    ours = [
        p
        for p in project_files()
        if p.suffix in {".py", ".pyi"} and not p.is_relative_to(ROOT / "tests/typing")
    ]
    assert not [line for path in ours for line in offences(path, excuses(path.read_text("utf-8")))]


@pytest.mark.parametrize(
    "line",
    [
        "x = f()  # type: ignore[arg-type]",
        "x = f()  # type: ignore[arg-type]  # no",
        "x = f()  # noqa: S311",
        "x = f()  # noqa: S311, E501  # noqa",
        "x = f()  # pyright: ignore[reportCallIssue]",
        "x = f()  # noqa (the rule has no name here)",
    ],
)
def test_a_silenced_checker_without_a_reason_or_without_a_rule_is_found(line: str):
    assert list(excuses(line))


@pytest.mark.parametrize(
    "line",
    [
        "x = f()  # noqa: S311 (chance that users see, not a secret)",
        "x = f()  # type: ignore[arg-type]  # the stub of apsw lacks this overload",
        "text = 'noqa'",
        "x = 1  # an ordinary comment",
    ],
)
def test_a_reason_is_recognised(line: str):
    assert not list(excuses(line))


def excuses(source: str) -> Iterator[tuple[int, str]]:
    for line, comment in comments(source):
        found = DIRECTIVE.search(comment)
        if found is None:
            continue
        if not found["codes"] and "pragma" not in found["tool"]:
            yield line, f"{comment} (name the rule)"
        elif len(re.findall(r"[A-Za-z]{2,}", found["reason"])) < 2:
            yield line, f"{comment} (say why, in words)"
