"""Signatures of webhooks, in the form of the Standard Webhooks: any of its libraries can check them.

The code signs identifier, time and body. A receiver compares it before it reads anything else, and refuses
what is older than five minutes.
"""

from __future__ import annotations

import hmac
from base64 import b64decode, b64encode
from collections.abc import Mapping
from hashlib import sha256
from typing import Final

from tallystick.errors import BadInput, BadSignature

__all__ = ["secret_bytes", "signed", "verify"]

ID: Final = "webhook-id"
TIMESTAMP: Final = "webhook-timestamp"
SIGNATURE: Final = "webhook-signature"
TOLERANCE_SECONDS: Final = 300
_PREFIX: Final = "whsec_"
_SECRET_BYTES_MIN: Final = 24


def secret_bytes(secret: str) -> bytes:
    """Return what signs: the text itself, or what `whsec_…` encodes; refuse what can be guessed.

    >>> secret_bytes("whsec_" + "c2VjcmV0" * 4)
    b'secretsecretsecretsecret'
    """
    try:
        key = b64decode(secret.removeprefix(_PREFIX)) if secret.startswith(_PREFIX) else secret.encode()
    except ValueError as error:
        raise BadInput("what follows whsec_ in the secret of a webhook is not base64") from error
    if len(key) < _SECRET_BYTES_MIN:
        raise BadInput(f"the secret of a webhook has at least {_SECRET_BYTES_MIN} bytes; draw a random one")
    return key


def signed(secret: bytes, identifier: str, seconds: int, body: bytes) -> dict[str, str]:
    """Return the headers that let the receiver of a body know who sent it, and when."""
    told = b64encode(_mac(secret, identifier, str(seconds), body)).decode()
    return {ID: identifier, TIMESTAMP: str(seconds), SIGNATURE: f"v1,{told}"}


def verify(secret: str, headers: Mapping[str, str], body: bytes, now: int) -> str:
    """Return the identifier of a webhook whose signature is right, or raise `BadSignature`.

    `now` is the time in seconds. A receiver that gets the same identifier twice acts once.
    """
    told = {name.lower(): value for name, value in headers.items()}
    identifier, stamp = told.get(ID, ""), told.get(TIMESTAMP, "")
    if not stamp.isascii() or not stamp.isdigit() or abs(now - int(stamp[:12])) > TOLERANCE_SECONDS:
        raise BadSignature("the webhook has no time, or one that is more than five minutes away")
    expected = b64encode(_mac(secret_bytes(secret), identifier, stamp, body)).decode()
    for each in told.get(SIGNATURE, "").split(" "):
        version, _, mac = each.partition(",")
        if version == "v1" and hmac.compare_digest(mac.encode(), expected.encode()):
            return identifier
    raise BadSignature("the signature of the webhook is missing or wrong")


def _mac(secret: bytes, identifier: str, stamp: str, body: bytes) -> bytes:
    return hmac.digest(secret, f"{identifier}.{stamp}.".encode() + body, sha256)
