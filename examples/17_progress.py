"""A job knows who it is and shows how far it is: a key for calls to a service, values for others to watch."""

from __future__ import annotations

from tallystick import Retry, Tally, current, progress, set_value

app = Tally("sqlite:///example-17.db")
stored: dict[str, str] = {}  # the service, which does the same thing once however often it is asked


@app.step(retry=Retry(3, first="10ms"))
def upload(file: str) -> None:
    me = current()
    stored.setdefault(me.idempotency_key, file)
    if me.try_number == 1 and file == "b.txt":
        raise ConnectionError("the answer was lost")
    print(f"  {me.name}#{me.occurrence} {file}, try {me.try_number}", flush=True)


@app.workflow
def backup(files: list[str]) -> int:
    set_value("owner", current().key)
    for done, file in enumerate(files):
        progress(done, len(files))
        upload(file)
    progress(len(files), len(files))
    return len(files)


if __name__ == "__main__":
    with app.worker():
        job = backup.opts(idempotency_key="ada").submit(["a.txt", "b.txt", "c.txt"])
        last = dict(job.watch())  # gives (name, value) until the job has ended
        print(job.result("10s"), "files of", job.value("owner"), last["progress"])
    print("stored once each:", list(stored.values()))

# Output:
#   upload#1 a.txt, try 1
#   upload#2 b.txt, try 2
#   upload#3 c.txt, try 1
# 3 files of ada {'done': 3, 'total': 3}
# stored once each: ['a.txt', 'b.txt', 'c.txt']
