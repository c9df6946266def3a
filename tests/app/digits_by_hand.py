"""The digits of every kind of job after every commit, written by hand from the rulings on specification 004.

Nothing here is computed. A row is: what happened, root, start, activities by name, messages by name.
"""

from __future__ import annotations

PLAIN = [
    ("submitted", "001100000000000", "000000000000000"),
    ("claimed", "001100000000001", "000000000000001"),
    ("returned", "001111100000001", "000111100000001"),
]
FAILED = [*PLAIN[:2], ("failed", "001111100000001", "000111100000001")]
TAKEN_OVER = [
    PLAIN[0],
    PLAIN[1],
    ("lost", "001100000000001", "000000000000001"),
    ("claimed again", "001100000000001", "000000000000001"),
    PLAIN[2],
]
# An inline step at its first, second and third try; a tx.
STEP = {1: "001111000000001", 2: "002111000000001", 3: "003111000000001"}
WAIT = [
    # root, start, activity, message
    ("suspended", "001111000000001", "000011000000001", "001100000000000", None),
    ("delivered", "001111000000001", "000011000000001", "001100000000000", "000000000000000"),
    ("claimed", "001111000000001", "000011000000001", "001100000000001", "000000000000001"),
    ("answered", "001111000000001", "000011000000001", "001110000000001", "000010000000001"),
    ("returned", "001111000000001", "000011000000001", "001111100000001", "000111100000001"),
]
# The same, and the segment ends in another wait instead.
WAIT_AND_WAIT = [
    *WAIT[:4],
    ("suspended again", "001111000000001", "000011000000001", "001111000000001", "000011000000001"),
]
# A wait whose worker dies twice, as docs/ledger.md walks it: activity, message.
WALK = [
    ("001100000000000", ""),
    ("001100000000000", "000000000000000"),
    ("001100000000001", "000000000000001"),
    ("001100000000001", "000000000000001"),
    ("001110000000001", "000010000000001"),
    ("001110000000001", "000010000000001"),
    ("001111100000001", "000111100000001"),
]
# What each promise writes, as docs/ledger.md lists it.
PROMISES = {
    "step": [("001111000000001", "")],
    "tx": [("001111000000001", "")],
    "effect": [("001100000000000", ""), ("001111000000001", "000011000000001")],
    "remote": [("001100000000000", ""), ("001111000000001", "000011000000001")],
    "wait, sleep": [
        ("001100000000000", ""),
        ("001100000000001", "000000000000001"),
        ("001110000000001", "000010000000001"),
        ("001111000000001", "000011000000001"),
        ("001111100000001", "000111100000001"),
    ],
    "gather": [
        ("001000000000000", ""),
        ("001100000000000", ""),
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
# A message that was there before its wait was asked for.
EARLY_SIGNAL = ("001111000000001", "000011000000001")
# Comes to its open wait once more, driven by another message.
MET_AGAIN = "002100000000000"
# The timer that lost: acknowledged, and never entered.
LOSER = "000000000000000"
GROUP_OF_3 = [
    ("spawned", "001100000000000", []),
    ("first", "001111000000001", ["000011000000001"]),
    ("second", "001111000000002", ["000011000000001", "000011000000002"]),
    ("closer", "001111100000003", ["000011000000001", "000011000000002", "000111100000003"]),
]
JOINED = ("001111100000004", "000111100000004")
SPAWN_CUT = [
    ("first bundle", "001000000000000"),
    ("made again", "002000000000000"),
    ("last bundle", "002100000000000"),
]
# Of a group that waits for one: a child that comes too late touches nothing.
TOO_LATE = "000000000000000"
# The root after each of five turns, and the ledger of each turn's message at its end.
TURNS = ["001111000000002", "001111000000003", "001111000000004", "001111000000005", "001111100000006"]
TURN_WORDS = ["000011000000002", "000011000000003", "000011000000004", "000011000000005", "000111100000006"]
# Cancelled with nobody at work, before any claim and while it waits: root, start, the cancellation's message.
CANCELLED_QUEUED = ("001111100000001", "000000000000000", "000111100000001")
CANCELLED_WAITING = ("001111100000002", "000011000000001", "000111100000002", "001100000000000")
FORKED = ("001100000000000", "000000000000000")
# A group of 1,200 whose parent was killed with 500 of them born: cut short; complete, with 500 early ends
# entered in the same commit; closed by the last child; and driven by the word that it is closed.
CROWD = ["001000000000000", "002111000000500", "002111100001200", "002111100001201"]
# An end that comes before leg 1 is complete waits; the 500 are entered in the order of their arrival.
CROWD_EARLY = "000000000000000"
CROWD_ENTERED = {1: "000011000000001", 2: "000011000000002", 250: "000011000000250", 500: "000011000000500"}
CROWD_CLOSER = "000111100001200"
