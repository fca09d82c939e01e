"""From options to a configured app, and from an app to an open store for one command."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import click

from mainspring.admin.admin import Admin
from mainspring.admin.order import local_actor, login_name
from mainspring.app import Mainspring
from mainspring.cli.app_loader import load_app
from mainspring.cli.errors import FAILED
from mainspring.cli.output import document, printable, say
from mainspring.clock import Clock
from mainspring.config import MEMORY, exposed_secret, masked_url, sqlite_file
from mainspring.errors import InvalidConfig, NotFound, StoreUnavailable
from mainspring.store.store import Store
from mainspring.tasks.registry import Registry

K = TypeVar("K", int, str)
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
        app._configure({**(flags or {}), "database.url": self.database_url}, file=self.file)
        if self._loaded is None and (exposed := exposed_secret(self.file)) is not None:
            say(f"Warning: {printable(exposed)}")
        self._loaded = app
        return app

    @property
    def loaded(self) -> Mainspring:
        """The app as it was loaded, or else loaded now."""
        return self._loaded or self.load()

    def registry(self) -> Registry | None:
        """What the app that was named declares; None when none was named."""
        return None if self.app is None else self.loaded._registry

    def where(self) -> str:
        """The database that was looked in, as it may be shown."""
        return printable(masked_url(self.loaded.settings.database.url))

    def ask(
        self,
        work: Callable[[Admin], Awaitable[T]],
        *,
        by: str | None = None,
        verify: bool = True,
        create: bool = False,
    ) -> T:
        """Have the work done on the app's store as it is, in the name of `by`: nothing is migrated, and no
        file is made unless `create` says so. A schema that is not current is refused first, for its errors
        would be of no help."""
        app = self.load()
        refuse_memory(app)
        if not create:
            _require_file(app)

        async def checked(admin: Admin) -> T:
            if verify:
                await admin.database.averify()
            return await work(admin)

        return with_admin(app, checked, by=by, prepare=False)

    def each(
        self,
        keys: Sequence[K],
        order: Callable[[Admin, K], Awaitable[T]],
        *,
        by: str,
        said: Callable[[K, T], str],
        view: Callable[[K, T], object],
        as_json: bool,
    ) -> list[T]:
        """Give one order for each of these, one after another, say what became of each, and return the
        answers. What does not exist is reported, and the others are carried out; the exit code is 1 then."""

        async def work(admin: Admin) -> list[tuple[K, T | NotFound]]:
            done: list[tuple[K, T | NotFound]] = []
            for key in dict.fromkeys(keys):
                try:
                    done.append((key, await order(admin, key)))
                except NotFound as missing:
                    if len(keys) == 1:
                        raise
                    done.append((key, missing))
            return done

        done = self.ask(work, by=by)
        found = [(key, each) for key, each in done if not isinstance(each, NotFound)]
        missing = [each for _, each in done if isinstance(each, NotFound)]
        if as_json:
            document([view(key, each) for key, each in found])
        else:
            for key, each in found:
                click.echo(printable(said(key, each)))
        for error in missing:
            say(f"Error: {printable(error)}")
        if missing:
            raise SystemExit(FAILED)
        return [each for _, each in found]

    def read(self, work: Callable[[Store, Clock], Awaitable[T]], *, verify: bool = True) -> T:
        """The same for a question to the store itself."""

        async def asked(admin: Admin) -> T:
            return await work(await admin.context.store(), admin.context.clock)

        return self.ask(asked, verify=verify)


def with_admin(
    app: Mainspring,
    work: Callable[[Admin], Awaitable[T]],
    *,
    by: str | None = None,
    prepare: bool = True,
) -> T:
    """Open the app's store, do the work, close the store. Orders are on record as those of `by`, or else of
    the user who runs the command."""

    async def session() -> T:
        try:
            await app._store(prepare=prepare)
            return await work(admin_of(app, by))
        finally:
            await app.aclose()

    with naming_the_database(app):
        return asyncio.run(session())


def admin_of(app: Mainspring, by: str | None) -> Admin:
    """The app's questions and orders, in the name of `by` or of the user who runs the command, at this
    machine."""
    return app.admin(local_actor(by, via="cli"), address=f"{login_name()}@{os.uname().nodename}")


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
        advice = "`mainspring dev` or `mainspring db migrate` makes it, -A or --database-url names another"
        raise StoreUnavailable(f"database: no file at {place}; {advice}") from None
    except OSError as error:
        raise StoreUnavailable(f"database: {place} cannot be opened ({error.strerror})") from None


def _origin(app: Mainspring) -> str:
    origin = app._origins["database.url"]
    return origin if origin == "default" else f"from {origin}"
