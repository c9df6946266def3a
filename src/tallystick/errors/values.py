"""What cannot be accepted as it is: names, numbers, texts and sizes that come from outside."""

from __future__ import annotations

from tallystick.errors.root import TallyError


class BadInput(TallyError):
    """A value cannot be accepted as it is."""

    code = "BAD_INPUT"
    exit_code = 4
    http_status = 422


class NotCanonical(BadInput):
    """This value has no canonical JSON form."""

    code = "NOT_CANONICAL"


class BadJson(BadInput):
    """These bytes are not strict JSON."""

    code = "BAD_JSON"
    http_status = 400


class PayloadTooLarge(BadInput):
    """There are more bytes than the limit allows."""

    code = "PAYLOAD_TOO_LARGE"
    http_status = 413


class BadName(BadInput):
    """This name breaks the naming rule."""

    code = "BAD_NAME"


class BadDuration(BadInput):
    """This is not a duration."""

    code = "BAD_DURATION"


class BadValue(BadInput):
    """This value cannot be kept as JSON, or does not fit its annotation."""

    code = "BAD_VALUE"


class BadCommand(BadInput):
    """No protocol takes a command like this."""

    code = "BAD_COMMAND"
    http_status = 400


class BadSchedule(BadInput):
    """This is not a timetable for a schedule."""

    code = "BAD_SCHEDULE"


class PayloadSealed(BadInput):
    """This was stored through a payload_codec; give Tally the same codec, with the same key, to read it."""

    code = "PAYLOAD_SEALED"
