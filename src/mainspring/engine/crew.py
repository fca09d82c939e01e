"""The claims in hand: one asyncio task each, from claim to settlement."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from datetime import timedelta
from enum import Enum, auto

import msgspec

from mainspring.clock import Clock
from mainspring.declare.registry import Registry
from mainspring.engine.executor import AnyTask, Executor
from mainspring.engine.failures import failure_of, timeout_failure
from mainspring.engine.fields import running
from mainspring.engine.journal import Journal
from mainspring.engine.settler import Settler
from mainspring.entropy import Entropy
from mainspring.lifecycle.backoff import delay
from mainspring.lifecycle.burial import NEVER_BEGAN
from mainspring.lifecycle.settle import settle
from mainspring.model.job import Claim
from mainspring.model.outcome import Crashed, Expired, Failed, Outcome, Settled, Stopped, Succeeded
from mainspring.model.settlement import Settlement
from mainspring.telemetry import HandlerLeaked, RunStarted, Telemetry
from mainspring.tracing import RunSpan, Tracer

WRITE_OFF_AFTER = timedelta(seconds=6)
"""How long a handler that was told to end may go on before its hand is given up."""
BLOCKED_AFTER = 2 * WRITE_OFF_AFTER
"""How long after its time a run may be in hand: if it has not been given up by then, nothing on the event
loop moves any more."""
NO_TIME = timedelta()


class Ending(Enum):
    """Why we end a run ourselves."""

    RELEASE = auto()
    """The job goes back to the queue: shutdown, or a lease that is running out."""
    DROP = auto()
    """The claim is not ours any more: there is nothing to settle."""


class Hand:
    """One claim and the task that runs it."""

    __slots__ = ("_crew", "began", "claim", "due", "ending", "late", "settling", "span", "task", "timer")

    def __init__(self, claim: Claim, crew: Crew) -> None:
        self.claim = claim
        self._crew = crew
        self.began = 0.0
        self.due: float | None = None
        """When its timeout ends, by the crew's clock."""
        self.timer: asyncio.TimerHandle | None = None
        self.late = False
        """Whether its timeout has ended."""
        self.ending: Ending | None = None
        self.span: RunSpan | None = None
        self.settling = False
        """A transaction of the handler's has written, or is about to, that the job is done: the claim may
        be gone from the store at any moment, and that is no loss."""
        self.task: asyncio.Task[None] | None = None
        """Set once the run has begun: a task cancelled before that would never get to settle."""

    def is_set(self) -> bool:
        """Whether the handler should end: what `ctx.cancelled` asks."""
        return self.ending is not None or self.late

    def limit(self, seconds: float) -> None:
        """The timeout starts to run."""
        self.due = self._crew.now() + seconds
        self.timer = asyncio.get_running_loop().call_later(seconds, self._expire)

    def _expire(self) -> None:
        self.late = True
        self._crew.overdue(self)


class Crew:
    """Runs claims, at most `size` at a time, and hands their settlements on."""

    def __init__(
        self,
        size: int,
        registry: Registry,
        executor: Executor,
        settler: Settler,
        journal: Journal,
        *,
        clock: Clock,
        entropy: Entropy,
        telemetry: Telemetry,
        tracer: Tracer | None = None,
    ) -> None:
        self._size = size
        self._registry = registry
        self._executor = executor
        self._settler = settler
        self._journal = journal
        self._clock = clock
        self._entropy = entropy
        self._telemetry = telemetry
        self._tracer = tracer
        self._hands: dict[int, Hand] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._leaked: set[Hand] = set()
        self.on_freed: Callable[[], None] = lambda: None
        self.on_leak: Callable[[], None] = lambda: None
        """Called when a hand or a thread was lost to a handler that would not end."""
        self.draining = False
        executor.on_leak = self._lost_a_thread

    @property
    def free(self) -> int:
        """How many more claims may be taken. Unwritten settlements press back."""
        return self.size - max(len(self._hands), self._settler.pending - self._size)

    @property
    def size(self) -> int:
        """Hands that are not lost to handlers which were told to end and go on."""
        return self._size - len(self._leaked)

    @property
    def worn_out(self) -> bool:
        """Whether no hand, or no thread, is left to work with."""
        return self.size <= 0 or self._executor.threads_left <= 0

    @property
    def running(self) -> int:
        """Claims in hand."""
        return len(self._hands)

    def holding(self) -> list[tuple[int, int]]:
        """The (job, fence) pairs in hand. Safe from any thread: the copy is one bytecode."""
        hands = list(self._hands.values())
        return [(hand.claim.job_id, hand.claim.fence) for hand in hands if not hand.settling]

    def now(self) -> float:
        """Seconds that never go back. Safe from any thread."""
        return self._clock.monotonic()

    def start(self, claims: Iterable[Claim]) -> None:
        """Take these claims in hand. One that is in hand already, because the store forgot the first
        grant in a crash, simply goes on; under a new fence, the old run has lost."""
        loop = asyncio.get_running_loop()
        for claim in claims:
            old = self._hands.get(claim.job_id)
            if old is not None:
                if (old.claim.worker_id, old.claim.fence) == (claim.worker_id, claim.fence):
                    continue
                self._end(old, Ending.DROP)
            hand = self._hands[claim.job_id] = Hand(claim, self)
            running = loop.create_task(self._run(hand))
            self._tasks.add(running)
            running.add_done_callback(self._tasks.discard)

    def unwritten(self) -> set[tuple[int, int]]:
        """The (job, fence) pairs whose run has ended and whose settlement the store has not answered."""
        return self._settler.claims()

    def drop(self, claims: Iterable[tuple[int, int]]) -> tuple[int, ...]:
        """End the runs of (job, fence) pairs that are not ours any more; answer which were in hand.
        The fence counts: the job may have come back to us under a new claim, which stands."""
        found = [(self._hands.get(job_id), fence) for job_id, fence in claims]
        dropped = [hand for hand, fence in found if hand and hand.claim.fence == fence and not hand.settling]
        for hand in dropped:
            self._end(hand, Ending.DROP)
        return tuple(hand.claim.job_id for hand in dropped)

    def drop_all(self) -> int:
        """End every run: the lease is gone, and all claims with it."""
        return len(self.drop(self.holding()))

    def release(self, job_ids: Iterable[int]) -> int:
        """End these runs and give their jobs back, at no cost of an attempt."""
        hands = [self._hands[job_id] for job_id in job_ids if job_id in self._hands]
        for hand in hands:
            self._end(hand, Ending.RELEASE)
        return len(hands)

    def release_all(self) -> int:
        """End every run and give its job back, at no cost of an attempt."""
        return self.release(list(self._hands))

    def abandon(self) -> int:
        """Give back the jobs of runs that would not end. Their handlers go on until the process
        ends, but nothing of theirs is settled."""
        hands = list(self._hands.values())
        for hand in hands:
            hand.ending = Ending.DROP
            self._put(hand.claim, settle(hand.claim, Stopped(), took=NO_TIME, backoff=NO_TIME))
        self._hands.clear()
        return len(hands)

    @property
    def quiet(self) -> bool:
        """Nothing in hand and nothing left to write."""
        return not self._hands and not self._settler.pending

    def blocked(self) -> list[Claim]:
        """Claims of runs so far beyond their time that the event loop cannot be moving. Safe from any
        thread."""
        hands = list(self._hands.values())
        if not any(hand.due is not None for hand in hands):
            return []
        now, slack = self.now(), BLOCKED_AFTER.total_seconds()
        return [hand.claim for hand in hands if hand.due is not None and now > hand.due + slack]

    def _end(self, hand: Hand, ending: Ending) -> None:
        if hand.ending is ending or hand.ending is Ending.DROP:
            return
        hand.ending = ending
        if hand.task is not None:
            hand.task.cancel()
        self.overdue(hand)

    def overdue(self, hand: Hand) -> None:
        """It should end now; look again whether it did."""
        asyncio.get_running_loop().call_later(WRITE_OFF_AFTER.total_seconds(), self._write_off, hand)

    def _write_off(self, hand: Hand) -> None:
        """Settle a run whose handler swallowed its cancellation, and do without the hand. Threads and
        children need no such thing: those are not waited for, these are killed."""
        claim, task = hand.claim, self._registry.get(hand.claim.task)
        if hand.task is None or hand.task.done() or hand in self._leaked:
            return
        if not task.signature.is_async or self._executor.isolates(task, claim):
            return
        self._leaked.add(hand)
        if self._hands.get(claim.job_id) is hand:
            del self._hands[claim.job_id]
        if hand.ending is not Ending.DROP:
            took = timedelta(seconds=self._clock.monotonic() - hand.began)
            outcome: Outcome = Stopped()
            if hand.ending is None and task.timeout is not None:
                outcome = Failed(failure=timeout_failure(task.timeout.total_seconds()))
            hand.ending = Ending.DROP  # whatever it does later
            settlement = self._settled(task, claim, outcome, took)
            self._put(claim, settlement)
            if hand.span is not None:
                hand.span.end(settlement)
        self._lost(claim, "hand", self.size)
        self.on_freed()

    def _lost_a_thread(self, claim: Claim) -> None:
        self._lost(claim, "thread", self._executor.threads_left)

    def _lost(self, claim: Claim, what: str, left: int) -> None:
        if not self.draining:
            self._telemetry.emit(HandlerLeaked(job_id=claim.job_id, task=claim.task, what=what, left=left))
            self.on_leak()

    async def _run(self, hand: Hand) -> None:
        hand.task = asyncio.current_task()
        task = self._registry.get(hand.claim.task)
        began = hand.began = self._clock.monotonic()
        # What few runs have is looked at before anything is called for it: this is done once a job.
        barred = None if hand.ending is None and hand.claim.expires_in is None else _unbegun(hand)
        outcome = barred or await self._perform(task, hand)
        claim = hand.claim
        if hand.timer is not None:
            hand.timer.cancel()
        if self._leaked:
            self._leaked.discard(hand)
        if self._hands.get(claim.job_id) is hand:
            del self._hands[claim.job_id]
        took = timedelta(seconds=self._clock.monotonic() - began)
        settlement: Settlement | None = None
        if isinstance(outcome, Succeeded) and (hand.ending is None or hand.ending is Ending.RELEASE):
            settlement = settle(claim, outcome, took=took, backoff=NO_TIME)
            self._put(claim, settlement)
        elif isinstance(outcome, Settled):
            self._journal.close(claim)
            settlement = settle(claim, outcome, took=took, backoff=NO_TIME)
            self._settler.tell(claim, settlement)
        elif hand.ending is not Ending.DROP:
            if hand.ending is Ending.RELEASE and isinstance(outcome, Failed | Crashed):
                outcome = Stopped()  # what it raised, it raised because we ended it
            settlement = self._settled(task, claim, outcome, took)
            self._put(claim, settlement)
        else:
            self._journal.close(claim)  # whatever it said, it is not ours to write
        if hand.span is not None:
            hand.span.end(settlement)
        self.on_freed()

    def _put(self, claim: Claim, settlement: Settlement) -> None:
        log = self._journal.close(claim) if self._journal.reports else None
        if log is not None:
            settlement = msgspec.structs.replace(settlement, log=log)
        if settlement.start is not None and claim.trace is not None:
            settlement = msgspec.structs.replace(settlement, trace=claim.trace)
        self._settler.put(claim, settlement)

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

    async def _perform(self, task: AnyTask, hand: Hand) -> Outcome:
        claim = hand.claim
        if self._tracer is not None:
            hand.span = self._tracer.run(claim)
            claim = hand.claim = msgspec.structs.replace(claim, trace=hand.span.trace)
        running.set(claim)
        self._telemetry.emit(
            RunStarted(
                job_id=claim.job_id,
                task=claim.task,
                attempt=claim.attempt,
                waited=claim.waited,
                schedule_id=claim.schedule_id,
                slot_at=claim.slot_at,
                trace=claim.trace,
            )
        )
        try:
            if (task.isolation is not None or claim.crashes) and self._executor.isolates(task, claim):
                return await self._executor.run_in_child(task, claim, hand)
            return await self._executor.run(task, claim, stop=hand)
        except asyncio.CancelledError as error:
            if hand.ending is None:
                # Not by us: the handler cancelled its own task. A release would run it for ever.
                return Failed(failure=failure_of(error))
            return Stopped()


def _unbegun(hand: Hand) -> Outcome | None:
    """How a run ends that should not begin at all: we are stopping, or the job's deadline has passed."""
    if hand.ending:
        return Stopped(started=False)
    left = hand.claim.expires_in
    return None if left is None or left > NO_TIME else Expired(failure=NEVER_BEGAN, started=False)
