"""Protocol jobs: what no world of theirs tells apart, because it is only told, or stands where none comes."""

from __future__ import annotations

from typing import Any

import msgspec

from tallystick.core.remote.plans import Heard
from tallystick.core.remote.policy import Policy
from tallystick.core.remote.requests import (
    AckStep,
    AnswerStep,
    CancelProtocol,
    DeliverDirective,
    ExpireStep,
    MarkSent,
    NewProtocolJob,
    NotPublished,
    StepAnswer,
    StepFence,
    SubmitCommand,
    TakeDirective,
)
from tallystick.core.remote.rows import OutboxRow, ProtocolJob, ProtocolPicture, ProtocolStep
from tallystick.core.verbs.protocol.deciding import decide
from tallystick.core.verbs.protocol.directives import directive_of, read_ref
from tallystick.core.verbs.protocol.drafts import unchanged
from tallystick.core.verbs.protocol.forking import fork
from tallystick.core.verbs.protocol.publishing import asked_anew
from tallystick.core.verbs.protocol.submitting import submit
from tallystick.core.verbs.protocol.sweeping import _may_be_at_it
from tallystick.errors import TallyError
from tests.core.verb_answers.rows import DONE, NOW, OPEN, Case
from tests.core.verb_answers.told import changed, pairs

PUSHED = Policy(via={"bank": "webhook"}).written()
HOME = ProtocolJob(
    "j", "acme", "IN_PROGRESS", 5, 2, DONE, 11_000_000_001, "p", None, None, "in", None, '{"all":1}', PUSHED,
    "s0", 0, 1, None, None, None,
)  # fmt: skip


def step(n: int, state: str = "PENDING", ledger: int = 0, **but: Any) -> ProtocolStep:
    """Return a step that was not asked for yet."""
    return ProtocolStep("j", f"s{n}", n, "work", "bank", state, ledger, 3, None)._replace(**but)


def out(n: int = 0, state: str = "AWAITING_ACK", **but: Any) -> ProtocolStep:
    """Return a step in flight."""
    about = {"attempt_no": 1, "lease_id": "r1", "lease_expires_at": 5_000, **but}
    return step(n, state, OPEN, **about)


def row(**but: Any) -> OutboxRow:
    """Return a directive that is not out."""
    first = OutboxRow(
        "o", "acme", "j", "s0", 1, "r1", "PENDING", "bank-p0", "", "{}", "DEFAULT", "0", "k", "c", "r",
        1, 900, 800, None, 2, "bank", "webhook",
    )  # fmt: skip
    return first._replace(**but)


def look(*steps: ProtocolStep, job: ProtocolJob = HOME, pending: Any = None, workflow: bool = False) -> Any:
    return ProtocolPicture(job, steps, pending, workflow)


def case(name: str, picture: Any, asked: Any, *said: str) -> Case:
    return Case(name, picture, asked, said)


def judged(one: Case) -> None:
    """Compare what comes of a case with what must."""
    picture: Any = one.pictures
    try:
        came = tuple(
            _lines(picture, one.asked(picture) if callable(one.asked) else decide(picture, one.asked, NOW))
        )
    except TallyError as error:
        came = (f"{type(error).__name__}: {error.message}",)
    assert came == one.said, f"{one.name}:\n  came " + "\n       ".join(came)


def _lines(picture: Any, plan: Any) -> list[str]:
    if not hasattr(plan, "heard"):
        return [str(plan)]
    told = [_told(picture, write) for write in plan.writes]
    if plan.told is not None:
        said = msgspec.json.decode(plan.told.payload)
        said.pop("rows", None)
        said |= {"directives": list(said["directives"])} if "directives" in said else {}
        said |= {"born": "yes"} if "born" in said else {}
        told.append(f"tells {plan.told.kind} of {plan.told.attempt}: {pairs(said)}")
    return [
        *told,
        f"{plan.heard.name} until {plan.lease_expires_at}{', cancelling' if plan.cancelling else ''}",
    ]


def _told(picture: Any, write: Any) -> str:  # noqa: PLR0911 (a case for each kind of write)
    name, *rest = write
    match type(write).__name__:
        case "MoveProtocolStep":
            return f"{name.step_id}: {changed(picture.step(name.step_id), name, rest[0])}"
        case "MoveOutbox":
            return f"directive: {changed(picture.pending, name, rest[0])}"
        case "MoveProtocolJob":
            return f"job: {changed(picture.job, name, rest[0])}"
        case "InsertOutbox":
            about = f"{name.step_id} {name.lease_id} by {name.via}, try {name.tries}"
            return f"new directive {name.outbox_id}: {about}"
        case "InsertAnswer":
            return f"{name.guid}: {name.kind} {name.ledger:015d} {name.payload or ''}".rstrip()
        case "InsertProtocolStep":
            return f"new {name.step_id}: {name.state} {name.ledger:015d} {name.input_ref} {name.attempt_no}"
    return f"new job: {name.state} {name.semaphore} {name.root_ledger:015d} at {name.current_step_id}"


FENCE = StepFence("j", "s0", 1, "r1")
RETRY = out(state="FAILED_RETRY", lease_expires_at=900)
GOOD = AnswerStep(FENCE, StepAnswer(True, "d", output_ref="made", value="7"), "r2")
BAD = AnswerStep(FENCE, StepAnswer(False, "d", error_code="NO", error_message="no money"), "r2")
SAYS_NOTHING = AnswerStep(FENCE, StepAnswer(False, "d"), "r2")
ANSWERED = "result:j:0:s0:1: result 000011000000001"
MARKS = "message={'guid': 'result:j:0:s0:1', 'digits': '000011000000001'}"
CLOSER = "message={'guid': 'result:j:0:s0:1', 'digits': '000111100000001'}"


def _failed(code: str, message: str) -> tuple[str, ...]:
    error = f'{{"type":"StepFailed","step":"s0","message":"{message}","code":"{code}","tries":1}}'
    shown = f"last_error_code={code} last_error_message={message} " if code else ""
    about = "step=s0 code=NO" if code else "step=s0"
    return (
        (
            "s0: state=FAILED_FINAL ledger=001111100000001 lease_expires_at=- acked_at=1000 "
            f'answers=[[1,"r1","d"]] {shown}completed_at=1000'
        ),
        "s1: state=CANCELLED completed_at=1000",
        "result:j:0:s0:1: result 000111100000001",
        (
            f"job: state=FAILED_FINAL semaphore=0 completed_at=1000 error={error} error_code={code} "
            f"error_message={message}"
        ),
        (
            "tells result of 1: job=IN_PROGRESS>FAILED_FINAL "
            "steps={'s0': 'AWAITING_ACK>IN_PROGRESS>FAILED_FINAL', "
            f"'s1': 'PENDING>CANCELLED'}} digits={{'s0': '001111100000001'}} {about} {CLOSER}"
        ),
        "ACCEPTED until None",
    )


NEXT = (
    "s0: state=SUCCEEDED ledger=001111000000001 lease_expires_at=- acked_at=1000 "
    'answers=[[1,"r1","d"]] output_ref=made result=7 completed_at=1000'
)
ANSWERS: list[Case] = [
    case(
        "a RESULT asks for the next step, with what this one has made",
        look(out(), step(1)),
        lambda picture: [
            f"{write.step.step_id} {write.step.input_ref}"
            for write in decide(picture, GOOD, NOW).writes
            if type(write).__name__ == "MoveProtocolStep"
        ],
        "['s0 None', 's1 made']",
    ),
    case(
        "or with what this one was given, if it has made nothing",
        look(out(input_ref="given"), step(1)),
        lambda picture: [
            f"{write.step.step_id} {write.step.input_ref}"
            for write in decide(picture, GOOD._replace(answer=StepAnswer(True, "d")), NOW).writes
            if type(write).__name__ == "MoveProtocolStep"
        ],
        "['s0 given', 's1 given']",
    ),
    case(
        "a step that has failed for good says why in the row of its job",
        look(out(), step(1)),
        BAD,
        *_failed("NO", "no money"),
    ),
    case("or that nobody has said why", look(out(), step(1)), SAYS_NOTHING, *_failed("", "")),
    case(
        "a workspace stays unless the RESULT names one",
        look(out(workspace_ref="w"), step(1)),
        lambda picture: [
            decide(picture, GOOD._replace(answer=StepAnswer(True, "d", workspace_ref=ref)), NOW)
            .writes[0]
            .step.workspace_ref
            for ref in (None, "v")
        ],
        "['w', 'v']",
    ),
    case(
        "the attempt of a fact is that of its step, whatever others had",
        look(step(0, "SUCCEEDED", DONE, attempt_no=3), out(1)),
        AckStep(FENCE._replace(step_id="s1")),
        "s1: state=IN_PROGRESS lease_expires_at=901000 acked_at=1000",
        "tells ack of 1: steps={'s1': 'AWAITING_ACK>IN_PROGRESS'} step=s1",
        "ACCEPTED until 901000",
    ),
    case(
        "a fact tells nothing of a directive that stays as it is",
        look(out(state="DISPATCHING"), pending=row(next_try_at=1_001)),
        CancelProtocol("j"),
        "job: state=CANCELLING",
        "tells cancel of 1: job=IN_PROGRESS>CANCELLING step=s0",
        "CANCELLING until 5000, cancelling",
    ),
    case(
        "a step whose end is known and not taken is due at no time",
        look(out(state="IN_PROGRESS", lease_expires_at=None)),
        ExpireStep("j", "r2"),
        "NOT_DUE until None",
    ),
    case(
        "a directive goes to the topic of its prefix",
        look(RETRY, job=HOME._replace(options=Policy(topic_prefix="all").written())),
        lambda picture: [
            write.row.topic
            for write in decide(picture, ExpireStep("j", "r2"), NOW).writes
            if type(write).__name__ == "InsertOutbox"
        ],
        "['all-p14']",
    ),
    case(
        "an ACK that came first keeps its instant",
        look(out(state="IN_PROGRESS", acked_at=700), step(1)),
        lambda picture: decide(picture, GOOD, NOW).writes[0].step.acked_at,
        "700",
    ),
    case(
        "a semaphore that counts other things",
        look(out(), job=HOME._replace(semaphore=2)),
        GOOD,
        "InvariantBroken: job j: its semaphore comes to 1; see `tally doctor`",
    ),
    case(
        "an ACK tells the moves of the step alone: no digits, no message, no directive",
        look(out(), step(1)),
        AckStep(FENCE),
        "s0: state=IN_PROGRESS lease_expires_at=901000 acked_at=1000",
        "tells ack of 1: steps={'s0': 'AWAITING_ACK>IN_PROGRESS'} step=s0",
        "ACCEPTED until 901000",
    ),
    case(
        "one that overtakes the note of publishing tells of the directive",
        look(out(state="DISPATCHING"), step(1), pending=row()),
        AckStep(FENCE),
        "s0: state=IN_PROGRESS lease_expires_at=901000 acked_at=1000",
        "directive: state=SENT sent_at=1000",
        "tells ack of 1: steps={'s0': 'DISPATCHING>AWAITING_ACK>IN_PROGRESS'} step=s0 directives=['o']",
        "ACCEPTED until 901000",
    ),
]
FAILED_MOVES = [
    case(
        f"a step is dropped by the end of a job that {what}",
        look(out(), step(1)),
        lambda picture, request=request: decide(picture, request, NOW).writes[1].step.state,
        "CANCELLED",
    )
    for what, request in (("fails", BAD), ("is cancelled", CancelProtocol("j", True)))
]
TRIES: list[Case] = [
    case(
        "a directive that is out while the row of its step is not: it is a copy",
        look(out(state="AWAITING_ACK"), pending=row()),
        MarkSent(FENCE),
        "DUPLICATE until 5000",
    ),
    case(
        "a step that is to be sent, and its directive is gone",
        look(out(state="DISPATCHING")),
        MarkSent(FENCE),
        "STALE until 5000",
    ),
    case(
        "the last try has failed: operators read more of that than tenants",
        look(out(state="DISPATCHING"), pending=row(tries=4), job=HOME._replace(semaphore=1)),
        lambda picture: _given_up(picture, NotPublished(FENCE, 4, "at 10.0.0.7: refused")),
        "at 10.0.0.7: refused | the service bank could not be reached",
    ),
    case(
        "nobody has asked for it in time: both read the same",
        look(
            out(state="DISPATCHING", lease_expires_at=900),
            pending=row(via="pull"),
            job=HOME._replace(semaphore=1),
        ),
        lambda picture: _given_up(picture, ExpireStep("j", "r2")),
        "no remote worker asked for the directive in time | no remote worker asked for the directive in time",
    ),
    case(
        "a step that waits for a directive which is gone: it is the relays'",
        look(out(state="DISPATCHING", lease_expires_at=900)),
        ExpireStep("j", "r2"),
        "NOT_DUE until 900",
    ),
    case(
        "a try of a job whose steps are over",
        look(step(0, "SUCCEEDED"), pending=row()),
        TakeDirective("j", "s0", 1),
        "STALE until None",
    ),
    case(
        "no directive to take",
        look(out(state="DISPATCHING")),
        TakeDirective("j", "s0", 1),
        "STALE until 5000",
    ),
    case(
        "one of another attempt",
        look(out(state="DISPATCHING"), pending=row(attempt_no=2)),
        TakeDirective("j", "s0", 1),
        "STALE until 5000",
    ),
    case(
        "time to be asked for: none of a job whose steps are over",
        look(step(0, "SUCCEEDED"), pending=row(via="pull")),
        lambda picture: asked_anew(picture, NOW),
        "None",
    ),
    case("none without a directive", look(out()), lambda picture: asked_anew(picture, NOW), "None"),
    case(
        "none of one that is pushed",
        look(out(), pending=row()),
        lambda picture: asked_anew(picture, NOW),
        "None",
    ),
    case(
        "and all of it of one that is pulled",
        look(out(), pending=row(via="pull")),
        lambda picture: asked_anew(picture, NOW).lease_expires_at,
        "86401000",
    ),
]


def _given_up(picture: Any, request: Any) -> str:
    writes = {type(write).__name__: write for write in decide(picture, request, NOW).writes}
    return f"{writes['MoveOutbox'].row.reason} | {writes['MoveProtocolJob'].job.error_message}"


AT_IT: list[Case] = [
    case(
        f"may a remote worker be at it: {what}",
        look(one, pending=pending),
        lambda picture: _may_be_at_it(picture, NOW),
        said,
    )
    for what, one, pending, said in (
        ("all is over", step(0, "SUCCEEDED"), None, "False"),
        ("it was not asked for", step(0), None, "False"),
        ("its directive is out", out(), None, "True"),
        ("a publisher has it", out(state="DISPATCHING"), row(next_try_at=1_001), "True"),
        ("it waits for a publisher", out(state="DISPATCHING"), row(next_try_at=1_000), "False"),
        ("it waits to be asked for", out(state="DISPATCHING"), row(via="pull", next_try_at=1_001), "False"),
    )
]
ANY_ORDER: list[Case] = [
    case(
        "what changes nothing tells until when",
        look(out()),
        lambda picture: unchanged(picture, Heard.STALE),
        "STALE until 5000",
    ),
    case(
        "or that nothing is open",
        look(step(0, "SUCCEEDED")),
        lambda picture: unchanged(picture, Heard.STALE),
        "STALE until None",
    ),
]


WORKFLOW = HOME._replace(options="{}")


def in_workflow(one: ProtocolStep, **but: Any) -> Any:
    named = one._replace(step_id="0/pay#1", options=PUSHED)
    return look(named, job=WORKFLOW._replace(**but), workflow=True)


OF_STEP = StepFence("j", "0/pay#1", 1, "r1")
TOLD_OK = 'result:j:0:pay#1:1: result 000000000000000 {"value":7}'
STEPS: list[Case] = [
    case(
        "a step of a workflow that has succeeded is ended by its workflow: it is told",
        in_workflow(out()),
        GOOD._replace(fence=OF_STEP),
        (
            '0/pay#1: state=IN_PROGRESS lease_expires_at=- acked_at=1000 answers=[[1,"r1","d"]] '
            "output_ref=made result=7"
        ),
        TOLD_OK,
        "ACCEPTED until None",
    ),
    case(
        "so is one that has failed",
        in_workflow(out()),
        BAD._replace(fence=OF_STEP),
        (
            '0/pay#1: state=IN_PROGRESS lease_expires_at=- acked_at=1000 answers=[[1,"r1","d"]] '
            "last_error_code=NO "
            "last_error_message=no money"
        ),
        (
            "result:j:0:pay#1:1: result 000000000000000 "
            '{"error":{"type":"NO","message":"no money","code":"NO","tries":1}}'
        ),
        "ACCEPTED until None",
    ),
    case(
        "one that goes on is moved as every other",
        in_workflow(out()),
        AckStep(OF_STEP),
        "0/pay#1: state=IN_PROGRESS lease_expires_at=901000 acked_at=1000",
        "ACCEPTED until 901000",
    ),
    case(
        "one that waits for another try",
        in_workflow(RETRY),
        ExpireStep("j", "r2", True, "0/pay#1"),
        "0/pay#1: state=DISPATCHING ledger=002100000000000 attempt_no=2 lease_id=r2 lease_expires_at=811000 "
        "input_ref=in resolved_mode=DEFAULT lane=14 routing_key_used=acme decision_source=global "
        "decision_reason=the configuration of all tenants",
        "new directive j:0/pay#1:2: 0/pay#1 r2 by webhook, try 1",
        "DONE until 811000",
    ),
    *(
        case(
            f"of a job that {what} it waits for that",
            in_workflow(RETRY, **but),
            ExpireStep("j", "r2", True, "0/pay#1"),
            "0/pay#1: lease_expires_at=-",
            said,
        )
        for what, but, said in (
            ("is held", {"hold": "PAUSED"}, "DONE until None"),
            ("is to end", {"state": "CANCELLING"}, "DONE until None, cancelling"),
        )
    ),
    case(
        "a protocol job that is held keeps the instant",
        look(RETRY, job=HOME._replace(hold="PAUSED")),
        ExpireStep("j", "r2"),
        "NOT_DUE until 900",
    ),
    case(
        "a directive that is asked for after its job was asked to end",
        look(
            out(state="DISPATCHING")._replace(step_id="0/pay#1", options="{}"),
            job=WORKFLOW._replace(state="CANCELLING"),
            pending=row(step_id="0/pay#1", via="pull"),
            workflow=True,
        ),
        DeliverDirective("j", "0/pay#1", 1, "w"),
        "0/pay#1: lease_expires_at=-",
        "directive: state=FAILED_FINAL reason=withdrawn",
        (
            "result:j:0:pay#1:1: result 000000000000000 "
            '{"error":{"type":"WITHDRAWN","message":"the job was asked to end '
            'before a remote worker had the directive","code":"WITHDRAWN","tries":1}}'
        ),
        "CANCELLED until None, cancelling",
    ),
]
ABOUT = NewProtocolJob("p", "1", None, "hash", 1)
COMMAND = SubmitCommand(HOME, ABOUT, (step(0), step(1)), None, "r1")  # type: ignore[arg-type]  # not looked at
FORKED = look(
    step(0, "SUCCEEDED", DONE, attempt_no=2),
    step(1, "FAILED_FINAL", DONE, attempt_no=1),
    step(2, "CANCELLED"),
    job=HOME._replace(state="FAILED_FINAL"),
)


def forks(at: str | None) -> Any:
    return lambda picture: [
        f"{write.step.step_id} {write.step.state}"
        for write in fork(picture, ABOUT, ("n", "r1"), at, NOW, retry=False).writes
        if type(write).__name__ == "InsertProtocolStep"
    ]


_NOT = (
    "NoSuchStep: job j cannot be forked at {}: a step is asked for again when all before it "
    "have succeeded; its steps: "
)
_STEPS = "s0 (SUCCEEDED), s1 (FAILED_FINAL), s2 (CANCELLED)"
BIRTHS: list[Case] = [
    case(
        "a job is born with its first directive",
        look(step(0)),
        lambda _picture: submit(COMMAND, NOW),
        "new job: DISPATCHING 2 001111000000001 at s0",
        "new s0: DISPATCHING 001100000000000 in 1",
        "new s1: PENDING 000000000000000 None 0",
        "new directive j:s0:1: s0 r1 by webhook, try 0",
        "tells submit of 1: job=QUEUED>DISPATCHING steps={'s0': 'PENDING>DISPATCHING'} "
        "digits={'s0': '001100000000000'} step=s0 born=yes directives=['j:s0:1']",
        "CREATED until 811000",
    ),
    case(
        "a fork begins where the other has failed",
        FORKED,
        forks(None),
        "['s0 SUCCEEDED', 's1 DISPATCHING', 's2 PENDING']",
    ),
    case("or at a step before that", FORKED, forks("s0"), "['s0 DISPATCHING', 's1 PENDING', 's2 PENDING']"),
    case("not behind one that has not succeeded", FORKED, forks("s2"), _NOT.format("s2") + _STEPS),
    case("not at a step that is not there", FORKED, forks("s9"), _NOT.format("s9") + _STEPS),
    case(
        "nor at the end of one that has succeeded",
        look(step(0, "SUCCEEDED", DONE, attempt_no=1), job=HOME._replace(state="SUCCEEDED")),
        forks(None),
        _NOT.format("its end") + "s0 (SUCCEEDED)",
    ),
    case(
        "the error names the step",
        FORKED,
        lambda picture: [_step_of(picture, "s9"), _step_of(look(step(0, "SUCCEEDED", DONE)), None)],
        "['s9', '']",
    ),
    case(
        "the only step is counted by the semaphore of the fork, not what has ended",
        FORKED,
        lambda picture: fork(picture, ABOUT, ("n", "r1"), None, NOW, retry=False).writes[0].job.semaphore,
        "2",
    ),
]


def _step_of(picture: Any, at: str | None) -> object:
    try:
        forks(at)(picture)
    except TallyError as error:
        return error.fields["step"]
    return None


def _said(**but: Any) -> Any:
    return lambda _picture: msgspec.json.decode(directive_of(HOME, step(0, **but), row()))


DIRECTIVES: list[Case] = [
    case(
        "a directive has what its step is given",
        look(),
        lambda p: _said(payload='{"one":1}')(p)["payload"],
        "{'one': 1}",
    ),
    case("or what its job was", look(), lambda p: _said()(p)["payload"], "{'all': 1}"),
    case("it has no members without a value", look(), lambda p: "workspace_ref" in _said()(p), "False"),
    case("a reference is text", look(), lambda _: read_ref("s3://in"), "s3://in"),
    case("or an object", look(), lambda _: bytes(read_ref('{"uri":1}')).decode(), '{"uri":1}'),  # type: ignore[call-overload]  # raw JSON
    case("or nothing", look(), lambda _: read_ref(None), "None"),
]
CASES = (*ANSWERS, *FAILED_MOVES, *TRIES, *AT_IT, *ANY_ORDER, *STEPS, *BIRTHS, *DIRECTIVES)
