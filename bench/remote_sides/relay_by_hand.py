"""The webhook relay that people write by hand, a table and a loop; prints one line of JSON.

    python -m bench.remote_sides.relay_by_hand '{"jobs": 9, "url": "http://127.0.0.1:9/fast", "folder": "."}'

Run by the Python of its own environment: `requests` with a session, SQLite in WAL mode, one commit for each
row that is out, because a crash would send everything since the last one again. It counts no tries, and two
of these loops would send everything twice.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import sqlite3
import sys
import time

import requests

TABLE = "CREATE TABLE outbox (id INTEGER PRIMARY KEY, url TEXT, body TEXT, sent_at REAL, tries INT DEFAULT 0)"
DUE = "SELECT id, url, body FROM outbox WHERE sent_at IS NULL ORDER BY id LIMIT 100"


def main() -> None:
    order = json.loads(sys.argv[1])
    store = sqlite3.connect(f"{order['folder']}/outbox.db", isolation_level=None)
    store.execute("PRAGMA journal_mode=WAL")
    store.execute(TABLE)
    body = json.dumps({"job": 1, "payload": {"n": 1}, "input": "in", "output": "out"})
    store.execute("BEGIN")
    store.executemany("INSERT INTO outbox (url, body) VALUES (?, ?)", [(order["url"], body)] * order["jobs"])
    store.execute("COMMIT")
    begun = time.perf_counter()
    with requests.Session() as session:
        while rows := store.execute(DUE).fetchall():
            for row in rows:
                publish(store, session, *row)
    print(json.dumps({"jobs": order["jobs"], "seconds": time.perf_counter() - begun}))


def publish(store: sqlite3.Connection, session: requests.Session, row: int, url: str, body: str) -> None:
    signed = hmac.digest(b"a secret for measuring only", body.encode(), hashlib.sha256).hex()
    headers = {"Content-Type": "application/json", "X-Signature": signed}
    answer = session.post(url, data=body, headers=headers, timeout=10)
    answer.raise_for_status()
    store.execute("UPDATE outbox SET sent_at = ?, tries = tries + 1 WHERE id = ?", (time.time(), row))


if __name__ == "__main__":
    main()
