"""From options to a configured app, and from an app to an open store for one command."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from mainspring.app import Mainspring
from mainspring.cli.target import load_app
from mainspring.clock import Clock
from mainspring.store.ports import Store

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """What was typed about the app, its database and its settings."""

    app: str | None
    database_url: str | None
    file: Path | None

    def load(self, flags: Mapping[str, object] | None = None) -> Mainspring:
        """The app that was named, or an empty one, with these flags over its settings."""
        app = Mainspring() if self.app is None else load_app(self.app)
        app.configure({**(flags or {}), "database.url": self.database_url}, file=self.file)
        return app

    def ask(self, work: Callable[[Store, Clock], Awaitable[T]], *, verify: bool = True) -> T:
        """Have the work done on the app's store."""
        app = self.load()
        return with_store(app, lambda store: work(store, app.clock), verify=verify)


def with_store(app: Mainspring, work: Callable[[Store], Awaitable[T]], *, verify: bool = True) -> T:
    """Open the app's store, do the work, close it. A schema that is not current is refused first,
    for its errors would be of no help."""

    async def session() -> T:
        store = await app.store()
        try:
            if verify:
                await store.verify()
            return await work(store)
        finally:
            await app.aclose()

    return asyncio.run(session())
