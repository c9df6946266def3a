"""Signing seals with Ed25519, by the optional package `cryptography`; imported for signatures alone."""

from __future__ import annotations

from pathlib import Path

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key

from tallystick.engine.audit.seals import Seal, SealSignature
from tallystick.errors import BadInput


def signed(seal: Seal, key_file: Path) -> Seal:
    """Return the seal with the signature of a private key in a PEM file."""
    try:
        key = load_pem_private_key(key_file.read_bytes(), None)
    except (ValueError, TypeError) as error:
        raise BadInput(f"{key_file} holds no private key that can be read: {error}") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise BadInput(f"{key_file} holds no Ed25519 key; openssl genpkey -algorithm ed25519 makes one")
    signature = SealSignature(_hex(key.public_key()), key.sign(seal.signed_text()).hex())
    return msgspec.structs.replace(seal, signature=signature)


def is_signed_by(seal: Seal, key_file: Path) -> bool:
    """Tell whether the seal has the signature of the public key in a PEM file."""
    try:
        key = load_pem_public_key(key_file.read_bytes())
    except ValueError as error:
        raise BadInput(f"{key_file} holds no public key that can be read: {error}") from error
    if not isinstance(key, Ed25519PublicKey):
        raise BadInput(f"{key_file} holds a key of another kind than Ed25519")
    if seal.signature is None or seal.signature.key != _hex(key):
        return False
    try:
        key.verify(bytes.fromhex(seal.signature.ed25519), seal.signed_text())
    except (InvalidSignature, ValueError):
        return False
    return True


def _hex(key: Ed25519PublicKey) -> str:
    return key.public_bytes_raw().hex()
