"""The same three jobs with the `eventsourcing` package, on its SQLite recorder, in its own environment.

Called as `python runs_peer.py FOLDER SINGLES BATCH`; prints events a second as JSON.
"""

from __future__ import annotations

import json
import os
import sys
import time


def main(folder: str, singles: int, batch: int) -> None:
    os.environ["PERSISTENCE_MODULE"] = "eventsourcing.sqlite"
    os.environ["SQLITE_DBNAME"] = f"{folder}/peer-{os.getpid()}.db"

    from eventsourcing.application import Application  # noqa: PLC0415 (it reads the settings above)
    from eventsourcing.domain import Aggregate, event  # noqa: PLC0415 (as above)

    class Section(Aggregate):
        @event("Moved")
        def move(self, section: str, from_state: str, to_state: str) -> None:  # noqa: ARG002 (the event keeps them)
            self.state = to_state

    app = Application()
    section = Section()
    app.save(section)
    start = time.perf_counter()
    for _ in range(singles):
        section.move("intro", "OUTLINED", "DRAFTED")
        app.save(section)
    single_rate = singles / (time.perf_counter() - start)

    many = Section()
    app.save(many)
    start = time.perf_counter()
    for _ in range(batch):
        many.move("intro", "OUTLINED", "DRAFTED")
    app.save(many)
    batch_rate = batch / (time.perf_counter() - start)

    start = time.perf_counter()
    app.repository.get(many.id)
    replay_rate = batch / (time.perf_counter() - start)
    print(json.dumps({"single": single_rate, "batch": batch_rate, "replay": replay_rate}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
