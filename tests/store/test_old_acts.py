"""Acts that were kept before they were a chain become one when the store is opened."""

from __future__ import annotations

import pytest

from tallystick import Tally
from tallystick.engine.audit.whole_store import verify
from tallystick.store.postgres.server import migrations as on_postgres
from tallystick.store.sqlite.file import connection as on_sqlite
from tests.old_files import restore_postgres, sqlite_file
from tests.postgres.subject import fresh_schema

BEFORE = 25


def old_store(kind: str, request, folder) -> str:
    """Return the address of a store that an older revision has made."""
    if kind == "sqlite":
        return f"sqlite:///{sqlite_file(folder)}"
    return restore_postgres(request.getfixturevalue("server"), fresh_schema())


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "opening"), [("sqlite", on_sqlite), ("postgres", on_postgres)])
def test_acts_of_an_older_store_become_a_chain(kind, opening, request, tmp_path, monkeypatch):
    url = old_store(kind, request, tmp_path)
    older = [step for step in opening.migrations() if step[0] <= BEFORE]
    with monkeypatch.context() as patched:
        patched.setattr(opening, "migrations", lambda: older)
        app = Tally(url)
        with app.transaction() as db:
            for n in range(4):
                db.execute(
                    "insert into acts (at, about, name, verb, who, told)"
                    f" values ({n}, 'queue', 'q{n}', 'pause', 'ann \u00e4{n}', '')"
                )
            db.execute("delete from acts where name = 'q1'")
        app.close()
    app = Tally(url)
    assert [(act.seq, act.name, act.who) for act in app.acts()] == [
        (3, "q3", "ann \u00e43"),
        (2, "q2", "ann \u00e42"),
        (1, "q0", "ann \u00e40"),
    ]
    app.queues.pause("emails", by="bob")
    found = [finding for finding in verify(app.runtime().store).findings if finding.check == "acts"]
    assert found == []
    assert len(app.runtime().store.inspect().acts_log(after=0, limit=9)) == 4
    app.close()
