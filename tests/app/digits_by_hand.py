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
# A group of 1,200, of which 500 are born at once: every commit of its parent and every kind of commit of its
# children. Each is made twice, by a process that dies in front of it and by one that dies behind it; one that
# comes again to a spawn that is not complete counts an entry of leg 1.
# A line is: the commit; root and start of the parent; the group; children that are queued, claimed, ended and
# cancelled; words of children that wait and that have entered; the word that the group is closed.
CROWD = """
submitted              001100000000000 000000000000000 -                 0   0    0 0   0    0 -
before: claimed        001100000000000 000000000000000 -                 0   0    0 0   0    0 -
behind: claimed        001100000000001 000000000000001 -                 0   0    0 0   0    0 -
before: 500 are born   001100000000001 000000000000001 -                 0   0    0 0   0    0 -
behind: 500 are born   001100000000001 000000000000001 001000000000000 500   0    0 0   0    0 -
before: 500 claimed    001100000000001 000000000000001 001000000000000 500   0    0 0   0    0 -
behind: 500 claimed    001100000000001 000000000000001 001000000000000   0 500    0 0   0    0 -
before: 500 end early  001100000000001 000000000000001 001000000000000   0 500    0 0   0    0 -
behind: 500 end early  001100000000001 000000000000001 001000000000000   0   0  500 0 500    0 -
before: born again     001100000000001 000000000000001 001000000000000   0   0  500 0 500    0 -
behind: born again     001100000000001 000000000000001 002000000000000   0   0  500 0 500    0 -
before: 1,000 are born 001100000000001 000000000000001 003000000000000   0   0  500 0 500    0 -
behind: 1,000 are born 001100000000001 000000000000001 004000000000000 500   0  500 0 500    0 -
before: 200 end early  001100000000001 000000000000001 004000000000000 300 200  500 0 500    0 -
behind: 200 end early  001100000000001 000000000000001 004000000000000 300   0  700 0 700    0 -
before: all are born   001100000000001 000000000000001 005000000000000 300   0  700 0 700    0 -
behind: all are born   001111000000001 000011000000001 006111000000700 500   0  700 0   0  700 -
before: one claimed    001111000000001 000011000000001 006111000000700 500   0  700 0   0  700 -
behind: one claimed    001111000000001 000011000000001 006111000000700 499   1  700 0   0  700 -
before: one ends       001111000000001 000011000000001 006111000000700 499   1  700 0   0  700 -
behind: one ends       001111000000001 000011000000001 006111000000701 499   0  701 0   0  701 -
before: one cancelled  001111000000001 000011000000001 006111000000701 499   0  701 0   0  701 -
behind: one cancelled  001111000000001 000011000000001 006111000000702 498   0  701 1   0  702 -
before: 497 end        001111000000001 000011000000001 006111000000702   1 497  701 1   0  702 -
behind: 497 end        001111000000001 000011000000001 006111000001199   1   0 1198 1   0 1199 -
before: the last ends  001111000000001 000011000000001 006111000001199   0   1 1198 1   0 1199 -
behind: the last ends  001111000000001 000011000000001 006111100001200   0   0 1199 1   0 1200 000000000000000
before: parent joins   001111000000001 000011000000001 006111100001200   0   0 1199 1   0 1200 000000000000000
behind: parent joins   001111000000001 000011000000001 006111100001201   0   0 1199 1   0 1200 000000000001201
before: parent returns 001111000000001 000011000000001 006111100001201   0   0 1199 1   0 1200 000000000001201
behind: parent returns 001111000000001 000011000000001 006111100001201   0   0 1199 1   0 1200 000111100001201
"""
# The same at the end of an undisturbed spawn, and of one that was cut short once: of 1,200, and of 12.
CROWD_ENDED = {
    1_200: "001111000000001 000011000000001 001111100001201 0 0 1200 0 0 1200 000111100001201",
    12: "001111000000001 000011000000001 001111100000013 0 0 12 0 0 12 000111100000013",
}
CROWD_CUT = {
    1_200: "001111000000001 000011000000001 002111100001201 0 0 1200 0 0 1200 000111100001201",
    12: "001111000000001 000011000000001 002111100000013 0 0 12 0 0 12 000111100000013",
}
# Root and start of a child that is queued, claimed, ended, or was cancelled before any claim.
CHILD = [
    ("001100000000000", "000000000000000"),
    ("001100000000001", "000000000000001"),
    ("001111100000001", "000111100000001"),
    ("001111100000001", "000000000000000"),
]
# The word of a child that ends before leg 1 of its group is complete; and the seven digits in front of the
# entry of one that has entered, or that has closed the group.
WORD_WAITS = "000000000000000"
WORD_ENTERED = "0000110"
WORD_CLOSES = "0001111"
# The marks of an activity, digits 4 to 7: leg 1 begun, complete, step 1, step 2, step 3. Those of a message:
# seen or entered, step 1, step 2; a closer has all at once.
ACTIVITY_MARKS = {"0000", "1000", "1100", "1110", "1111"}
MESSAGE_MARKS = {"0000", "0100", "0110", "1111"}
# What a plan may do to the state of a job, an activity and an attempt: before and after.
JOB_MOVES = {
    ("QUEUED", "CANCELLING"),
    ("QUEUED", "CANCELLED"),
    ("QUEUED", "FAILED_FINAL"),
    ("DISPATCHING", "CANCELLING"),
    ("DISPATCHING", "CANCELLED"),
    ("DISPATCHING", "FAILED_FINAL"),
    ("IN_PROGRESS", "SUCCEEDED"),
    ("IN_PROGRESS", "FAILED_FINAL"),
    ("IN_PROGRESS", "CANCELLING"),
    ("IN_PROGRESS", "CANCELLED"),
    ("CANCELLING", "CANCELLED"),
}
ACTIVITY_BIRTHS = {"IN_PROGRESS", "SUCCEEDED", "FAILED_FINAL"}
REMOTE_BIRTHS = {"DISPATCHING"}
ACTIVITY_MOVES = {
    ("IN_PROGRESS", "SUCCEEDED"),
    ("IN_PROGRESS", "FAILED_FINAL"),
    ("IN_PROGRESS", "CANCELLED"),
}
ATTEMPT_BIRTHS = {"ABORTED"}
ATTEMPT_MOVES = {
    ("LEASED", "ABORTED"),
    ("IN_PROGRESS", "ABORTED"),
    ("IN_PROGRESS", "DONE"),
    ("COMMITTED", "DONE"),
}
# What may become of an effect, by what is known of it.
EFFECT_MOVES = {
    ("CALLING", "CALLING"),
    ("CALLING", "RESTING"),
    ("CALLING", "IN_DOUBT"),
    ("CALLING", "ENDED"),
    ("RESTING", "CALLING"),
    ("RESTING", "ENDED"),
    ("IN_DOUBT", "IN_DOUBT"),
    ("IN_DOUBT", "RESTING"),
    ("IN_DOUBT", "ENDED"),
}
JOB_ENDS = {"SUCCEEDED", "FAILED_FINAL", "CANCELLED"}
ACTIVITY_ENDS = {"SUCCEEDED", "FAILED_FINAL", "CANCELLED"}
# A remote step with two directives, whose RESULT drives the end: root, start, semaphore, step, message.
REMOTE = [
    ("asked", "001111000000001", "000011000000001", 1, "001100000000000", None),
    ("taken", "001111000000001", "000011000000001", 1, "001100000000000", None),
    ("acknowledged", "001111000000001", "000011000000001", 1, "001100000000000", None),
    ("failed", "001111000000001", "000011000000001", 1, "001100000000000", None),
    ("asked again", "001111000000001", "000011000000001", 1, "002100000000000", None),
    ("answered", "001111000000001", "000011000000001", 1, "002100000000000", "000000000000000"),
    ("claimed", "001111000000001", "000011000000001", 1, "002100000000001", "000000000000001"),
    ("went on", "001111000000001", "000011000000001", 1, "002110000000001", "000010000000001"),
    ("returned", "001111000000001", "000011000000001", 0, "002111100000001", "000111100000001"),
]
# The same, and the segment ends in a wait instead.
REMOTE_AND_WAIT = [
    *REMOTE[:8],
    ("suspended again", "001111000000001", "000011000000001", 1, "002111000000001", "000011000000001"),
]
# Two at once: the first drives the segment and closes the job, the second is taken by that segment.
TWO_REMOTES = [
    (
        *("001111000000001", "000011000000001", 2),
        *(("001100000000000", "000000000000000"), ("001100000000000", "000000000000000")),
    ),
    (
        *("001111000000001", "000011000000001", 0),
        *(("001111100000001", "000111100000001"), ("001111000000001", "000011000000001")),
    ),
]
# An effect with two calls, in the first segment: root, start, semaphore, step, message.
EFFECT = [
    ("submitted", "001100000000000", "000000000000000", 1, None, None),
    ("called", "001100000000001", "000000000000001", 2, "001100000000000", None),
    ("called again", "001100000000001", "000000000000001", 2, "002100000000000", None),
    ("went on", "001100000000001", "000000000000001", 1, "002111000000001", "000011000000001"),
    ("returned", "001111100000001", "000111100000001", 0, "002111000000001", "000011000000001"),
]
# The same, and the segment ends in a wait instead.
EFFECT_AND_WAIT = [
    *EFFECT[:4],
    ("suspended", "001111000000001", "000011000000001", 1, "002111000000001", "000011000000001"),
]
# Its worker is lost in the call, a person answers, and the start drives the segment that takes the answer.
EFFECT_IN_DOUBT = [
    ("lost", "001100000000001", "000000000000001", 2, "001100000000000", None),
    ("in doubt", "001100000000001", "000000000000001", 2, "001100000000000", None),
    ("answered", "001100000000001", "000000000000001", 2, "001100000000000", "000000000000000"),
    ("returned", "001111100000001", "000111100000001", 0, "001111000000001", "000011000000001"),
]
# Another job has done it under the same key: answered at once, and nothing was open.
EFFECT_KNOWN = ("known", "001111100000001", "000111100000001", 0, "001111000000001", "000011000000001")
# Every kind of job, commit by commit: what each commit writes. Whoever is killed in front of one leaves what
# the one before it has written, whoever is killed behind it what it has written, and whoever takes over then
# comes to the last line: a takeover moves no digit. A commit that writes no digits has no line.
SUBMITTED = "root 001100000000000, start 000000000000000"
_CLAIMED = "claimed: root 001100000000001, start 000000000000001"
_SUSPENDED = "root 001111000000001, start 000011000000001"
_RETURNED = "returned: root 001111100000001, start 000111100000001"
COMMITS = {
    "tries": f"""
{_CLAIMED}
third try: stumble#1 003111000000001
tx: book#1 001111000000001
third failure: never#1 003111000000001
{_RETURNED}
""",
    "a failed job": f"""
{_CLAIMED}
step: more#1 001111000000001
failed: root 001111100000001, start 000111100000001
""",
    "wait": f"""
{_CLAIMED}
suspended: {_SUSPENDED}, go#1 001100000000000
delivered: signal go 000000000000000
claimed: go#1 001100000000001, signal go 000000000000001
answered: go#1 001110000000001, signal go 000010000000001
step: work#1 001111000000001
returned: go#1 001111100000001, signal go 000111100000001
""",
    "wait and wait": f"""
{_CLAIMED}
suspended: {_SUSPENDED}, go#1 001100000000000
delivered: signal go 000000000000000
claimed: go#1 001100000000001, signal go 000000000000001
answered: go#1 001110000000001, signal go 000010000000001
step: work#1 001111000000001
suspended: go#1 001111000000001, signal go 000011000000001, on#1 001100000000000
delivered: signal on 000000000000000
claimed: on#1 001100000000001, signal on 000000000000001
returned: on#1 001111100000001, signal on 000111100000001
""",
    "timeout": f"""
{_CLAIMED}
suspended: {_SUSPENDED}, go#1 001100000000000, timer 000000000000000
claimed: go#1 001100000000001, timer 000000000000001
returned: go#1 001111100000001, timer 000111100000001
""",
    "sleep": f"""
{_CLAIMED}
suspended: {_SUSPENDED}, sleep#1 001100000000000, timer 000000000000000
claimed: sleep#1 001100000000001, timer 000000000000001
returned: sleep#1 001111100000001, timer 000111100000001
""",
    "early signal, late timer": f"""
delivered: signal early 000000000000000
{_CLAIMED}
taken: early#1 001111000000001, signal early 000011000000001
suspended: {_SUSPENDED}, go#1 001100000000000, timer 000000000000000
delivered: signal go 000000000000000
claimed: go#1 001100000000001, signal go 000000000000001
returned: go#1 001111100000001, signal go 000111100000001
""",
    "two waits": f"""
{_CLAIMED}
suspended: {_SUSPENDED}, a#1 001100000000000, b#1 001100000000000
delivered: signal a 000000000000000
claimed: a#1 001100000000001, signal a 000000000000001
answered: a#1 001110000000001, signal a 000010000000001
suspended: a#1 001111000000001, signal a 000011000000001, b#1 002100000000000
delivered: signal b 000000000000000
claimed: b#1 002100000000001, signal b 000000000000001
answered: b#1 002110000000001, signal b 000010000000001
returned: b#1 002111100000001, signal b 000111100000001
""",
    "group": f"""
{_CLAIMED}
born: {_SUSPENDED}, gather#1 001100000000000, child 1 queued, child 2 queued, child 3 queued
claimed: child 1 claimed
first: gather#1 001111000000001, end of a child 000011000000001, child 1 ended
claimed: child 2 claimed
second: gather#1 001111000000002, end of a child 2 000011000000002, child 2 ended
claimed: child 3 claimed
closer: gather#1 001111100000003, end of a child 3 000111100000003, join 000000000000000, child 3 ended
joins: gather#1 001111100000004, join 000000000000004
returned: join 000111100000004
""",
    "enough": f"""
{_CLAIMED}
born: {_SUSPENDED}, gather#1 001100000000000, child 1 queued, child 2 queued
claimed: child 1 claimed
closer: gather#1 001111100000001, end of a child 000111100000001, join 000000000000000, child 1 ended
claimed: child 2 claimed
too late: end of a child 000000000000000, end of a child 2 000111100000001, child 2 ended
joins: gather#1 001111100000002, join 000000000000002
answered: join 000010000000002
returned: join 000111100000002
""",
    "first failure": f"""
{_CLAIMED}
born: {_SUSPENDED}, gather#1 001100000000000, child 1 queued, child 2 queued
claimed: child 1 claimed
fails: gather#1 001111000000001, end of a child 000011000000001, join 000000000000000, child 1 ended
claimed: child 2 claimed
closer: gather#1 001111100000002, end of a child 2 000111100000002, child 2 ended
joins: gather#1 001111100000003, join 000000000000003
answered: join 000010000000003
returned: join 000111100000003
""",
    "five turns": f"""
{_CLAIMED}
step: more#1 001111000000001
turns: {_SUSPENDED}, turn 1 000000000000000
claimed: root 001111000000002, turn 1 000000000000002
step: more#1 of turn 1 001111000000001
turns: turn 1 000011000000002, turn 2 000000000000000
claimed: root 001111000000003, turn 2 000000000000003
step: more#1 of turn 2 001111000000001
turns: turn 2 000011000000003, turn 3 000000000000000
claimed: root 001111000000004, turn 3 000000000000004
step: more#1 of turn 3 001111000000001
turns: turn 3 000011000000004, turn 4 000000000000000
claimed: root 001111000000005, turn 4 000000000000005
step: more#1 of turn 4 001111000000001
turns: turn 4 000011000000005, turn 5 000000000000000
claimed: root 001111000000006, turn 5 000000000000006
step: more#1 of turn 5 001111000000001
returned: root 001111100000006, turn 5 000111100000006
""",
    "cancelled before it began": """
cancelled: root 001111100000001, cancellation 000111100000001
""",
    "cancelled while it waits": f"""
{_CLAIMED}
suspended: {_SUSPENDED}, go#1 001100000000000
cancelled: root 001111100000002, cancellation 000111100000002
""",
    "fork": f"""
{_CLAIMED}
third try: stumble#1 003111000000001
step: more#1 001111000000001
{_RETURNED}
forked: fork root 001100000000000, fork start 000000000000000, fork stumble#1 003111000000001
claimed: fork root 001100000000001, fork start 000000000000001
step: fork more#1 001111000000001
returned: fork root 001111100000001, fork start 000111100000001
""",
}
