"""What each promise writes, digit by digit, is what was written by hand."""

from __future__ import annotations

from tallystick.core.ledger.promises import PROMISES
from tests.app import digits_by_hand


def text(ledger):
    return "" if ledger is None else ledger.text


def test_the_table_of_promises_holds_these_digits():
    table = {
        promise.name: [(text(bundle.activity), text(bundle.guid)) for bundle in promise.bundles]
        for promise in PROMISES
    }
    assert table == digits_by_hand.PROMISES
