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

from mainspring.alerts.alerter import Alerter, Pinger
from mainspring.alerts.notification_sender import into_log
from mainspring.app import Mainspring
from mainspring.config import service_manager
from mainspring.errors import StoreError, StoreUnavailable, UsageError
from mainspring.model.process import NewProcess, Role
from mainspring.process.heartbeat import Heartbeat, HeartbeatThread, LeaseListener
from mainspring.process.loop import Loop
from mainspring.process.process import Process
from mainspring.process.statistics import StatisticsCollector
from mainspring.scheduler.housekeeping import Pruner, Reaper, Sweeper
from mainspring.scheduler.limit_admission import LimitAdmission
from mainspring.scheduler.scheduler import Scheduler
from mainspring.scheduler.workflow_resolver import WorkflowResolver
from mainspring.signals import Signals
from mainspring.store.opener import open_store
from mainspring.store.store import Store
from mainspring.targets.notify import notifiers
from mainspring.targets.outbound import Outbound
from mainspring.telemetry.events import StoreTrouble
from mainspring.triggers.zones import tzdata_version
from mainspring.version import __version__
from mainspring.waiting import NOW
from mainspring.worker.membership import Membership
from mainspring.worker.run_reports import RunReports
from mainspring.worker.worker import Bridge, NoClaims, Worker

if TYPE_CHECKING:
    from mainspring.monitor.monitor import Monitor
    from mainspring.worker.children.child import Launch
    from mainspring.worker.children.pool import Pool

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
    tallier = StatisticsCollector(store.stats, app._clock, app._entropy)
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
    """What reports on this process, if that is configured."""
    manager = service_manager()
    if not app.settings.metrics.port and manager is None:
        return None
    from mainspring.monitor.metrics import metrics_of
    from mainspring.monitor.monitor import Monitor
    from mainspring.monitor.service_manager import ServiceManager

    monitor = Monitor(app.settings, app._clock, ServiceManager.of(manager), metrics=lambda: metrics_of(app))
    app._telemetry = app._telemetry.joined(monitor.hear)
    return monitor


async def _add_the_rest(tallier: StatisticsCollector, app: Mainspring) -> None:
    """What was counted since the last pass. A store that does not answer does not keep the process from
    ending."""
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
    tallier: StatisticsCollector,
    *,
    worker: bool,
    scheduler: bool,
    monitor: Monitor | None = None,
) -> Process:
    if monitor is not None:
        store = monitor.timed(store)
    signals = Signals()
    settings, clock, entropy = app.settings, app._clock, app._entropy
    telemetry = app._telemetry.joined(tallier.hear)
    processes: list[tuple[NewProcess, Membership, LeaseListener]] = []
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
    new_worker, limit_admission, resolver = None, None, None
    if worker:
        new_worker = Worker(
            store,
            app._registry,
            settings.worker,
            clock=clock,
            entropy=entropy,
            telemetry=telemetry,
            results=settings.results,
            children=lambda reports: _children(app, reports),
            tracer=app._tracer,
            signals=signals,
        )
        bridge = Bridge(new_worker, asyncio.get_running_loop())
        processes.append((_process(app, Role.WORKER), new_worker.membership, bridge))
        limit_admission = LimitAdmission(
            store.limits, clock, entropy, poll=settings.worker.poll, declared=app._registry.has_limits
        )
        resolver = WorkflowResolver(store.workflows, clock, entropy, telemetry, poll=settings.worker.poll)
    if scheduler:
        config = settings.scheduler
        loops.append(
            Scheduler(store, clock, telemetry, poll=config.poll, chunk=config.chunk, breaker=config.breaker)
        )
        place = Membership(clock, settings.worker.lease)
        processes.append((_process(app, Role.SCHEDULER), place, NoClaims()))
    process = Process(
        _heartbeats(app, processes, monitor),
        worker=new_worker,
        limit_admission=limit_admission,
        resolver=resolver,
        reaper=Reaper(store, clock, entropy, telemetry, signals),
        loops=loops,
        grace=settings.worker.shutdown_timeout,
        entropy=entropy,
        telemetry=telemetry,
        progress=None if monitor is None else monitor.progress,
        mend=store.health.left_out,
        signals=signals,
    )
    if new_worker is not None:
        process.listen(store)
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


def _children(app: Mainspring, reports: RunReports) -> Pool:
    from mainspring.worker.children.pool import Pool  # not before a job needs it

    return Pool(app.settings.worker.children, _launch(app), reports)


def _launch(app: Mainspring) -> Launch:
    from mainspring.worker.children.child import Launch
    from mainspring.worker.children.child_channel import Hello

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


def _heartbeats(
    app: Mainspring,
    processes: Sequence[tuple[NewProcess, Membership, LeaseListener]],
    monitor: Monitor | None,
) -> HeartbeatThread:
    config, shared = app.settings.worker, app._in_memory

    def open_own() -> Store:
        url = app.settings.database.url
        store = shared or open_store(url, clock=app._clock, timeout=config.lease)
        return store if monitor is None else monitor.timed(store)

    def heartbeats(store: Callable[[], Store]) -> list[Heartbeat]:
        return [
            Heartbeat(
                store,
                process,
                membership,
                listener,
                lease=config.lease,
                every=config.heartbeat,
                clock=app._clock,
                entropy=app._entropy,
                telemetry=app._telemetry,
            )
            for process, membership, listener in processes
        ]

    return HeartbeatThread(
        open_own,
        heartbeats,
        app._entropy,
        app._telemetry,
        owns_store=shared is None,
        progress=None if monitor is None else monitor.progress,
    )


def _process(app: Mainspring, role: Role) -> NewProcess:
    works = role is Role.WORKER
    return NewProcess(
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
