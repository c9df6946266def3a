"""The certificate of the conformance suite: which promises a store was seen to keep, and by which class.

A plugin of pytest: `pytest -p tallystick.testing.conformance.certificate test_my_store.py` prints it. A store
has one if every test of its class ran and passed; what was left out, skipped or failed is named instead.
"""

from __future__ import annotations

import inspect
from collections import Counter
from typing import Any, Final

import pytest

from tallystick.testing.conformance.suite import ProtocolConformance, StoreConformance
from tallystick.version import VERSION

CLASSES: Final = {"everything": StoreConformance, "Protocols": ProtocolConformance}
"""What a store may promise, the wider first."""

_MARK: Final = "conformance"


def class_of(suite: object) -> str | None:
    """Return which class of promises a class of tests is about, if it is about any.

    >>> class_of(type("TestMine", (ProtocolConformance,), {}))
    'Protocols'
    """
    found = (name for name, kept in CLASSES.items() if isinstance(suite, type) and issubclass(suite, kept))
    return next(found, None)


def promises_of(name: str) -> dict[str, str]:
    """Return the tests of a class of promises, each with the group that it belongs to."""
    suite = CLASSES[name]
    return {
        test: owner.__name__
        for owner in reversed(inspect.getmro(suite))
        for test in vars(owner)
        if test.startswith("test_")
    }


class Tried:
    """What came of the tests of one store."""

    def __init__(self, name: str) -> None:
        """Begin with nothing tried."""
        self.name = name
        self.passed: set[str] = set()
        self.wrong: dict[str, str] = {}

    def missing(self) -> dict[str, str]:
        """Return the promises that were not seen to be kept, and why."""
        left = {test: "not tried" for test in promises_of(self.name) if test not in self.passed}
        return left | self.wrong

    def groups(self) -> dict[str, tuple[int, int]]:
        """Return for each group of promises how many were kept, and how many there are."""
        promises, missing = promises_of(self.name), self.missing()
        kept = Counter(group for test, group in promises.items() if test not in missing)
        return {group: (kept[group], count) for group, count in sorted(Counter(promises.values()).items())}


class Certificates:
    """Hears what came of each test, in this process or in those that ran the tests."""

    def __init__(self) -> None:
        """Begin with no store."""
        self.stores: dict[str, Tried] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note what came of a test, of its set-up and of what followed it."""
        for mark, said in report.user_properties:
            if mark == _MARK:
                store, name, test = str(said).split(" ")
                self._note(self.stores.setdefault(store, Tried(name)), test, report)

    def _note(self, tried: Tried, test: str, report: pytest.TestReport) -> None:
        if report.outcome != "passed":
            tried.wrong[test] = report.outcome
        elif report.when == "call":
            tried.passed.add(test)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:  # noqa: ANN401 (pytest has no public type for it)
        """Print the certificate of each store."""
        for line in printed(self.stores):
            terminalreporter.write_line(line)


def printed(stores: dict[str, Tried]) -> list[str]:
    """Return the lines of all certificates."""
    lines = [f"conformance of stores, tallystick {VERSION}"] if stores else []
    for store, tried in sorted(stores.items()):
        missing, promises = tried.missing(), promises_of(tried.name)
        kept = len(promises) - len(missing)
        verdict = "no certificate" if missing else f"certificate for {tried.name}"
        lines.append(f"{store}: {verdict}, {kept} of {len(promises)} promises kept")
        lines += [f"  {group}: {mine} of {count}" for group, (mine, count) in tried.groups().items()]
        lines += [f"  {why}: {test}" for test, why in sorted(missing.items())]
    return lines


def pytest_configure(config: pytest.Config) -> None:
    """Listen in the process that prints."""
    config.pluginmanager.register(Certificates(), "tallystick-certificates")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of stores; the mark travels with their reports. One written anew has none."""
    for item in items:
        suite, test = getattr(item, "cls", object), getattr(item, "originalname", item.name)
        name = class_of(suite)
        if name is not None and getattr(suite, test) is getattr(CLASSES[name], test, None):
            item.user_properties.append((_MARK, f"{suite.__name__} {name} {test}"))
