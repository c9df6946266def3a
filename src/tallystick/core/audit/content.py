"""The content of a submission, hashed again from its row."""

from __future__ import annotations

import msgspec

from tallystick.core.audit.book import Findings
from tallystick.core.json_forms.canonical import CANON_OF_ROW, idempotency_hash
from tallystick.core.json_forms.sealed import is_sealed
from tallystick.core.values import NewJob
from tallystick.errors import NotCanonical


def judge_content(content: NewJob, findings: Findings) -> None:
    """Compare the hash by which a job was submitted with what its row says was submitted.

    In the older form the version of the workflow stands for that of the schema, and the order of a set in the
    payload is not the one that was hashed. Which arrays were sets the row does not tell, so such a row is
    judged only if its payload has no array of two or more.
    """
    if content.canon_version is None or content.idempotency_hash is None:
        if (content.canon_version, content.idempotency_hash, content.idempotency_key) != (None, None, None):
            findings.note("content", "the job has a part of what a submission is known by, and not all of it")
        return
    if is_sealed(content.payload):
        return  # the hash is over the plain content, which only a program with its codec can read
    is_older = content.canon_version < CANON_OF_ROW
    try:
        payload = msgspec.json.decode(content.payload)
        made = idempotency_hash(
            tenant_id=content.tenant_id,
            request_type=content.request_type or "",
            input_ref=_told(content.input_ref),
            output_ref=_told(content.output_ref),
            payload=payload,
            schema_version=(content.version or None) if is_older else content.schema_version,
        )
    except (msgspec.DecodeError, NotCanonical) as error:
        findings.note("content", f"the payload cannot be hashed: {error}")
        return
    if made == content.idempotency_hash or (is_older and _has_array(payload)):
        return
    findings.note(
        "content",
        f"the hash of its content is {made[:12]}…, the job says {content.idempotency_hash[:12]}…",
    )


def _told(ref: str | None) -> object:
    """Return a reference as it was submitted: an object is kept as JSON, and no text begins like one."""
    return msgspec.json.decode(ref) if ref is not None and ref.startswith("{") else ref


def _has_array(value: object) -> bool:
    if isinstance(value, dict):
        return any(map(_has_array, value.values()))
    return isinstance(value, list) and (len(value) > 1 or any(map(_has_array, value)))
