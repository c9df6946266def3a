"""How long remote steps keep a job waiting, and how they end with it: small cases, answers by hand."""

from __future__ import annotations

from itertools import product

from tallystick.core.pictures import Activity, JobFacts, Message, Now, Picture
from tallystick.core.plans import MoveActivity, MoveMessage, MoveRemote, Refusal, WithdrawDirectives
from tallystick.core.remote.answers import printed
from tallystick.core.remote.row_prints import of_remote
from tallystick.core.remote.rows import OutboxRow, ProtocolJob, ProtocolStep
from tallystick.core.verbs.protocol import remote
from tallystick.errors import LedgerCeiling, StateTransitionError

WALL = 1_000
NOW = Now(WALL)
FLIGHT = ("DISPATCHING", "AWAITING_ACK", "IN_PROGRESS")
STATES = (*FLIGHT, "FAILED_RETRY", "SUCCEEDED")
LEASES = (None, 999, 1_000, 5_000, 9_000)
# A directive that is not out: none, asked for by workers, free for a publisher, or being published.
WAYS = ("none", "pull", "free", "published")
HOME = (0, 0, 0, "p", None, None, None, None, "{}", "{}", None, None, 0, None, None, None)
OPENED, FULL, TAKEN = 1_100_000_000_000, 1_100_099_999_999, 11_000_000_001


def step_of(name: str, state: str, lease: int | None) -> ProtocolStep:
    return ProtocolStep("j", f"0/{name}#1", 0, "t", "s", state, 0, 4, None, lease_expires_at=lease)


def directive(name: str, way: str) -> OutboxRow:
    via, next_try_at = {"pull": ("pull", 5_000), "free": ("webhook", 1_000), "published": ("webhook", 1_001)}[
        way
    ]
    about = (
        "j",
        f"0/{name}#1",
        1,
        "l",
        "PENDING",
        "",
        "",
        "{}",
        "",
        "",
        "",
        "",
        "",
        1,
        next_try_at,
        0,
        None,
        1,
    )
    return OutboxRow("o", "default", *about, "s", via)


def picture_of(*activities: Activity) -> Picture:
    about = (1, 0, None, None, 2, OPENED, 1, None, None, None, 1, 1, None, None, 0, 0)
    picture = Picture(JobFacts("j", "IN_PROGRESS", *about))
    picture.activities = {each.place: each for each in activities}
    picture.end = (3, b"x" * 32)
    return picture


def activity_of(name: str, kind: str, state: str, ledger: int = OPENED) -> Activity:
    return Activity("j", 0, name, 1, kind, state, ledger, 7, 1)


def ends() -> None:
    """A job waits for the last remote worker that may still be at a step of it."""
    for one, two in product(product(STATES, LEASES, WAYS), product(STATES[:3], LEASES[2:], WAYS[::3])):
        picture = picture_of()
        latest = 0
        for name, (state, lease, way) in (("a", one), ("b", two)):
            picture.remotes[0, name, 1] = step_of(name, state, lease)
            if way != "none":
                picture.directives[f"0/{name}#1"] = directive(name, way)
            ends_at = lease or 0
            works = state in FLIGHT and ends_at > WALL
            if works and not (state == "DISPATCHING" and way in ("pull", "free")):
                latest = max(latest, ends_at)
        assert remote.ends_at(picture, NOW) == (latest or None), (one, two)


def rearms() -> None:
    """A resumed job tries again what waited for that; what waits to be asked for has all its time."""
    for state, lease in product(STATES, LEASES):
        picture = picture_of()
        step = picture.remotes[0, "a", 1] = step_of("a", state, lease)
        waited = state == "FAILED_RETRY" and lease is None
        after = MoveRemote(step._replace(lease_expires_at=WALL, rev=5), (0, "a", 1), 4)
        assert remote.rearmed(picture, NOW) == ((after,) if waited else ()), (state, lease)
    for way, lease in product(WAYS, LEASES[1:]):
        picture = picture_of()
        picture.home = ProtocolJob("j", "default", "IN_PROGRESS", 1, *HOME)
        asked = step_of("a", "DISPATCHING", lease)._replace(options='{"start_within_ms":7000}')
        picture.remotes[0, "a", 1] = asked
        if way != "none":
            picture.directives["0/a#1"] = directive("a", way)
        after = MoveRemote(asked._replace(lease_expires_at=WALL + 7_000, rev=5), (0, "a", 1), 4)
        assert remote.rearmed(picture, NOW) == ((after,) if way == "pull" else ()), (way, lease)


def withdraws() -> None:
    """Directives are taken back of a job that has remote steps open."""
    for kind, state in product(("remote", "wait"), ("IN_PROGRESS", "DISPATCHING", "SUCCEEDED")):
        found = remote.withdraw(picture_of(activity_of("a", kind, state)))
        opened = kind == "remote" and state != "SUCCEEDED"
        assert found == ((WithdrawDirectives("j"),) if opened else ()), (kind, state)


def fails() -> None:
    """A step succeeds in progress; by which move it has failed depends on where it was."""
    said = {"value": '{"value":7,"row":"1:ab"}', "error": '{"error":{"code":"E"},"row":"1:ab"}'}
    for kind, state, what in product(("remote", "effect", ""), FLIGHT, said):
        if state != "IN_PROGRESS" and kind != "remote":
            continue
        activity = activity_of("a", kind, state) if kind else None
        picture = picture_of()
        step = picture.remotes[0, "a", 1] = step_of("a", state, 5_000)
        message = message_of("a", "result", said[what])
        try:
            taken = remote.ended_by(picture, activity, message)
        except StateTransitionError:
            assert (state != "IN_PROGRESS", what) == (True, "value"), (kind, state, what)
            continue
        assert state == "IN_PROGRESS" or what == "error", (kind, state)
        row = of_remote(step, said[what]) if kind == "remote" else printed(said[what])
        values = ("7", None) if what == "value" else (None, '{"code":"E"}')
        assert taken == ("SUCCEEDED" if what == "value" else "FAILED_FINAL", *values, row), (
            kind,
            state,
            what,
        )


def message_of(
    name: str, kind: str, said: str, ledger: int = 0, acked_at: int | None = None, *, at: bool = True
) -> Message:
    return Message("g", "j", 0, name, 1 if at else None, kind, said, None, ledger, 0, 900, 1, acked_at)


def takes() -> None:
    """What is known to be over when a job ends is taken with it: once, and only by a step that is open."""
    kinds, ledgers, acks = ("result", "signal"), (0, TAKEN), (None, 900)
    states, digits, names = (None, "IN_PROGRESS", "SUCCEEDED"), (OPENED, FULL), (True, False)
    for kind, ledger, acked_at, state, full, at in product(kinds, ledgers, acks, states, digits, names):
        case = (kind, ledger, acked_at, state, full, at)
        activity = None if state is None else activity_of("a", "effect", state, full)
        picture = picture_of(*([] if activity is None else [activity]))
        message = message_of("a", kind, '{"value":7}', ledger, acked_at, at=at)
        picture.messages["g"] = message
        found = remote.take_unheard(picture, NOW)
        unheard = kind == "result" and acked_at is None and ledger == 0 and at
        if not unheard or state != "IN_PROGRESS":
            assert found == [], case
        elif full == FULL:
            assert isinstance(found, Refusal), case
            assert isinstance(found.error, LedgerCeiling), case
        else:
            moved, heard = found
            assert isinstance(moved, MoveActivity), case
            assert isinstance(heard, MoveMessage), case
            assert moved[1:3] + moved[4:] == (7, WALL, "7", None), case
            assert (moved.activity.state, moved.activity.ledger, moved.activity.rev) == (
                "SUCCEEDED",
                1_111_000_000_001,
                8,
            ), case
            assert heard == (message._replace(ledger=TAKEN, acked_at=WALL), 0), case
            assert picture.activities[0, "a", 1].state == "SUCCEEDED", case


def judged() -> None:
    """Ask all of it."""
    for ask in (ends, rearms, withdraws, fails, takes):
        ask()
