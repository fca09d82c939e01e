"""From options to a configured app, and from an app to an open store for one command."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from mainspring.app import Mainspring
from mainspring.cli.output import printable
from mainspring.cli.record import on_record
from mainspring.cli.target import load_app
from mainspring.clock import Clock
from mainspring.config import MEMORY, masked_url, sqlite_file
from mainspring.declare.registry import Registry
from mainspring.errors import InvalidConfig, StoreUnavailable
from mainspring.store.ports import Store

T = TypeVar("T")


@dataclass(slots=True, kw_only=True)
class Access:
    """What was typed about the app, its database and its settings."""

    app: str | None
    database_url: str | None
    file: Path | None
    _loaded: Mainspring | None = field(default=None, init=False)

    def load(self, flags: Mapping[str, object] | None = None) -> Mainspring:
        """The app that was named, or an empty one, with these flags over its settings."""
        app = Mainspring() if self.app is None else load_app(self.app)
        app.configure({**(flags or {}), "database.url": self.database_url}, file=self.file)
        self._loaded = app
        return app

    @property
    def loaded(self) -> Mainspring:
        """The app as it was loaded, or else loaded now."""
        return self._loaded or self.load()

    def registry(self) -> Registry | None:
        """What the app that was named declares; None when none was named."""
        return None if self.app is None else self.loaded.registry

    def where(self) -> str:
        """The database that was looked in, as it may be shown."""
        return printable(masked_url(self.loaded.settings.database.url))

    def ask(
        self, work: Callable[[Store, Clock], Awaitable[T]], *, verify: bool = True, create: bool = False
    ) -> T:
        """Have the work done on the app's store as it is: nothing is migrated, and no file is made
        unless `create` says so. A schema that is not current is refused first, for its errors would
        be of no help."""
        app = self.load()
        refuse_memory(app)
        if not create:
            _require_file(app)

        async def checked(store: Store) -> T:
            if verify:
                await store.verify()
            return await work(store, app.clock)

        return with_store(app, checked, prepare=False)


def with_store(app: Mainspring, work: Callable[[Store], Awaitable[T]], *, prepare: bool = True) -> T:
    """Open the app's store, do the work, close it. If it changes something, that is on record as the act
    of whoever is logged in."""

    async def session() -> T:
        try:
            async with on_record(app):
                return await work(await app.store(prepare=prepare))
        finally:
            await app.aclose()

    with naming_the_database(app):
        return asyncio.run(session())


@contextmanager
def naming_the_database(app: Mainspring) -> Iterator[None]:
    """Say of a database that cannot be reached which one it is and who named it: often it is not
    the one that was meant."""
    try:
        yield
    except StoreUnavailable as error:
        url = masked_url(app.settings.database.url)
        raise StoreUnavailable(f"{error}; the database is {url} ({_origin(app)})") from error


def refuse_memory(app: Mainspring) -> None:
    """A database in memory is this process's own: empty when it begins, gone when it ends."""
    url = app.settings.database.url
    if url == MEMORY:
        expected = "a file or a server, for a database in memory is gone when this command ends"
        raise InvalidConfig("database.url", url, expected, origin=_origin(app))


def _require_file(app: Mainspring) -> None:
    path = sqlite_file(app.settings.database.url)
    if path is None:
        return
    place = f"{os.path.abspath(path)} ({_origin(app)})"
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        advice = "`mainspring dev` or `mainspring db migrate` makes it"
        raise StoreUnavailable(f"database: no file at {place}; {advice}") from None
    except OSError as error:
        raise StoreUnavailable(f"database: {place} cannot be opened ({error.strerror})") from None


def _origin(app: Mainspring) -> str:
    origin = app.origins["database.url"]
    return origin if origin == "default" else f"from {origin}"
