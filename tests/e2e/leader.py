"""A program that leads under a lease: `leader.py URL LEDGER TTL`. It writes into a table that refuses an
older token, and says on stdout what becomes of it.

It is run as it stands, so nothing of the tests is imported here.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import sys
from contextlib import closing

from mainspring import Mainspring
from mainspring.errors import LeaseLost

TABLES = """
CREATE TABLE IF NOT EXISTS newest (id INTEGER PRIMARY KEY CHECK (id = 1), token INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS writes (number INTEGER PRIMARY KEY, token INTEGER NOT NULL, pid INTEGER NOT NULL);
"""
FENCE = """
INSERT INTO newest (id, token) VALUES (1, :token)
ON CONFLICT (id) DO UPDATE SET token = :token WHERE token <= :token
"""


def say(what: str) -> None:
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


def write(ledger: sqlite3.Connection, token: int) -> None:
    """One write under a token: it and the question for the newest token are one transaction."""
    with ledger:
        ledger.execute("BEGIN IMMEDIATE")
        accepted = ledger.execute(FENCE, {"token": token}).rowcount == 1
        if accepted:
            ledger.execute("INSERT INTO writes (token, pid) VALUES (?, ?)", (token, os.getpid()))
    if not accepted:
        say(f"token {token} refused")


async def lead(app: Mainspring, ledger: sqlite3.Connection, ttl: str) -> None:
    async with app.lease("crm", ttl=ttl) as lease:
        say(f"token {lease.token} leads")
        try:
            while True:
                write(ledger, lease.token)
                await asyncio.sleep(0.02)
        except asyncio.CancelledError:
            say(f"token {lease.token} cancelled")
            write(ledger, lease.token)  # as a body that will not hear it might
            raise


async def main(url: str, path: str, ttl: str) -> None:
    with closing(sqlite3.connect(path, timeout=10, isolation_level=None)) as ledger:
        ledger.executescript(TABLES)
        async with Mainspring(url) as app:
            while True:
                try:
                    await lead(app, ledger, ttl)
                except LeaseLost as loss:
                    say(f"token {loss.token} lost")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
