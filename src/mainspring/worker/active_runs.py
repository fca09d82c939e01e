"""The claims in hand, from claim to settlement."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from datetime import timedelta
from functools import partial
from typing import Generic, TypeVar

import msgspec

from mainspring.clock import Clock
from mainspring.declare.registry import Registry
from mainspring.entropy import Entropy
from mainspring.lifecycle.backoff import delay
from mainspring.lifecycle.burial import LAST_CRASH
from mainspring.lifecycle.settle import settle
from mainspring.model.job import Claim
from mainspring.model.outcome import Crashed, Failed, Outcome, Settled, Stopped, Succeeded
from mainspring.model.settlement import Settlement
from mainspring.telemetry.events import HandlerLeaked, RunStarted, Telemetry
from mainspring.telemetry.run_fields import running
from mainspring.telemetry.traces import Tracer
from mainspring.worker.coroutine_pool import CoroutinePool
from mainspring.worker.executor import AnyTask, Executor
from mainspring.worker.outcomes import timeout_failure
from mainspring.worker.result_writer import ResultWriter
from mainspring.worker.run import Ending, Run
from mainspring.worker.run_reports import RunReports
from mainspring.worker.threads import ThreadCall

WRITE_OFF_AFTER = timedelta(seconds=6)
"""How long a handler that was told to end may go on before its hand is given up."""
BLOCKED_AFTER = 2 * WRITE_OFF_AFTER
"""How long after its time a run may be in hand: if it has not been given up by then, nothing on the event
loop moves any more."""
NO_TIME = timedelta()


class ActiveRuns:
    """Runs claims, at most `size` at a time, and hands their settlements on."""

    def __init__(
        self,
        size: int,
        registry: Registry,
        executor: Executor,
        writer: ResultWriter,
        reports: RunReports,
        *,
        clock: Clock,
        entropy: Entropy,
        telemetry: Telemetry,
        tracer: Tracer | None = None,
    ) -> None:
        self._size = size
        self._registry = registry
        self._executor = executor
        self._writer = writer
        self._reports = reports
        self._clock = clock
        self._entropy = entropy
        self._telemetry = telemetry
        self._tracer = tracer
        self._runs: dict[int, Run] = {}
        self._coroutines = CoroutinePool[Run](self._run, clock.monotonic)
        self._timers = Timers[Run](self._expire)
        self._leaked: set[Run] = set()
        self._left: list[Claim] = []
        """Of handlers that were told to end while we drained, and go on."""
        self._loop: asyncio.AbstractEventLoop | None = None
        """Kept: a function may tell that it has ended while the loop does not run, as in tests."""
        self._freeing = False
        self.on_freed: Callable[[], None] = lambda: None
        """Called soon after a run has ended."""
        self.on_leak: Callable[[], None] = lambda: None
        """Called when a hand or a thread was lost to a handler that would not end."""
        self.draining = False
        self._tells_start = True
        executor.on_leak = self._lost_a_thread

    @property
    def free(self) -> int:
        """How many more claims may be taken. Unwritten settlements press back."""
        return min(self.size - len(self._runs), self._writer.room(self._size))

    @property
    def size(self) -> int:
        """CoroutinePool that are not lost to handlers which were told to end and go on."""
        return self._size - len(self._leaked)

    def room_for_suspects(self) -> int:
        """How many suspects would begin at once. Where there is none, the next child is kept for one."""
        suspects = [run for run in self._runs.values() if run.claim.suspect]
        if any(run.claim.crashes >= LAST_CRASH for run in suspects):
            self._executor.let_child_go()
            return 0  # it runs without any other
        coming = sum(run.task is None for run in suspects)  # they have not asked for their child yet
        room = min(self.free, self._executor.free_children - coming)
        if room <= 0:
            self._executor.keep_child()
        return max(room, 0)

    @property
    def has_suspects(self) -> bool:
        """Whether one is in hand."""
        return any(run.claim.suspect for run in self._runs.values())

    def no_more_suspects(self) -> None:
        """None is there for a child that was kept."""
        self._executor.let_child_go()

    @property
    def worn_out(self) -> bool:
        """Whether no hand, or no thread, is left to work with."""
        return self.size <= 0 or self._executor.threads_left <= 0

    @property
    def running(self) -> int:
        """Claims in hand."""
        return len(self._runs)

    def taken(self) -> set[tuple[int, int]]:
        """The (job, fence) pairs of all runs that have not ended."""
        return {(run.claim.job_id, run.claim.fence) for run in self._runs.values()}

    def holding(self) -> list[tuple[int, int]]:
        """The same of those whose claim the store must know. Safe from any thread: the copy is one
        bytecode."""
        runs = list(self._runs.values())
        return [(run.claim.job_id, run.claim.fence) for run in runs if not run.settling]

    def now(self) -> float:
        """Seconds that never go back. Safe from any thread."""
        return self._clock.monotonic()

    def start(self, claims: Iterable[Claim]) -> None:
        """Take these claims in hand. One that is in hand already, because the store forgot the first
        grant in a crash, simply goes on; under a new fence, the old run has lost."""
        runs, limit, plain = [], self._limit, self._tracer is None
        self._loop = asyncio.get_running_loop()
        self._tells_start = self._telemetry.hears(RunStarted)
        try:
            for claim in claims:
                old = self._runs.get(claim.job_id)
                if old is not None and self._goes_on(old, claim):
                    continue
                task = self._registry.get(claim.task)
                run = self._runs[claim.job_id] = Run(claim, limit)
                if plain and self._executor.is_plain(task, claim):
                    self._begin(run, task)
                else:
                    runs.append(run)
        finally:
            self._coroutines.give(runs)  # whatever became of the others

    def _goes_on(self, old: Run, claim: Claim) -> bool:
        """Whether it is what is in hand already; under another fence, that has lost. One that we have dropped
        writes nothing any more: the same claim, granted anew, is another run's."""
        same = (old.claim.worker_id, old.claim.fence) == (claim.worker_id, claim.fence)
        if same and old.ending is not Ending.DROP:
            return True
        self._end(old, Ending.DROP)
        return False

    def unwritten(self) -> set[tuple[int, int]]:
        """The (job, fence) pairs whose run has ended and whose settlement the store has not answered."""
        return self._writer.claims()

    def drop(self, claims: Iterable[tuple[int, int]]) -> tuple[Claim, ...]:
        """End the runs of (job, fence) pairs that are not ours any more; answer which were in hand.
        The fence counts: the job may have come back to us under a new claim, which stands."""
        found = [(self._runs.get(job_id), fence) for job_id, fence in claims]
        dropped = [run for run, fence in found if run and run.claim.fence == fence and not run.settling]
        for run in dropped:
            self._end(run, Ending.DROP)
        return tuple(run.claim for run in dropped)

    def drop_all(self) -> tuple[Claim, ...]:
        """End every run: the lease is gone, and all claims with it."""
        return self.drop(self.holding())

    def release(self, job_ids: Iterable[int]) -> int:
        """End these runs and give their jobs back, at no cost of an attempt."""
        runs = [self._runs[job_id] for job_id in job_ids if job_id in self._runs]
        for run in runs:
            self._end(run, Ending.RELEASE)
        return len(runs)

    def give_back(self, claims: Iterable[Claim]) -> None:
        """Give these jobs back without taking them in hand; those that are in hand go on."""
        for claim in claims:
            old = self._runs.get(claim.job_id)
            if old is None or not self._goes_on(old, claim):
                self._put(claim, settle(claim, Stopped(started=False), took=NO_TIME, backoff=NO_TIME))

    def release_all(self) -> int:
        """End every run and give its job back, at no cost of an attempt."""
        return self.release(list(self._runs))

    def abandon(self) -> None:
        """Give back the jobs of runs that would not end. Their handlers go on until the process
        ends, but nothing of theirs is settled."""
        runs = list(self._runs.values())
        for run in runs:
            run.ending = Ending.DROP
            self._put(run.claim, settle(run.claim, Stopped(), took=NO_TIME, backoff=NO_TIME))
        self._runs.clear()
        self._left += [run.claim for run in runs]

    def left(self) -> list[Claim]:
        """What was in hand when we began to drain, or came into it since, and has not ended; what the store
        knows of it is another matter. Safe from any thread."""
        runs = list(self._runs.values())
        return [*self._left, *(run.claim for run in runs)]

    @property
    def quiet(self) -> bool:
        """Nothing in hand and nothing left to write."""
        return not self._runs and not self._writer.pending

    def blocked(self) -> list[Claim]:
        """Claims of runs so far beyond their time that the event loop cannot be moving. Safe from any
        thread."""
        runs = list(self._runs.values())
        if not any(run.due is not None for run in runs):
            return []
        now, slack = self.now(), BLOCKED_AFTER.total_seconds()
        return [run.claim for run in runs if run.due is not None and now > run.due + slack]

    def _end(self, run: Run, ending: Ending) -> None:
        if run.ending is ending or run.ending is Ending.DROP:
            return
        run.ending = ending
        if run.call is not None:
            self._end_call(run, run.call)
            return
        if run.task is not None:
            run.task.cancel()
        self._overdue(run)

    def _end_call(self, run: Run, call: ThreadCall) -> None:
        task = self._registry.get(run.claim.task)
        if call.take():
            self._ended(run, task, (Stopped(started=False), 0.0), None)
        else:
            self._outlive(run, task)

    def _limit(self, run: Run, seconds: float) -> None:
        run.due = self.now() + seconds
        self._timers.start(run, seconds)

    def _expire(self, run: Run) -> None:
        """Its timeout has ended."""
        run.late = True
        if run.call is not None:
            self._outlive(run, self._registry.get(run.claim.task))
            return
        if run.task is not None:
            run.task.cancel()
        self._overdue(run)

    def _overdue(self, run: Run) -> None:
        """It should end now; look again whether it did."""
        asyncio.get_running_loop().call_later(WRITE_OFF_AFTER.total_seconds(), self._write_off, run)

    def _write_off(self, run: Run) -> None:
        """Settle a run whose handler swallowed its cancellation, and do without the hand. ThreadPool and
        children need no such thing: those are not waited for, these are killed."""
        claim, task = run.claim, self._registry.get(run.claim.task)
        if run.task is None or run in self._leaked:
            return
        if not task.signature.is_async or self._executor.isolates(task, claim):
            return
        self._leaked.add(run)
        if self._runs.get(claim.job_id) is run:
            del self._runs[claim.job_id]
        if run.ending is not Ending.DROP:
            took = timedelta(seconds=self._clock.monotonic() - run.began)
            outcome: Outcome = Stopped()
            if run.ending is None and task.timeout is not None:
                outcome = Failed(failure=timeout_failure(task.timeout.total_seconds()))
            run.ending = Ending.DROP  # whatever it does later
            settlement = self._settled(task, claim, outcome, took)
            self._put(claim, settlement)
            if run.span is not None:
                run.span.end(settlement)
        self._lost(claim, "hand", self.size)
        self.on_freed()

    def _lost_a_thread(self, claim: Claim) -> None:
        self._lost(claim, "thread", self._executor.threads_left)

    def _lost(self, claim: Claim, what: str, left: int) -> None:
        if self.draining:
            self._left.append(claim)
        else:
            self._telemetry.emit(
                HandlerLeaked(job_id=claim.job_id, task=claim.task, what=what, left=left, claim=claim)
            )
            self.on_leak()

    async def _run(self, run: Run, hand: asyncio.Task[None]) -> None:
        run.task = hand
        claim = run.claim
        task = self._registry.get(claim.task)
        began = run.began = self._clock.monotonic()
        # What few runs have is looked at before anything is called for it: this is done once a job.
        barred = None if run.ending is None and claim.expires_in is None else run.barred()
        if barred is not None:
            outcome = barred
        else:
            if self._tracer is not None:
                run.span = self._tracer.run(claim)
                claim = run.claim = msgspec.structs.replace(claim, trace=run.span.trace)
            running.set(claim)
            if self._tells_start:
                self._telemetry.emit(run.begun())
            try:
                if task.isolation is not None or claim.suspect:
                    outcome = await self._executor.run_apart(task, claim, run)
                else:
                    outcome = await self._executor.run(task, claim, stop=run)
            except GeneratorExit:
                raise  # it is thrown away, not run
            except BaseException as error:  # noqa: BLE001 - nothing may stay in hand, nor end the event loop
                outcome = run.cut_off(error)
        run.task = None
        self._finish(run, task, outcome, timedelta(seconds=self._clock.monotonic() - began))

    def _finish(self, run: Run, task: AnyTask, outcome: Outcome, took: timedelta) -> None:
        claim = run.claim
        if run.due is not None:
            self._timers.stop(run, run.seconds)
        if self._leaked:
            self._leaked.discard(run)
        if self._runs.get(claim.job_id) is run:
            del self._runs[claim.job_id]
        settlement: Settlement | None = None
        if type(outcome) is Succeeded and run.ending is not Ending.DROP:
            settlement = settle(claim, outcome, took=took, backoff=NO_TIME)
            self._put(claim, settlement)
        elif isinstance(outcome, Settled):
            self._reports.close(claim)
            settlement = settle(claim, outcome, took=took, backoff=NO_TIME)
            self._writer.tell(claim, settlement)
        elif run.ending is not Ending.DROP:
            if run.ending is Ending.RELEASE and isinstance(outcome, Failed | Crashed):
                outcome = Stopped()  # what it raised, it raised because we ended it
            settlement = self._settled(task, claim, outcome, took)
            self._put(claim, settlement, outcome.error if isinstance(outcome, Failed) else None)
        else:
            self._reports.close(claim)  # whatever it said, it is not ours to write
        if run.span is not None:
            run.span.end(settlement)
        if not self._freeing:
            # Once for all that end before the event loop turns: nobody could do anything about it sooner.
            self._freeing = True
            assert self._loop is not None  # noqa: S101 - nothing ends that was not begun
            self._loop.call_soon(self._freed)

    def _freed(self) -> None:
        self._freeing = False
        self.on_freed()

    def _begin(self, run: Run, task: AnyTask) -> None:
        """A function that asks for nothing is called without a task: all that one could do for it is wait."""
        run.began = self._clock.monotonic()
        told = self._tells_start or task.timeout is not None
        try:
            run.call = self._executor.begin(
                task,
                run.claim,
                self._clock.monotonic,
                on_begin=partial(self._begun, run, task) if told else None,
                on_end=partial(self._ended, run, task),
            )
        except RuntimeError as error:  # the system gives us no thread
            self._finish(run, task, run.cut_off(error), NO_TIME)

    def _begun(self, run: Run, task: AnyTask) -> None:
        if run.call is None:
            return  # it has been given up meanwhile
        run.began = self._clock.monotonic()
        if self._tells_start:
            self._telemetry.emit(run.begun())
        if task.timeout is not None:
            run.limit(task.timeout.total_seconds())

    def _ended(
        self, run: Run, task: AnyTask, ended: tuple[Outcome, float], error: BaseException | None
    ) -> None:
        if run.call is not None:  # else it has been given up meanwhile
            run.call = None
            outcome, seconds = ended if error is None else (run.cut_off(error), self.now() - run.began)
            if run.late and run.ending is None:
                outcome = self._executor.timed_out(task)  # whatever it did after its time
            self._finish(run, task, outcome, timedelta(seconds=seconds))

    def _outlive(self, run: Run, task: AnyTask) -> None:
        """See to it that a call which should end now is over soon, or given up."""
        if run.call is not None:
            self._executor.outlive(run.call, run.claim, partial(self._give_up, run, task))

    def _give_up(self, run: Run, task: AnyTask) -> None:
        self._ended(run, task, (Stopped(), self._clock.monotonic() - run.began), None)

    def _put(self, claim: Claim, settlement: Settlement, error: BaseException | None = None) -> None:
        log = self._reports.close(claim) if self._reports.by_claim else None
        if log is not None:
            settlement = msgspec.structs.replace(settlement, log=log)
        if settlement.start is not None and claim.trace is not None:
            settlement = msgspec.structs.replace(settlement, trace=claim.trace)
        if error is not None:
            self._writer.raised(claim, error)
        self._writer.put(claim, settlement)

    def _settled(self, task: AnyTask, claim: Claim, outcome: Outcome, took: timedelta) -> Settlement:
        wait, attempts = NO_TIME, None
        if isinstance(outcome, Failed):
            terms = task.retry.under(outcome.rule)
            wait = delay(terms, claim.attempt, self._entropy.fraction(), at_least=outcome.retry_after)
            # A job that was given a number of its own is bound by that, whatever was raised.
            attempts = terms.attempts if claim.max_attempts == task.retry.attempts else None
        elif isinstance(outcome, Crashed):
            wait = delay(task.retry, claim.crashes + 1, self._entropy.fraction())
        return settle(claim, outcome, took=took, backoff=wait, attempts=attempts)


R = TypeVar("R")

_EARLY = 0.001
"""Seconds: as fine as the clocks of event loops are."""


class Timers(Generic[R]):
    """Runs under a timeout, told when it ends.

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
