"""One of several programs that charge under one key at the same moment, each for jobs of its own.

It says that it is ready, and goes on when it is told. It prints what its job has returned.
"""

from __future__ import annotations

import os
import sys

from tallystick import Key, Tally


def main(url: str, ledger: str, key: str, me: str) -> None:
    app = Tally(url)

    @app.effect(key="{what}", timeout="5s")
    def charge(key: Key, what: str) -> str:
        with open(ledger, "ab", buffering=0) as lines:  # noqa: PTH123 (one write, appended at once)
            lines.write(f"{key} {me}\n".encode())
            os.fsync(lines.fileno())
        return f"{key} by {me}"

    @app.workflow
    def buy(what: str) -> str:
        return charge(what)

    with app.worker(concurrency=2):
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        for line in sys.stdin:
            jobs = [buy.submit(f"{key}{line.strip()}") for _twice in range(2)]
            sys.stdout.write(" ".join(job.result(60).replace(" ", "_") for job in jobs) + "\n")
            sys.stdout.flush()
    app.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
