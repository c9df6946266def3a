"""The model of the service answers as the emulator does, whatever is asked in whatever order."""

from __future__ import annotations

import random

import pytest

from tallystick.store.azure import keys
from tallystick.store.azure.requests import (
    Asking,
    Drop,
    Find,
    Get,
    Put,
    Reply,
    Request,
    Row,
    ServiceRefusal,
    Together,
    Wrote,
)
from tests.azure.service import Tables
from tests.azure.subject import AzureSubject

ROWS = ("a", "b", "c")
Tags = dict[str, list[str]]
"""All tags that a row has had; a request names one by its place, because each service has its own."""


def drawn(chance: random.Random, known: Tags) -> Request:
    """Return some request about three rows; `known` are the tags that were seen, current or not."""
    match chance.randrange(6):
        case 0:
            return Get(keys.DUE, "00", chance.choice(ROWS))
        case 1:
            low, below = sorted(chance.choices(("", "a", "b", "c", "d"), k=2))
            compared = chance.choice(("eq", "ne", "ge", "lt"))
            where = (("word", compared, chance.choice(("", "x", "y"))),) if chance.random() < 0.5 else ()
            return Find(keys.DUE, "00", low, below, chance.choice((None, 1, 2)), where)
        case 2 | 3:
            return written(chance, chance.choice(ROWS), known)
        case 4:
            return Drop(keys.DUE, "00", chance.choice(ROWS))
        case _:
            return Together(tuple(in_transaction(chance, row, known) for row in chance.sample(ROWS, 2)))


def in_transaction(chance: random.Random, row: str, known: Tags) -> Put | Drop:
    return Drop(keys.DUE, "00", row) if chance.random() < 0.3 else written(chance, row, known)


def written(chance: random.Random, row: str, known: Tags) -> Put:
    had = len(known.get(row, ()))
    etag = str(max(0, had - chance.choice((1, 1, 1, 2)))) if had and chance.random() < 0.7 else None
    values = {"word": chance.choice(("", "x", "y", ">z", "<z")), "number": chance.choice((1, 2**40))}
    if chance.random() < 0.3:
        values.pop("word")
    return Put(keys.DUE, "00", row, values, etag, merge=etag is not None and chance.random() < 0.5)


def plain(reply: Reply) -> object:
    """Return an answer without its tags."""
    match reply:
        case list():
            return [(row.rk, row.values) for row in reply]
        case Row():
            return reply.rk, reply.values
        case Wrote():
            return len(reply.etags)
        case _:
            return reply


def with_tags(request: Request, tags: Tags) -> Request:
    """Return the same request with the tags of another service."""
    if isinstance(request, Together):
        return Together(tuple(with_tags(each, tags) for each in request.writes))  # type: ignore[misc]  # these are writes
    if isinstance(request, Put) and request.etag is not None:
        return request._replace(etag=tags[request.rk][int(request.etag)])
    return request


def learn(request: Request, reply: Reply, tags: Tags) -> None:
    if isinstance(reply, Wrote):
        writes = request.writes if isinstance(request, Together) else (request,)
        puts = [each for each in writes if isinstance(each, Put)]
        for each, etag in zip(puts, reply.etags, strict=True):
            tags.setdefault(each.rk, []).append(etag)


def asking(request: Request) -> Asking[Reply]:
    return (yield request)


@pytest.mark.slow
def test_the_model_answers_as_the_emulator_does(subject: AzureSubject):
    chance, model = random.Random(7), Tables()
    mine: Tags = {}
    theirs: Tags = {}
    refusals = set()
    for number in range(400):
        request = drawn(chance, mine)
        said = model.answer(with_tags(request, mine))
        heard = subject.store.client.ask(asking(with_tags(request, theirs)))
        assert plain(said) == plain(heard), (number, request)
        learn(request, said, mine)
        learn(request, heard, theirs)
        refusals.add(said if isinstance(said, ServiceRefusal) else None)
    assert refusals == {None, *ServiceRefusal}, "every refusal was met"
