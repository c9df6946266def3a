"""Steps are tried again as they say; what a workflow raises ends the job, unless it says otherwise."""

from __future__ import annotations

from dataclasses import dataclass

from tallystick import Fatal, JobFailed, Retry, StepFailed, Tally

app = Tally("sqlite:///example-04.db")
weather = iter([ConnectionError("no answer"), ConnectionError("no answer"), None])


@app.step(retry=Retry(5, first="20ms"))  # five tries in all, 20 ms, 40 ms, ... apart
def fetch() -> None:
    if error := next(weather):
        raise error


@app.step(retry=Retry(5))
def parse(text: str) -> int:
    raise Fatal(f"{text!r} is no number")  # trying again cannot help, so nobody does


@dataclass
class CardDeclined(Exception):
    card: str


@app.step(raises=[CardDeclined])  # rebuilt from its fields, on the first run as on replay
def charge(card: str) -> None:
    raise CardDeclined(card)


@app.workflow
def order(card: str) -> None:
    fetch()
    try:
        parse("seven")
    except StepFailed as error:  # every class that is not listed arrives as StepFailed
        print(error)
    try:
        charge(card)
    except CardDeclined as declined:
        print(f"card {declined.card} was declined")
    raise ValueError("nothing left to try")


if __name__ == "__main__":
    with app.worker():
        job = order.submit("4711")
        try:
            job.result("10s")
        except JobFailed as error:
            print(error.fields["type"], "ended the job, after", end=" ")
        print(sum(event.name == "try" for event in job.history()), "failed tries")

# Output:
# parse failed after 1 try: Fatal: 'seven' is no number
# card 4711 was declined
# ValueError ended the job, after 2 failed tries
