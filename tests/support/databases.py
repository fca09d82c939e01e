"""Fresh PostgreSQL databases, copied from a template that is migrated once per run."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit, urlunsplit

import asyncpg

from mainspring.store.opener import open_store
from mainspring.testing.clock import ManualClock

#: Held while the template is made, so that of several processes one makes it.
_TEMPLATE_LOCK = 7_240_113
_TRIES = 20
_CHOOSES_STRATEGY = 15


class Databases:
    """Makes and drops databases on one server. `run_id` keeps two runs on one server apart."""

    def __init__(self, admin_url: str, run_id: str) -> None:
        if not re.fullmatch(r"[a-z0-9_]+", run_id):
            raise ValueError(f"run_id: expected letters, digits and underscores, got {run_id!r}")
        self._admin_url = admin_url
        self._run_id = run_id
        self._made = 0
        self._template_is_there = False

    @property
    def template(self) -> str:
        return f"mainspring_{self._run_id}_template"

    def url(self, database: str) -> str:
        """The server's URL, for another of its databases."""
        return urlunsplit(urlsplit(self._admin_url)._replace(path=f"/{database}"))

    def create(self, *, owner: str, migrated: bool = True) -> str:
        """A new database, migrated or empty; answers its name. `owner` tells processes apart."""
        self._made += 1
        name = f"mainspring_{self._run_id}_{owner}_{self._made}"
        if migrated and not self._template_is_there:
            asyncio.run(self._make_template())
            self._template_is_there = True
        source = self.template if migrated else "template0"
        asyncio.run(self._copy(source, name))
        return name

    def drop(self, name: str) -> None:
        """Drop it with whoever is still connected."""
        asyncio.run(self._admin(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)"))

    def drop_all(self) -> None:
        """Drop everything this run made, for a server that outlives the run."""
        asyncio.run(self._drop_all())

    async def _drop_all(self) -> None:
        connection = await asyncpg.connect(self._admin_url)
        try:
            names = await connection.fetch(
                "SELECT datname FROM pg_database WHERE starts_with(datname, $1)",
                f"mainspring_{self._run_id}_",
            )
            for row in names:
                await connection.execute(f"DROP DATABASE {row['datname']} WITH (FORCE)")
        finally:
            await connection.close()

    async def _copy(self, source: str, name: str) -> None:
        connection = await asyncpg.connect(self._admin_url)
        try:
            # Through the log, as it is by default, a copy takes four times as long: nothing is synced here.
            newer = connection.get_server_version().major >= _CHOOSES_STRATEGY
            strategy = "STRATEGY file_copy" if newer else ""
            copy = f"CREATE DATABASE {name} TEMPLATE {source} {strategy}"
            await _while_in_use(lambda: connection.execute(copy))
        finally:
            await connection.close()

    async def _admin(self, command: str) -> None:
        connection = await asyncpg.connect(self._admin_url)
        try:
            await _while_in_use(lambda: connection.execute(command))
        finally:
            await connection.close()

    async def _make_template(self) -> None:
        connection = await asyncpg.connect(self._admin_url)
        try:
            await connection.execute("SELECT pg_advisory_lock($1)", _TEMPLATE_LOCK)
            found = "SELECT EXISTS (SELECT 1 FROM pg_database WHERE datname = $1)"
            if await connection.fetchval(found, self.template):
                return
            draft = f"{self.template}_draft"
            await connection.execute(f"DROP DATABASE IF EXISTS {draft} WITH (FORCE)")
            await connection.execute(f"CREATE DATABASE {draft} TEMPLATE template0")
            store = open_store(self.url(draft), clock=ManualClock())
            try:
                await store.migrate()
            finally:
                await store.close()
            rename = f"ALTER DATABASE {draft} RENAME TO {self.template}"
            await _while_in_use(lambda: connection.execute(rename))
        finally:
            await connection.close()


async def _while_in_use(call: Callable[[], Awaitable[object]]) -> None:
    """A copy needs its source to itself. Its last user's backend may take a moment to go; the
    server itself waits up to five seconds for that before it answers."""
    for turn in range(_TRIES):
        try:
            await call()
            return
        except asyncpg.ObjectInUseError:
            if turn == _TRIES - 1:
                raise
