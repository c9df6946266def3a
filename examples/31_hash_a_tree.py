"""Hash every file under a folder. Stop it whenever you like, with Ctrl-C or kill -9, and start it again.

python examples/31_hash_a_tree.py src digests.journal
python examples/31_hash_a_tree.py src digests.journal 0.05     # slowly, so that you can stop it
tally stage digests.journal                                    # what the journal proves
"""

from __future__ import annotations

import hashlib
import sys
import time
from pathlib import Path

from tallystick.stage import CommitBatch, Stage, audit

PAUSE = float(sys.argv[3]) if len(sys.argv) > 3 else 0.0


def digest(name: str) -> str:
    time.sleep(PAUSE)
    return hashlib.sha256(Path(name).read_bytes()).hexdigest()


def show(batch: CommitBatch[str]) -> None:
    # Called in the order of the files. After a crash the last batch may come a second time, unchanged.
    for outcome in batch.outcomes:
        print(outcome.value or outcome.failure, outcome.item, flush=True)


def main(folder: str, journal: str) -> int:
    files = sorted(str(path) for path in Path(folder).rglob("*") if path.is_file())
    stage = Stage(digest, commit=show, journal=journal)
    try:
        summary = stage.run(files)
    except KeyboardInterrupt:
        print(f"{stage.summary}\nStart me again and I go on.", file=sys.stderr)
        return 130
    print(f"{summary}\n{audit(journal)}", file=sys.stderr)
    return 0 if summary.ok else 1


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2]))
