"""A workflow, a worker, a result.

A step is a plain function whose result is kept; a workflow is a plain function that calls steps.
"""

from __future__ import annotations

from tallystick import Tally

app = Tally("sqlite:///example-01.db")


@app.step
def greet(name: str) -> str:
    return f"Hello, {name}!"


@app.step
def shout(text: str) -> str:
    return text.upper()


@app.workflow
def welcome(name: str) -> str:
    return shout(greet(name))


if __name__ == "__main__":
    # Outside a worker a step is the plain function it was, so a unit test needs nothing from us.
    print("plain call:", greet("Ada"))

    with app.worker():  # in this process, in the background; `app.work()` blocks and is for worker processes
        job = welcome.submit("Ada")  # durable when this returns
        print("result:    ", job.result(timeout="10s"))

    # Everything that happened is in the file, in order.
    print("history:   ", " ".join(event.name for event in job.history()))
    print("state:     ", job.state())
    app.close()

# Output:
# plain call: Hello, Ada!
# result:     HELLO, ADA!
# history:    submit claim step step return
# state:      SUCCEEDED
