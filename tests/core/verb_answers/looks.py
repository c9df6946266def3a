"""What each request wants to see of its job, and small verbs that need no picture."""

from __future__ import annotations

from typing import Any

from tallystick.core.effects.requests import CallEffect, EndEffect, Intent, Says, SettleEffect, TakeProbe
from tallystick.core.effects.rows import Came, EffectRules, answer_of, taken_from
from tallystick.core.verbs import control_requests
from tallystick.core.verbs.forking import decide_fork, kept_before
from tallystick.core.verbs.holds import decide_hold, decide_resume, stops_here
from tallystick.core.verbs.hooks import hook_of, named
from tallystick.core.verbs.trimming import last_to_go, trims_now
from tallystick.core.verbs.wants import wanted
from tallystick.errors import TallyError
from tallystick.store.api import NewLease, TakeAnswer, TurnEnd, Wait, Wake
from tests.core.verb_answers.ends import returns
from tests.core.verb_answers.groups import IDS, spawns
from tests.core.verb_answers.rows import CHAIN, FENCE, NOTHING, Case, case, of
from tests.core.verb_answers.takes import CHARGE
from tests.core.verb_answers.waits import A1, B1, JOINED, PAID, SLEEP, waiting

TIMER_A, JOIN = "j:0:a#1:timer", "join:j:0:gather#1"
ANSWER = answer_of("j", (0, "pay", 1))


def sees(request: Any) -> Any:
    """Ask what a request wants to see, of what is not so by itself."""

    def asked(_pictures: Any) -> str:
        wants = wanted(request)
        default = type(wants)._field_defaults
        told = {name: value for name, value in wants._asdict().items() if value != default.get(name)}
        return " ".join(f"{name}={value}" for name, value in told.items())

    return asked


def taking(wait: Wait, occurrence: int | None) -> TakeAnswer:
    return TakeAnswer(
        FENCE, CHAIN, 0, wait, Wake("s", "signal", 0, wait.name, occurrence, None, taken=False), 990
    )


INTENT = Intent(("t", "pay", "k"), "hash", "{}", EffectRules(1).written())
CALL = CallEffect(FENCE, CHAIN, (0, "pay", 1), INTENT, NewLease("l", "w", 1), 990, asked=False, last="")
LOOKS: list[Case] = [
    case(f"to see for {what}", NOTHING, sees(request), said)
    for what, request, said in (
        ("a signal that has entered no wait", taking(A1, None), "job_id=j guids=('s',)"),
        ("one that has", taking(A1, 1), f"job_id=j guids=('s', '{TIMER_A}')"),
        ("the result of a remote step", taking(CHARGE, 1), "job_id=j guids=('s',) remote=(0, 'pay', 1)"),
        ("a wait", waiting(A1), f"job_id=j open=True guids=('{TIMER_A}',) signals=('a',)"),
        ("a sleep", waiting(SLEEP, driver="s"), f"job_id=j open=True guids=('s', '{TIMER_A}')"),
        (
            "two waits and some signals ahead",
            waiting(A1, SLEEP, ahead=3),
            f"job_id=j open=True guids=('{TIMER_A}', '{TIMER_A}') signals=('a',) ahead=3",
        ),
        ("a group", waiting(JOINED), f"job_id=j open=True guids=('{JOIN}',)"),
        ("an effect", waiting(PAID), f"job_id=j open=True guids=('{ANSWER}', '{taken_from(ANSWER)}')"),
        ("a remote step", waiting(CHARGE), "job_id=j open=True remotes=True results=True"),
        (
            "a remote step beside a wait",
            waiting(CHARGE, B1),
            "job_id=j open=True guids=('j:0:b#1:timer',) signals=('b',) remotes=True results=True",
        ),
        ("the end of a job", returns(), "job_id=j open=True ends=True"),
        ("the end by a message", returns("s"), "job_id=j open=True guids=('s',) ends=True"),
        (
            "the first children",
            spawns(0, 1),
            f"job_id=j place=(0, 'gather', 1) children={(IDS[0], IDS[1], IDS[2])}",
        ),
        (
            "the last children",
            spawns(1, 2),
            (
                f"job_id=j guids=('{JOIN}',) place=(0, 'gather', 1) early=True "
                f"children={(IDS[1], IDS[2], IDS[2])}"
            ),
        ),
        ("no children", spawns(), f"job_id=j place=(0, 'gather', 1) children=('{IDS[2]}',)"),
        ("a probe", TakeProbe("j", "0/pay#1", 3, 1), "job_id=j end=True effects=True"),
        ("what a person says", SettleEffect("j", Says.HAPPENED, "ann"), "job_id=j end=True effects=True"),
        (
            "an intent",
            CALL,
            (
                f"job_id=j guids=('{ANSWER}', '{taken_from(ANSWER)}') place=(0, 'pay', 1) effects=True "
                "keys=(('t', 'pay', 'k'),)"
            ),
        ),
        (
            "the end of a call",
            EndEffect(FENCE, CHAIN, (0, "pay", 1), "l", Came.HAPPENED, "7", None, 990),
            "job_id=j place=(0, 'pay', 1) effects=True",
        ),
    )
]


def of_tenant(owner: str | None) -> str:
    """Judge whose a job is."""
    try:
        control_requests.OfTenant("j", "acme").judge(owner)
    except TallyError as error:
        return type(error).__name__
    return "go on"


def _content(fork: control_requests.ForkJob) -> str:
    return fork.content_hash


FORK = control_requests.ForkJob("j", "n", ("work", 1))
TENANTS: list[Case] = [
    case("a tenant: its own job", NOTHING, of(of_tenant, "acme"), "go on"),
    case("a tenant: that of another", NOTHING, of(of_tenant, "other"), "NotFound"),
    case("a tenant: none", NOTHING, of(of_tenant, None), "NotFound"),
    case("a tenant: a fork without an id reserves none", NOTHING, lambda _: FORK.key, "-"),
    case("a tenant: one with an id does", NOTHING, lambda _: FORK._replace(id="i").key, "fork:j:i"),
    case(
        "a tenant: a fork with keys of its own is another one",
        NOTHING,
        lambda _: _content(FORK) != _content(FORK._replace(fresh_keys=True)),
        "yes",
    ),
    case(
        "a tenant: what a fork without them is has not changed since there are such",
        NOTHING,
        lambda _: _content(FORK),
        "dea8ee7254a7e7e90d0407ac5bb5e2a4c2b7f0a373beaf48d1d0363f951801ea",
    ),
]
WISH: dict[str, Any] = {
    "retry": False, "failed": False, "retried": False, "moved": False, "reserved": None, "asked": None,
}  # fmt: skip
RETRY = {"retry": True, "failed": True}
FORKS: list[Case] = [
    case(f"a wish: {what}", NOTHING, of(decide_fork, **{**WISH, **wish}), said)
    for what, wish, said in (
        ("a fork", {}, "MAKE"),
        (
            "a fork of a job that was retried, with a key that has moved",
            {"retried": True, "moved": True},
            "MAKE",
        ),
        ("the same under its id", {"reserved": "a", "asked": "a"}, "KNOWN"),
        ("another under its id", {"reserved": "a", "asked": "b"}, "CONFLICT"),
        ("a retry", RETRY, "MAKE"),
        ("a second one", {**RETRY, "retried": True}, "KNOWN"),
        ("of a job that has not failed", {"retry": True}, "NOT_FAILED"),
        ("of one whose key has moved", {**RETRY, "moved": True}, "KEY_MOVED"),
        ("of one that has not failed and whose key has moved", {"retry": True, "moved": True}, "NOT_FAILED"),
    )
]
KEPT: list[Case] = [
    case("to keep: all records", NOTHING, of(kept_before, [1, 4, 7], None), "3"),
    case("to keep: those before a point", NOTHING, of(kept_before, [1, 4, 7], 4), "1"),
    case("to keep: none", NOTHING, of(kept_before, [1, 4, 7], 1), "0"),
]
_ENDS = [TurnEnd(turn, 10 * turn + 10, b"", turn) for turn in range(6)]


def _goes(*args: Any) -> object:
    end = last_to_go(*args)
    return None if end is None else end.dimension


SMALL: list[Case] = [
    *(
        case(f"to hold a job that is {told or 'free'}", NOTHING, of(decide_hold, **_flags(told)), said)
        for _flags in [
            lambda told: {n: n in told for n in ("final", "cancelling", "held", "live")},
        ]
        for told, said in (
            ((), "HELD"),
            (("live",), "ASKED"),
            (("held",), "ALREADY"),
            (("held", "live"), "ALREADY"),
            (("cancelling", "held"), "ENDED"),
            (("cancelling",), "ENDED"),
            (("final", "held"), "ENDED"),
            (("final",), "ENDED"),
        )
    ),
    *(
        case(f"to resume a job: {final}, {held}", NOTHING, of(decide_resume, final=final, held=held), said)
        for final, held, said in ((False, False, "NOT_HELD"), (False, True, "FREE"), (True, True, "ENDED"))
    ),
    *(
        case(
            f"a segment that is held {held}, and to end {ends}",
            NOTHING,
            of(stops_here, held=held, cancelling=ends),
            said,
        )
        for held, ends, said in ((True, False, "yes"), (True, True, "no"), (False, False, "no"))
    ),
    *(
        case(f"the hook of {state}, {hold}, {told}", NOTHING, of(hook_of, state, hold, told), said)
        for state, hold, told, said in (
            ("SUCCEEDED", None, None, "succeeded"),
            ("SUCCEEDED", "PAUSED", None, "succeeded"),
            ("QUEUED", None, None, "-"),
            ("QUEUED", "PAUSED", None, "held"),
            ("FAILED_FINAL", None, "missed", "held"),
        )
    ),
    case("the names of hooks", NOTHING, of(named, ["held", "failed"]), "failed held"),
    case("no hooks", NOTHING, of(named, []), "-"),
    *(
        case(f"turn {turn} of a loop that keeps 3", NOTHING, of(trims_now, turn, 3), said)
        for turn, said in ((1, "no"), (2, "no"), (4, "no"), (5, "yes"), (6, "no"), (8, "yes"))
    ),
    *(
        case(
            f"turns that go behind fact {before}, at most {most} facts",
            NOTHING,
            of(_goes, ends, before, 5, 2, most),
            said,
        )
        for ends, before, most, said in (
            (_ENDS, 0, 1, "0"),
            (_ENDS, 0, 25, "1"),
            (_ENDS, 0, 30, "2"),
            (_ENDS, 0, 1_000, "3"),
            (_ENDS[2:], 20, 15, "2"),
            (_ENDS[4:], 40, 1_000, "-"),
        )
    ),
]
CASES = (*LOOKS, *TENANTS, *FORKS, *KEPT, *SMALL)
