"""The runs of one worker, from claim to settlement: one lifecycle, whatever runs their handlers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import Generic, TypeVar

import msgspec

from mainspring.clock import Clock
from mainspring.entropy import Entropy
from mainspring.model.job import Claim
from mainspring.model.run import Crashed, Expired, Failed, Outcome, Settled, Settlement, Stopped, Succeeded
from mainspring.rules.backoff import delay
from mainspring.rules.settle import LAST_CRASH, NEVER_BEGAN, settle
from mainspring.signals import Signals
from mainspring.tasks.registry import Registry
from mainspring.telemetry.events import HandlerLeaked, RunStarted, Telemetry
from mainspring.telemetry.traces import Tracer
from mainspring.worker.executors import ChildExecutor
from mainspring.worker.result_writer import ResultWriter
from mainspring.worker.run import ActiveRun, AnyTask, Executor, Stop
from mainspring.worker.run_reports import RunReports

WRITE_OFF_AFTER = timedelta(seconds=6)
"""How long a handler may ignore a stop before its run is settled without it."""
BLOCKED_AFTER = 2 * WRITE_OFF_AFTER
"""How long after its time a run may be active: if it has not been settled by then, nothing on the event
loop moves any more."""
NO_TIME = timedelta()

R = TypeVar("R")


class ActiveRuns:
    """The claims that this worker holds, at most `size` at a time. See `run.py` for their life."""

    def __init__(
        self,
        size: int,
        registry: Registry,
        executors: Sequence[Executor],
        children: ChildExecutor,
        writer: ResultWriter,
        reports: RunReports,
        *,
        clock: Clock,
        entropy: Entropy,
        telemetry: Telemetry,
        signals: Signals,
        tracer: Tracer | None = None,
    ) -> None:
        """`executors` is the table: the first that takes a job gets it. `children` is the one of them that
        jobs whose process died wait for."""
        self._size = size
        self._registry = registry
        self._executors = tuple(executors)
        self._children = children
        self._writer = writer
        self._reports = reports
        self._clock = clock
        self._entropy = entropy
        self._telemetry = telemetry
        self._tracer = tracer
        self._signals = signals
        self._runs: dict[int, ActiveRun] = {}
        self._usual: dict[tuple[str, str], Executor] = {}
        """By task and queue: asked for once, because this is looked up once a job."""
        self._timers = Timers[ActiveRun](self._timed_out)
        self._leaked: set[ActiveRun] = set()
        """Settled, but their handlers go on and have their execution slots."""
        self._left: list[Claim] = []
        """Claims of handlers that ignored a stop while the process drained."""
        self._loop: asyncio.AbstractEventLoop | None = None
        """Kept: a function may end while the loop does not run, as in tests."""
        self._freeing = False
        self.draining = False
        self.tells_start = True

    # What the worker asks and orders.

    @property
    def free(self) -> int:
        """How many more claims may be taken. Unwritten settlements press back."""
        return min(self.size - len(self._runs), self._writer.room(self._size))

    @property
    def size(self) -> int:
        """Execution slots that are not lost to handlers which ignored a stop."""
        return self._size - len(self._leaked)

    def room_for_orphans(self) -> int:
        """How many jobs whose process died would begin at once. Where there is no room, the next child
        process is kept for one."""
        orphans = [run for run in self._runs.values() if run.claim.orphan]
        if any(run.claim.crashes >= LAST_CRASH for run in orphans):
            self._children.let_go()
            return 0  # it runs without any other
        coming = sum(run.handle is None for run in orphans)  # they have not asked for their child yet
        room = min(self.free, self._children.free - coming)
        if room <= 0:
            self._children.keep_one()
        return max(room, 0)

    @property
    def has_orphans(self) -> bool:
        """Whether a job whose process died is active."""
        return any(run.claim.orphan for run in self._runs.values())

    def no_more_orphans(self) -> None:
        """There is none for the child that was kept."""
        self._children.let_go()

    @property
    def running(self) -> int:
        """How many runs are active."""
        return len(self._runs)

    def taken(self) -> set[tuple[int, int]]:
        """The (job, fence) pairs of all runs that have not ended."""
        return {(run.claim.job_id, run.claim.fence) for run in self._runs.values()}

    def holding(self) -> list[tuple[int, int]]:
        """The same of those whose claim the store must know. Safe from any thread: the copy is one
        bytecode."""
        runs = list(self._runs.values())
        return [(run.claim.job_id, run.claim.fence) for run in runs if not run.settling]

    def start(self, claims: Iterable[Claim]) -> None:
        """Run these. One that is active already, because the store forgot the first grant in a crash, simply
        goes on; under a new fence, the old run has lost."""
        batches: dict[Executor, list[ActiveRun]] = {}
        get, usual, latest, batch = self._registry.get, self._usual, None, list[ActiveRun]()
        self._loop = asyncio.get_running_loop()
        self.tells_start = self._telemetry.hears(RunStarted)
        try:
            for claim in claims:
                old = self._runs.get(claim.job_id)
                if old is not None and self._goes_on(old, claim):
                    continue
                task = get(claim.task)
                executor = usual.get((claim.task, claim.queue))
                if executor is None or claim.orphan or claim.expires_in is not None:
                    executor = self._executor_for(task, claim)
                run = self._runs[claim.job_id] = ActiveRun(claim, task, executor, self)
                if executor is not latest:
                    latest, batch = executor, batches.setdefault(executor, [])
                batch.append(run)
        finally:
            for executor, runs in batches.items():  # whatever became of the others
                executor.start(runs)

    def _executor_for(self, task: AnyTask, claim: Claim) -> Executor:
        for executor in self._executors:
            if executor.takes(task, claim):
                break
        else:
            raise LookupError(f"no executor takes task {task.name}")
        if not claim.orphan and claim.expires_in is None:
            self._usual[claim.task, claim.queue] = executor
        elif claim.orphan and executor is not self._children:
            self._children.let_go()  # no child would find it, or it cannot take its worker with it
        return executor

    def _goes_on(self, old: ActiveRun, claim: Claim) -> bool:
        """Whether it is the claim of this run; under another fence, the run has lost. One that we have
        dropped writes nothing any more: the same claim, granted anew, is another run's."""
        same = (old.claim.worker_id, old.claim.fence) == (claim.worker_id, claim.fence)
        if same and old.stop is not Stop.DROP:
            return True
        self._stop(old, Stop.DROP)
        return False

    def unwritten(self) -> set[tuple[int, int]]:
        """The (job, fence) pairs whose run has ended and whose settlement the store has not answered."""
        return self._writer.claims()

    def drop(self, claims: Iterable[tuple[int, int]]) -> tuple[Claim, ...]:
        """End the runs of (job, fence) pairs that are not ours any more; answer which were active. The fence
        counts: the job may have come back to us under a new claim, which stands."""
        found = [(self._runs.get(job_id), fence) for job_id, fence in claims]
        dropped = [run for run, fence in found if run and run.claim.fence == fence and not run.settling]
        for run in dropped:
            self._stop(run, Stop.DROP)
        return tuple(run.claim for run in dropped)

    def drop_all(self) -> tuple[Claim, ...]:
        """End every run: the lease is gone, and all claims with it."""
        return self.drop(self.holding())

    def release_all(self) -> int:
        """End every run and give its job back, at no cost of an attempt."""
        return self.release(list(self._runs))

    def release(self, job_ids: Iterable[int]) -> int:
        """The same for these."""
        runs = [self._runs[job_id] for job_id in job_ids if job_id in self._runs]
        for run in runs:
            self._stop(run, Stop.RELEASE)
        return len(runs)

    def give_back(self, claims: Iterable[Claim]) -> None:
        """Give these jobs back without a run; those that are active go on."""
        for claim in claims:
            old = self._runs.get(claim.job_id)
            if old is None or not self._goes_on(old, claim):
                self._put(claim, settle(claim, Stopped(started=False), took=NO_TIME, backoff=NO_TIME))

    def abandon(self) -> None:
        """Give back the jobs of runs that would not end. Their handlers go on until the process
        ends, but nothing of theirs is settled."""
        runs = list(self._runs.values())
        for run in runs:
            run.stop = Stop.DROP
            self._put(run.claim, settle(run.claim, Stopped(), took=NO_TIME, backoff=NO_TIME))
        self._runs.clear()
        self._left += [run.claim for run in runs]

    def left(self) -> list[Claim]:
        """What was active when we began to drain, or became so since, and has not ended; what the store
        knows of it is another matter. Safe from any thread."""
        runs = list(self._runs.values())
        return [*self._left, *(run.claim for run in runs)]

    @property
    def quiet(self) -> bool:
        """No run is active and nothing is left to write."""
        return not self._runs and not self._writer.pending

    def blocked(self) -> list[Claim]:
        """Claims of runs so far beyond their time that the event loop cannot be moving. Safe from any
        thread."""
        # A child process does not block the loop, however late it is.
        runs = [run for run in list(self._runs.values()) if run.due and run.executor is not self._children]
        if not runs:
            return []
        now, slack = self._clock.monotonic(), BLOCKED_AFTER.total_seconds()
        return [run.claim for run in runs if run.due is not None and now > run.due + slack]

    # What executors report.

    def begin(self, run: ActiveRun) -> Outcome | None:
        # What few runs have is looked at before anything is called for it: this is done once a job.
        run.began = self._clock.monotonic()
        if run.stop is not None:
            return Stopped(started=False)
        left = run.claim.expires_in
        if left is not None:
            if left <= NO_TIME:
                return Expired(failure=NEVER_BEGAN, started=False)
            loop = asyncio.get_running_loop()
            run.deadline = loop.call_later(left.total_seconds(), self._stop_in_time, run, Stop.DEADLINE)
        if self._tracer is not None:
            run.span = self._tracer.run(run.claim)
            run.claim = msgspec.structs.replace(run.claim, trace=run.span.trace)
        if self.tells_start:
            self._telemetry.emit(_started(run.claim))
        return None

    def handler_begins(self, run: ActiveRun) -> None:
        timeout = run.task.timeout
        if timeout is not None:
            seconds = timeout.total_seconds()
            run.due = self._clock.monotonic() + seconds
            self._timers.start(run, seconds)

    def handler_ended(self, run: ActiveRun) -> None:
        if run.due is not None and run.task.timeout is not None:
            self._timers.stop(run, run.task.timeout.total_seconds())
            run.due = None

    def end(self, run: ActiveRun, outcome: Outcome, seconds: float) -> None:
        if run.ended:
            if run in self._leaked:  # its execution slot is free after all
                self._leaked.discard(run)
                self._free_soon()
            return
        run.ended = True
        claim = run.claim
        if run.due is not None:
            self.handler_ended(run)
        if run.deadline is not None:
            run.deadline.cancel()
        if self._runs.get(claim.job_id) is run:
            del self._runs[claim.job_id]
        took = timedelta(seconds=seconds)
        if type(outcome) is Succeeded and run.stop is None and run.span is None:  # most of them
            self._put(claim, settle(claim, outcome, took=took, backoff=NO_TIME))
        else:
            self._settle(run, outcome, took)
        if not self._freeing:
            self._free_soon()

    def leaked(self, claim: Claim, what: str, left: int) -> None:
        if self.draining:
            self._left.append(claim)
        else:
            self._telemetry.emit(
                HandlerLeaked(job_id=claim.job_id, task=claim.task, what=what, left=left, claim=claim)
            )
            self._signals.handler_lost.send()

    # How a run is stopped, and settled.

    def _timed_out(self, run: ActiveRun) -> None:
        self._stop_in_time(run, Stop.TIMEOUT)

    def _stop_in_time(self, run: ActiveRun, reason: Stop) -> None:
        """Its timeout or its deadline has passed; that is no news of a run that should end already."""
        if run.stop is None:
            self._stop(run, reason)

    def _stop(self, run: ActiveRun, reason: Stop) -> None:
        if run.stop is reason or run.stop is Stop.DROP:
            return
        run.stop = reason
        sure = run.executor.is_sure_to_end(run)
        if sure:
            self.handler_ended(run)  # from here on its executor keeps the time
        run.executor.stop(run)
        if not sure and not run.ended:
            loop = asyncio.get_running_loop()
            loop.call_later(WRITE_OFF_AFTER.total_seconds(), self._write_off, run)

    def _write_off(self, run: ActiveRun) -> None:
        """Settle a run that ignored its stop, and do without its execution slot."""
        if run.ended:
            return
        self._leaked.add(run)
        self.end(run, run.stopped(), self._clock.monotonic() - run.began)
        run.stop = Stop.DROP  # whatever it does later
        self.leaked(run.claim, "slot", self.size)

    def _settle(self, run: ActiveRun, outcome: Outcome, took: timedelta) -> None:
        claim, settlement = run.claim, None
        if type(outcome) is Succeeded and run.stop is not Stop.DROP:
            settlement = settle(claim, outcome, took=took, backoff=NO_TIME)
            self._put(claim, settlement)
        elif isinstance(outcome, Settled):
            self._reports.close(claim)
            settlement = settle(claim, outcome, took=took, backoff=NO_TIME)
            self._writer.tell(claim, settlement)
        elif run.stop is not Stop.DROP:
            if run.stop is Stop.RELEASE and isinstance(outcome, Failed | Crashed):
                outcome = Stopped()  # what it raised, it raised because we ended it
            elif run.stop is Stop.DEADLINE and isinstance(outcome, Stopped):
                outcome = Expired(failure=NEVER_BEGAN, started=False)
            settlement = self._settlement(run.task, claim, outcome, took)
            self._put(claim, settlement, outcome.error if isinstance(outcome, Failed) else None)
        else:
            self._reports.close(claim)  # whatever it said, it is not ours to write
        if run.span is not None:
            run.span.end(settlement)

    def _free_soon(self) -> None:
        # Once for all that end before the event loop turns: nothing could be done about it sooner.
        self._freeing = True
        assert self._loop is not None  # noqa: S101 - nothing ends that was not begun
        self._loop.call_soon(self._freed)

    def _freed(self) -> None:
        self._freeing = False
        self._signals.run_ended.send()

    def _put(self, claim: Claim, settlement: Settlement, error: BaseException | None = None) -> None:
        log = self._reports.close(claim) if self._reports.by_claim else None
        if log is not None:
            settlement = msgspec.structs.replace(settlement, log=log)
        if settlement.start is not None and claim.trace is not None:
            settlement = msgspec.structs.replace(settlement, trace=claim.trace)
        if error is not None:
            self._writer.raised(claim, error)
        self._writer.put(claim, settlement)

    def _settlement(self, task: AnyTask, claim: Claim, outcome: Outcome, took: timedelta) -> Settlement:
        wait, attempts = NO_TIME, None
        if isinstance(outcome, Failed):
            terms = task.retry.under(outcome.rule)
            wait = delay(terms, claim.attempt, self._entropy.fraction(), at_least=outcome.retry_after)
            # A job that was given a number of its own is bound by that, whatever was raised.
            attempts = terms.attempts if claim.max_attempts == task.retry.attempts else None
        elif isinstance(outcome, Crashed):
            wait = delay(task.retry, claim.crashes + 1, self._entropy.fraction())
        return settle(claim, outcome, took=took, backoff=wait, attempts=attempts)


def _started(claim: Claim) -> RunStarted:
    return RunStarted(
        job_id=claim.job_id,
        task=claim.task,
        attempt=claim.attempt,
        waited=claim.waited,
        schedule_id=claim.schedule_id,
        slot_at=claim.slot_at,
        trace=claim.trace,
        queue=claim.queue,
        workflow_id=claim.workflow_id,
    )


_EARLY = 0.001
"""Seconds: as fine as the clocks of event loops are."""


class Timers(Generic[R]):
    """Calls `late` for each run whose timeout passes.

    Of those with the same length, the first to begin is the first to be due: a dict keeps them in that
    order, and forgets one that has ended in time at no cost. The timer of a length is set anew only when it
    goes off.
    """

    def __init__(self, late: Callable[[R], None]) -> None:
        self._late = late
        self._running: dict[float, dict[R, float]] = {}

    def start(self, run: R, seconds: float) -> None:
        """It should be over so many seconds from now."""
        loop = asyncio.get_running_loop()
        running = self._running.get(seconds)
        if running is None:
            running = self._running[seconds] = {}
            loop.call_later(seconds, self._look, seconds)
        running[run] = loop.time() + seconds

    def stop(self, run: R, seconds: float) -> None:
        """It is over."""
        running = self._running.get(seconds)
        if running is not None:
            running.pop(run, None)

    def _look(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        # By the loop's own clock, which set the timer off: a little early counts as due.
        running, now = self._running[seconds], loop.time() + _EARLY
        late, first = [], None
        for run, due in running.items():
            if due > now:
                first = due
                break
            late.append(run)
        for run in late:
            del running[run]
        if first is None:
            del self._running[seconds]
        else:
            loop.call_later(first - now, self._look, seconds)
        for run in late:
            self._late(run)
