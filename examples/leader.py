"""Run me twice, in two terminals: `python examples/leader.py`. One leads; kill it, and the other takes over.

The lease elects the leader. The token makes it safe: a leader that was frozen and wakes up late does not
know yet that it lost, so the table it writes to refuses a token older than the newest it has seen.
"""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing

from mainspring import LeaseLost, Mainspring

app = Mainspring()  # the file mainspring.db, unless MAINSPRING_DATABASE_URL says otherwise

TABLE = (
    "CREATE TABLE IF NOT EXISTS progress (id INTEGER PRIMARY KEY CHECK (id = 1), token INTEGER, page INTEGER)"
)
# One statement, so that nobody can come between the question and the write.
WRITE = """
INSERT INTO progress (id, token, page) VALUES (1, :token, 1)
ON CONFLICT (id) DO UPDATE SET token = :token, page = page + 1 WHERE token <= :token
"""


class StaleToken(Exception):
    """A newer leader has written already."""


def write(database: sqlite3.Connection, token: int) -> int:
    """The next page, written by the leader with this token; refused to an older one."""
    with database:
        if database.execute(WRITE, {"token": token}).rowcount == 0:
            raise StaleToken(f"token {token} is too old")
        page: int = database.execute("SELECT page FROM progress").fetchone()[0]
        return page


async def lead(database: sqlite3.Connection, *, pages: int | None = None) -> None:
    """Lead until the lease is lost, or for so many pages."""
    async with app.lease("sync-crm", ttl="5s") as lease:
        print(f"leading, with token {lease.token}")
        while pages is None or pages > 0:
            print(f"token {lease.token}: page {write(database, lease.token)}")
            pages = None if pages is None else pages - 1
            await asyncio.sleep(1)  # noqa: TID251 - an example, not the engine


async def main() -> None:
    """Lead, and stand for election again whenever the lease was lost."""
    with closing(sqlite3.connect("progress.db")) as database:
        database.execute(TABLE)
        async with app:
            while True:
                try:
                    await lead(database)
                except (LeaseLost, StaleToken) as reason:
                    print(f"no longer leading: {reason}")


if __name__ == "__main__":
    asyncio.run(main())
