"""A request about a protocol job, and its picture, make a plan."""

from __future__ import annotations

from typing import assert_never

from tallystick.core.pictures import Now
from tallystick.core.remote.plans import ProtocolPlan
from tallystick.core.remote.requests import (
    AckStep,
    AnswerStep,
    CancelProtocol,
    DeliverDirective,
    DispatchStep,
    ExpireStep,
    MarkSent,
    NotPublished,
    ProtocolRequest,
    RenewStep,
    TakeDirective,
)
from tallystick.core.remote.rows import ProtocolPicture
from tallystick.core.verbs.protocol.callbacks import ack, answer, renew
from tallystick.core.verbs.protocol.publishing import deliver, dispatch, not_published, sent, take
from tallystick.core.verbs.protocol.sweeping import cancel, expire


def decide(  # noqa: C901, PLR0911 (one line for each request)
    picture: ProtocolPicture, request: ProtocolRequest, now: Now
) -> ProtocolPlan:
    """Return what a request comes to; what a machine or a ledger does not allow raises."""
    match request:
        case DispatchStep():
            return dispatch(picture, request, now)
        case TakeDirective():
            return take(picture, request, now)
        case DeliverDirective():
            return deliver(picture, request, now)
        case MarkSent():
            return sent(picture, request, now)
        case NotPublished():
            return not_published(picture, request, now)
        case AckStep():
            return ack(picture, request, now)
        case RenewStep():
            return renew(picture, request, now)
        case AnswerStep():
            return answer(picture, request, now)
        case ExpireStep():
            return expire(picture, request, now)
        case CancelProtocol():
            return cancel(picture, request, now)
    assert_never(request)
