"""What each promise writes, digit by digit, written out again as facts."""

from __future__ import annotations

from tallystick.core.promises import PROMISES

FACTS = {
    "step": [("001111000000001", None)],
    "tx": [("001111000000001", None)],
    "effect": [("001100000000000", None), ("001111000000001", "000011000000001")],
    "remote": [("001100000000000", None), ("001111000000001", "000011000000001")],
    "wait, sleep": [
        ("001100000000000", None),
        ("001100000000001", "000000000000001"),
        ("001110000000001", "000010000000001"),
        ("001111000000001", "000011000000001"),
        ("001111100000001", "000111100000001"),
    ],
    "gather": [
        ("001000000000000", None),
        ("001100000000000", None),
        ("001111000000001", "000011000000001"),
        ("001111100000003", "000111100000003"),
        ("001111100000004", "000000000000004"),
    ],
    "whole job": [
        ("001100000000000", "000000000000000"),
        ("001100000000001", "000000000000001"),
        ("001111000000001", "000011000000001"),
        ("001111100000001", "000111100000001"),
    ],
    "again": [
        ("001111000000002", "000000000000002"),
        ("001111000000002", "000011000000002"),
        ("001111100000002", "000111100000002"),
    ],
}


def text(ledger):
    return None if ledger is None else ledger.text


def test_the_table_of_promises_holds_these_digits():
    table = {
        promise.name: [(text(bundle.activity), text(bundle.guid)) for bundle in promise.bundles]
        for promise in PROMISES
    }
    assert table == FACTS
