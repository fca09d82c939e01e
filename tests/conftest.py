"""Fixtures every folder shares. A backend is one entry in BACKENDS, nothing more.

One PostgreSQL server serves the whole run: the one MAINSPRING_TEST_POSTGRES_URL names, or one of our
own, started when it is first needed (under xdist by the controller) and removed at the end. A run
that needs a server and cannot have one fails; it never skips.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings

from mainspring.testing.clock import ManualClock
from tests.support.postgres import PostgresServer

BACKENDS = ["sqlite", "postgres"]
THREADS_END_WITHIN = 5.0

# Examples are bounded by count, not by a stopwatch: a busy machine is no bug.
hypothesis_settings.register_profile(
    "mainspring", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
hypothesis_settings.load_profile("mainspring")


if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Started in the background by a shell: the programs that tests start would be deaf to Ctrl-C, too.
    signal.signal(signal.SIGINT, signal.default_int_handler)


class RunServer:
    """The run's server: somebody else's, or our own, started when it is first asked for."""

    def __init__(self) -> None:
        self.run_id = f"{os.getpid()}_{time.time_ns():x}"
        self._given = os.environ.get("MAINSPRING_TEST_POSTGRES_URL")
        self._own: PostgresServer | None = None

    def url(self) -> str:
        if self._given:
            return self._given
        if self._own is None:
            self._own = PostgresServer()
            self._own.start()
        return self._own.url()

    def close(self) -> None:
        if self._own is not None:
            self._own.stop()
        elif self._given:
            from tests.support.databases import Databases

            Databases(self._given, self.run_id).drop_all()


_SERVER = pytest.StashKey[RunServer]()


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.stash[_SERVER] = RunServer()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """xdist's controller tells each of its workers where the server is."""
    server = node.config.stash[_SERVER]
    node.workerinput["postgres"] = (server.url(), server.run_id)


def pytest_unconfigure(config: pytest.Config) -> None:
    if server := config.stash.get(_SERVER, None):
        server.close()


@pytest.fixture(scope="session")
def databases(request: pytest.FixtureRequest) -> Any:
    """Makes databases on the run's server."""
    from tests.support.databases import Databases  # not before it is needed: unit tests open no store

    worker = getattr(request.config, "workerinput", None)
    if worker is not None:
        return Databases(*worker["postgres"])
    server = request.config.stash[_SERVER]
    return Databases(server.url(), server.run_id)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    """Set up first and so torn down last: whatever a test started must have ended by then."""
    before = set(threading.enumerate())
    yield
    deadline = time.monotonic() + THREADS_END_WITHIN
    for thread in set(threading.enumerate()) - before:
        if thread.name.lower().startswith("mainspring"):
            thread.join(max(0.0, deadline - time.monotonic()))
            assert not thread.is_alive(), f"thread {thread.name} outlived its test"


@pytest.fixture
def run(no_thread_is_left: None) -> Iterator[Callable[[Any], Any]]:
    """Run a coroutine to its end on this test's own event loop. No task may be left on it."""
    with asyncio.Runner() as runner:
        yield runner.run
        left = asyncio.all_tasks(runner.get_loop())
    assert not left, f"tasks outlived their test: {left}"


@pytest.fixture
def new_database(databases: Any, request: pytest.FixtureRequest) -> Iterator[Callable[..., str]]:
    """A factory of PostgreSQL databases, `new_database(migrated=True) -> url`, all dropped afterwards."""
    owner = getattr(request.config, "workerinput", {}).get("workerid", "main")
    names = []

    def create(*, migrated: bool = True) -> str:
        names.append(databases.create(owner=owner, migrated=migrated))
        return str(databases.url(names[-1]))

    yield create
    for name in names:
        databases.drop(name)


@pytest.fixture
def postgres_url(new_database: Callable[..., str]) -> str:
    """A fresh, migrated PostgreSQL database."""
    return new_database()


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    """Runs the test once per backend; "sqlite" or "postgres"."""
    return str(request.param)


@pytest.fixture
def empty_database_url(backend: str, request: pytest.FixtureRequest, tmp_path: Any) -> str:
    """A database without a schema, once per backend: a file's URL, or a fresh PostgreSQL database's."""
    if backend == "sqlite":
        return f"sqlite:///{tmp_path / 'mainspring.db'}"
    return str(request.getfixturevalue("new_database")(migrated=False))


@pytest.fixture
def database_url(
    backend: str, request: pytest.FixtureRequest, tmp_path: Any, run: Any, clock: ManualClock
) -> str:
    """A migrated database, once per backend, which several stores and processes may open."""
    if backend == "postgres":
        return str(request.getfixturevalue("postgres_url"))
    url = f"sqlite:///{tmp_path / 'mainspring.db'}"
    run(_migrate(url, clock))
    return url


@pytest.fixture
def store(backend: str, request: pytest.FixtureRequest, run: Any, clock: ManualClock) -> Iterator[Any]:
    """An open, migrated, empty store, once per backend."""
    from mainspring.store.opener import open_store

    url = "sqlite://:memory:" if backend == "sqlite" else request.getfixturevalue("postgres_url")
    opened = open_store(url, clock=clock)
    try:
        run(opened.migrate())
        yield opened
    finally:
        run(opened.close())


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    """A PostgreSQL server of this test's own, which it may restart, pause and kill."""
    with PostgresServer() as own:
        yield own


async def _migrate(url: str, clock: ManualClock) -> None:
    from mainspring.store.opener import open_store

    store = open_store(url, clock=clock)
    try:
        await store.migrate()
    finally:
        await store.close()
