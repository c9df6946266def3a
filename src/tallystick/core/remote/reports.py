"""Reports of remote workers: one reading and one answer, whichever way they come."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Final, NamedTuple

from tallystick.core.json_forms.strict_json import decode_strict
from tallystick.core.limits import check_text
from tallystick.core.remote.plans import Heard, Hearing
from tallystick.core.remote.requests import AckStep, AnswerStep, Callback, RenewStep, StepFence
from tallystick.core.remote.wire import Ack, ResultReport, read
from tallystick.errors import BadInput, TallyError

REPORT_BYTES_MAX: Final = 256 * 1024
_OK: Final = 200
STATUS: Final = {
    Heard.ACCEPTED: _OK,
    Heard.DUPLICATE: _OK,
    Heard.CANCELLING: _OK,
    Heard.STALE: 409,
    Heard.EXPIRED: 409,
    Heard.CONFLICT: 409,
    Heard.UNKNOWN: 404,
}
"""How a report is answered, in the numbers of HTTP."""


class ReportAnswer(NamedTuple):
    """What the sender of a report is told: a number of HTTP, and what became of it."""

    status: int
    heard: str | None = None
    cancelling: bool | None = None
    lease_ms: int | None = None
    token: str | None = None

    def members(self) -> dict[str, object]:
        """Return what is said of it, without what there is nothing to say of."""
        return {name: value for name, value in self._asdict().items() if value is not None}


_TEXT: Final = rb'("[^"\\\x00-\x1f\x80-\xff]{1,512}")'
_MEMBERS: Final = {
    name: re.compile(rb'"%s"\s{0,16}:\s{0,16}%s' % (name.encode(), value))
    for name, value in (
        ("jobId", _TEXT),
        ("stepId", _TEXT),
        ("attempt_no", rb"([1-9][0-9]{0,8})(?![0-9.eE])"),
        ("lease_id", _TEXT),
    )
}

REFUSED: Final = ReportAnswer(401)
"""The answer to a report without a token that is right: it says nothing else."""


def read_report(
    kind: str, body: bytes | object, lease_id: str, *, relays: bool, keys_max: int | None = None
) -> Callback:
    """Return the request that a report comes to, in JSON or read from it, or raise the path of what is wrong.

    >>> body = b'{"jobId": "j", "stepId": "s", "attempt_no": 1, "lease_id": "l"}'
    >>> read_report("ack", body, "", relays=False)
    AckStep(fence=StepFence(job_id='j', step_id='s', attempt_no=1, lease_id='l'))
    """
    if isinstance(body, bytes) and len(body) > REPORT_BYTES_MAX:
        check_text("report", body.decode("utf-8", "replace"), REPORT_BYTES_MAX)
    match kind:
        case "ack":
            return AckStep(read(Ack, body, "ACK", keys_max).fence)
        case "heartbeat":
            return RenewStep(read(Ack, body, "heartbeat", keys_max).fence)
        case "result":
            result = read(ResultReport, body, "RESULT", keys_max)
            return AnswerStep(result.fence, result.answer(), lease_id, relays)
        case _:
            raise BadInput(f"a report is an ack, a heartbeat or a result, not {kind!r}", kind=kind)


def named_fence(body: bytes) -> StepFence | None:
    """Return the attempt that a report names, also one that cannot be read, or is cut off.

    A token proves that its bearer was given this attempt, so that it may hear what is wrong with the report.

    >>> named_fence(b'{"lease_id": "l", "attempt_no": 1, "stepId": "s", "jobId": "j", "value": [')
    StepFence(job_id='j', step_id='s', attempt_no=1, lease_id='l')
    >>> named_fence(b'{"jobId": "j"}') is None
    True
    """
    try:
        said = decode_strict(body)
    except TallyError:
        found = {name: pattern.search(body) for name, pattern in _MEMBERS.items()}
        said = {name: json.loads(each[1]) for name, each in found.items() if each is not None}
    if not isinstance(said, dict):
        return None
    job_id, step_id, attempt_no, lease_id = (said.get(name) for name in _MEMBERS)
    texts = all(isinstance(each, str) for each in (job_id, step_id, lease_id))
    if not texts or type(attempt_no) is not int:
        return None
    return StepFence(str(job_id), str(step_id), attempt_no, str(lease_id))


def told(request: Callback, hearing: Hearing, renewed: Callable[[int], tuple[int, str]]) -> ReportAnswer:
    """Return the answer to a report that reached the books.

    While the work goes on, `renewed` says for how long the lease still lasts, and gives a token until then.
    """
    answer = ReportAnswer(STATUS[hearing.heard], hearing.heard.name, hearing.cancelling)
    ends = hearing.lease_expires_at
    if answer.status != _OK or ends is None or isinstance(request, AnswerStep):
        return answer
    lease_ms, token = renewed(ends)
    return answer._replace(lease_ms=lease_ms, token=token)
