"""An app that stands on a database in memory and another clock for a while."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from mainspring.app import Mainspring, Opened
from mainspring.clock import Clock
from mainspring.config import MEMORY, DatabaseConfig, Settings
from mainspring.entropy import Entropy
from mainspring.errors import InvalidArgument
from mainspring.store.store import Store
from mainspring.sync import Portal

TESTING_ID = "00000000-0000-4000-8000-000000000000"
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

ORIGIN = "mainspring.testing"
_REPLACED = ("_clock", "_entropy", "_settings", "_read_from", "_portal", "_opened")


@contextmanager
def switched(app: Mainspring, store: Store, *, clock: Clock, entropy: Entropy) -> Iterator[None]:
    """The app on this store in memory; afterwards it has everything back that it had: settings, clock
    and whatever it had opened. Other settings are the defaults: neither a file nor the environment
    of the test run is read."""
    kept = {name: getattr(app, name) for name in _REPLACED}
    app._clock, app._entropy = clock, entropy
    app._settings = Settings(database=DatabaseConfig(url=MEMORY))
    app._read_from = dict.fromkeys(kept["_read_from"], ORIGIN) | {"database.url": ORIGIN}
    app._portal, app._opened = Portal(goodbye=app.aclose), Opened(store)
    try:
        yield
    finally:
        app.close()
        for name, value in kept.items():
            setattr(app, name, value)


def valid_id(given: object) -> str:
    """A database's id, as a test gave it."""
    if not isinstance(given, str) or not _UUID.fullmatch(given):
        raise InvalidArgument("database_id", given, "a UUID, as str(uuid.uuid4()) makes one")
    return given
