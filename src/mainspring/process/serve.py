"""Wires one process of an app: a worker, a scheduler, or both."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from mainspring.app import Mainspring
from mainspring.config import service_manager
from mainspring.engine.alerter import Alerter
from mainspring.engine.alertlog import into_log
from mainspring.engine.gatekeeper import Gatekeeper
from mainspring.engine.heart import Heart, Listener
from mainspring.engine.journal import Journal
from mainspring.engine.loop import Loop
from mainspring.engine.membership import Membership
from mainspring.engine.pinger import Pinger
from mainspring.engine.process import Process
from mainspring.engine.pruner import Pruner
from mainspring.engine.pulse import Pulse
from mainspring.engine.reaper import Reaper
from mainspring.engine.resolver import Resolver
from mainspring.engine.scheduler import Scheduler
from mainspring.engine.sweeper import Sweeper
from mainspring.engine.tally import Tallier
from mainspring.engine.worker import Bridge, NobodyListens, Worker
from mainspring.errors import StoreError, StoreUnavailable, UsageError
from mainspring.model.process import Member, Role
from mainspring.store.opener import open_store
from mainspring.store.store import Store
from mainspring.targets.notify import notifiers
from mainspring.targets.outbound import Outbound
from mainspring.telemetry import StoreTrouble
from mainspring.triggers.zones import tzdata_version
from mainspring.version import __version__
from mainspring.waiting import NOW

if TYPE_CHECKING:
    from mainspring.engine.isolate.launch import Launch
    from mainspring.engine.isolate.pool import Pool
    from mainspring.monitor.monitor import Monitor

# -P: what lies in the working directory is found when the app is loaded, not before.
LAST_STATS_WITHIN = timedelta(seconds=2)
CHILD = (sys.executable, "-P", "-m", "mainspring.cli.child")


def serve(
    app: Mainspring,
    *,
    worker: bool = True,
    scheduler: bool = True,
    burst: bool = False,
    location: str | None = None,
) -> None:
    """Run a worker, a scheduler or both in this program. It returns after Ctrl-C or SIGTERM, when the running
    jobs have ended; with `burst` it returns when no job is ready. `location`, such as "shop:app", tells the
    child processes of isolated jobs where the app is."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(
            aserve(
                app,
                worker=worker,
                scheduler=scheduler,
                burst=burst,
                location=location,
                on_start=_stop_at_signals,
            )
        )
        return
    raise UsageError("this call would block the running event loop; use `await aserve()` instead")


def _stop_at_signals(process: Process) -> None:
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, process.stop)


async def aserve(
    app: Mainspring,
    *,
    worker: bool = True,
    scheduler: bool = True,
    burst: bool = False,
    location: str | None = None,
    on_start: Callable[[Process], None] = lambda process: None,
) -> Process:
    """The same on an event loop. `on_start` is given the process, whose `stop()` ends it."""
    if location is not None:
        app._target = location
    if worker:
        _check_isolation(app)
    store = await app._store()
    if scheduler:
        await app._write_schedules()
    telemetry = app._telemetry
    monitor = _monitor(app)
    tallier = Tallier(store.stats, app._clock, app._entropy)
    process = _assemble(app, store, tallier, worker=worker, scheduler=scheduler, monitor=monitor)
    on_start(process)
    try:
        if monitor is not None:
            monitor.start(lambda: process.running)
        await process.run(burst=burst)
    finally:
        if monitor is not None:
            monitor.stop()
            app._telemetry = telemetry
        await _add_the_rest(tallier, app)
    return process


def _monitor(app: Mainspring) -> Monitor | None:
    """Who tells of this process, if anybody asks."""
    manager = service_manager()
    if not app.settings.metrics.port and manager is None:
        return None
    from mainspring.monitor.home import metrics_of
    from mainspring.monitor.monitor import Monitor
    from mainspring.monitor.notifier import Notifier

    monitor = Monitor(app.settings, app._clock, Notifier.of(manager), metrics=lambda: metrics_of(app))
    app._telemetry = app._telemetry.joined(monitor.hear)
    return monitor


async def _add_the_rest(tallier: Tallier, app: Mainspring) -> None:
    """What was counted since the last pass. A store that does not answer keeps nobody from ending."""
    try:
        async with asyncio.timeout(LAST_STATS_WITHIN.total_seconds()):
            await tallier.flush()
    except StoreError as error:
        app._telemetry.emit(StoreTrouble.of(tallier.name, error, NOW))
    except TimeoutError:
        late = StoreUnavailable("no answer to the last statistics of this process")
        app._telemetry.emit(StoreTrouble.of(tallier.name, late, NOW))


def _assemble(
    app: Mainspring,
    store: Store,
    tallier: Tallier,
    *,
    worker: bool,
    scheduler: bool,
    monitor: Monitor | None = None,
) -> Process:
    if monitor is not None:
        store = monitor.timed(store)
    settings, clock, entropy = app.settings, app._clock, app._entropy
    telemetry = app._telemetry.joined(tallier.hear)
    members: list[tuple[Member, Membership, Listener]] = []
    loops: list[Loop] = [
        Pruner(
            store,
            settings.retention.history,
            clock,
            entropy,
            telemetry,
            results=settings.retention.results,
        ),
        Sweeper(store, clock, entropy, telemetry),
        tallier,
        *(() if monitor is None else monitor.loops(store)),
    ]
    if settings.alerts.enabled:
        loops.append(_alerter(app, store))
    crew, bridge, gatekeeper, resolver = None, None, None, None
    if worker:
        crew = Worker(
            store,
            app._registry,
            settings.worker,
            clock=clock,
            entropy=entropy,
            telemetry=telemetry,
            results=settings.results,
            children=lambda journal: _children(app, journal),
            tracer=app._tracer,
        )
        bridge = Bridge(crew, asyncio.get_running_loop())
        members.append((_member(app, Role.WORKER), crew.membership, bridge))
        gatekeeper = Gatekeeper(
            store.limits, clock, entropy, poll=settings.worker.poll, declared=app._registry.has_limits
        )
        resolver = Resolver(store.workflows, clock, entropy, telemetry, poll=settings.worker.poll)
    if scheduler:
        config = settings.scheduler
        loops.append(
            Scheduler(store, clock, telemetry, poll=config.poll, chunk=config.chunk, breaker=config.breaker)
        )
        place = Membership(clock, settings.worker.lease)
        members.append((_member(app, Role.SCHEDULER), place, NobodyListens()))
    process = Process(
        _pulse(app, members, monitor),
        worker=crew,
        gatekeeper=gatekeeper,
        resolver=resolver,
        reaper=Reaper(store, clock, entropy, telemetry),
        loops=loops,
        grace=settings.worker.shutdown_timeout,
        entropy=entropy,
        telemetry=telemetry,
        progress=None if monitor is None else monitor.progress,
        mend=store.health.left_out,
    )
    if crew is not None:
        process.listen(store)
    if bridge is not None:
        bridge.on_blocked = lambda: process.on_blocked()
    return process


def _alerter(app: Mainspring, store: Store) -> Alerter:
    settings, clock, telemetry = app.settings, app._clock, app._telemetry
    config = settings.alerts
    pinger = None
    if config.ping_url:
        outbound = Outbound(
            config.ping_url,
            "alerts.ping_url",
            timeout=config.timeout,
            allow_private=config.allow_private,
        )
        pinger = Pinger(outbound, config.ping_every, clock, telemetry)
    return Alerter(
        store,
        config,
        notifiers(config, clock, into_log(telemetry)),
        who=_name(app),
        keep=settings.retention.history,
        pinger=pinger,
        clock=clock,
        entropy=app._entropy,
        telemetry=telemetry,
    )


def _check_isolation(app: Mainspring) -> None:
    """Refuse now what would fail at every run."""
    isolated = [task for task in app._registry.tasks.values() if task.isolation is not None]
    if isolated:
        launch = _launch(app)
        for task in isolated:
            launch.check(task)


def _children(app: Mainspring, journal: Journal) -> Pool:
    from mainspring.engine.isolate.pool import Pool  # not before a job needs it

    return Pool(app.settings.worker.children, _launch(app), journal)


def _launch(app: Mainspring) -> Launch:
    from mainspring.engine.isolate.frames import Hello
    from mainspring.engine.isolate.launch import Launch

    path, log = tuple(sys.path), app.settings.log
    traces = app.settings.traces.enabled
    hello = Hello(path=path, database_url=app.settings.database.url, traces=traces)
    if app._target is not None:
        hello = Hello(
            target=app._target,
            path=path,
            database_url=app.settings.database.url,
            log_level=log.level,
            log_format=log.format,
            traces=traces,
        )
    return Launch(command=CHILD, hello=hello)


def _pulse(
    app: Mainspring, members: Sequence[tuple[Member, Membership, Listener]], monitor: Monitor | None
) -> Pulse:
    config, shared = app.settings.worker, app._in_memory

    def open_own() -> Store:
        url = app.settings.database.url
        store = shared or open_store(url, clock=app._clock, timeout=config.lease)
        return store if monitor is None else monitor.timed(store)

    def hearts(store: Callable[[], Store]) -> list[Heart]:
        return [
            Heart(
                store,
                member,
                membership,
                listener,
                lease=config.lease,
                every=config.heartbeat,
                clock=app._clock,
                entropy=app._entropy,
                telemetry=app._telemetry,
            )
            for member, membership, listener in members
        ]

    return Pulse(
        open_own,
        hearts,
        app._entropy,
        app._telemetry,
        owns_store=shared is None,
        progress=None if monitor is None else monitor.progress,
    )


def _member(app: Mainspring, role: Role) -> Member:
    works = role is Role.WORKER
    return Member(
        id=0,  # given anew with every lease
        role=role,
        name=_name(app),
        queues=app.settings.worker.queue_names if works else (),
        tasks=app._registry.offered(shell=app.settings.worker.shell) if works else (),
        version=__version__,
        tzdata=tzdata_version(),
    )


def _name(app: Mainspring) -> str:
    return app.settings.worker.name or f"{socket.gethostname()}:{os.getpid()}"
