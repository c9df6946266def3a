"""Encryption at rest: what a program puts into its jobs is stored as a cipher made it.

It needs the package `cryptography`. Several keys at once are how a key is rotated: the first one encrypts.
"""

from __future__ import annotations

from pathlib import Path

from cryptography.fernet import Fernet, MultiFernet

from tallystick import Tally


class Sealed:
    """Fernet as a payload codec."""

    def __init__(self, *keys: bytes) -> None:
        self._cipher = MultiFernet([Fernet(key) for key in keys])

    def encode(self, data: bytes) -> bytes:
        return self._cipher.encrypt(data)

    def decode(self, data: bytes) -> bytes:
        return self._cipher.decrypt(data)


old, new = Fernet.generate_key(), Fernet.generate_key()  # from a vault, not from here
app = Tally("sqlite:///example-18.db", payload_codec=Sealed(new, old))


@app.step
def look_up(patient: str) -> str:
    return f"{patient} is well"


@app.workflow
def checkup(patient: str) -> str:
    return look_up(patient)


if __name__ == "__main__":
    with app.worker():
        job = checkup.submit("Rosebud")
        print("with the key:   ", job.result(timeout="10s"))

    stored = Path("example-18.db").read_bytes() + Path("example-18.db-wal").read_bytes()
    print("in the file:    ", "plain text" if b"Rosebud" in stored else "no plain text")
    app.close()

    other = Tally("sqlite:///example-18.db")
    print("without the key:", other.job(job.id).row().payload[:11])
    other.close()


# Output:
# with the key:    Rosebud is well
# in the file:     no plain text
# without the key: {"$sealed":
