"""Fan-out: a workflow starts children, and is woken once when they have ended, however many there are."""

from __future__ import annotations

from tallystick import ChildrenFailed, Tally, aio, gather

app = Tally("sqlite:///example-10.db")


@app.workflow
async def measure(page: int) -> int:
    if page == 13:
        raise ValueError("page 13 is missing")
    return page * 10


@app.workflow
async def whole_book(pages: int) -> int:
    return sum(await aio.gather(*(measure.child(page) for page in range(pages) if page != 13)))


@app.workflow
def two_chapters() -> tuple[int, int]:
    first, second = gather(whole_book.child(5), whole_book.child(10))  # typed tuple[int, int]
    return first, second


@app.workflow
def first_answers(enough: int) -> int:
    return len(gather(*(measure.child(page) for page in range(10)), enough=enough))


@app.workflow
def strict() -> str:
    try:
        gather(measure.child(12), measure.child(13), measure.child(14))
    except ChildrenFailed as failed:  # after all of them have ended; fail_fast=True comes sooner
        return f"{len(failed.errors)} of 3 failed"
    return "all is well"


if __name__ == "__main__":
    with app.worker():
        job = whole_book.submit(500)
        print("five hundred pages:", job.result("30s"))
        print("two chapters:", two_chapters.submit().result("10s"))
        print("at least three answers:", first_answers.submit(3).result("10s") >= 3)
        print(strict.submit().result("10s"))
    print(*[event.name for event in job.history()])
    app.close()

# Output:
# five hundred pages: 1247370
# two chapters: (100, 450)
# at least three answers: True
# 1 of 3 failed
# submit claim suspend claim group return
