"""The claims in hand: one asyncio task each, from claim to settlement."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from datetime import timedelta
from enum import Enum, auto

from mainspring.clock import Clock
from mainspring.declare.registry import Registry
from mainspring.engine.executor import AnyTask, Executor
from mainspring.engine.failures import failure_of
from mainspring.engine.settler import Settler
from mainspring.entropy import Entropy
from mainspring.lifecycle.backoff import delay
from mainspring.lifecycle.settle import settle
from mainspring.model.job import Claim
from mainspring.model.outcome import Failed, Outcome, Settled, Stopped
from mainspring.telemetry import RunStarted, Telemetry


class Ending(Enum):
    """Why we end a run ourselves."""

    RELEASE = auto()
    """The job goes back to the queue: shutdown, or a lease that is running out."""
    DROP = auto()
    """The claim is not ours any more: there is nothing to settle."""


class Hand:
    """One claim and the task that runs it."""

    __slots__ = ("claim", "ending", "settling", "task")

    def is_set(self) -> bool:
        """Whether the handler should end: what `ctx.cancelled` asks."""
        return self.ending is not None

    def __init__(self, claim: Claim) -> None:
        self.claim = claim
        self.ending: Ending | None = None
        self.settling = False
        """A transaction of the handler's has written, or is about to, that the job is done: the claim may
        be gone from the store at any moment, and that is no loss."""
        self.task: asyncio.Task[None] | None = None
        """Set once the run has begun: a task cancelled before that would never get to settle."""


class Crew:
    """Runs claims, at most `size` at a time, and hands their settlements on."""

    def __init__(
        self,
        size: int,
        registry: Registry,
        executor: Executor,
        settler: Settler,
        *,
        clock: Clock,
        entropy: Entropy,
        telemetry: Telemetry,
    ) -> None:
        self._size = size
        self._registry = registry
        self._executor = executor
        self._settler = settler
        self._clock = clock
        self._entropy = entropy
        self._telemetry = telemetry
        self._hands: dict[int, Hand] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.on_freed: Callable[[], None] = lambda: None

    @property
    def free(self) -> int:
        """How many more claims may be taken. Unwritten settlements press back."""
        return self._size - max(len(self._hands), self._settler.pending - self._size)

    @property
    def running(self) -> int:
        """Claims in hand."""
        return len(self._hands)

    def holding(self) -> list[tuple[int, int]]:
        """The (job, fence) pairs in hand. Safe from any thread: the copy is one bytecode."""
        hands = list(self._hands.values())
        return [(hand.claim.job_id, hand.claim.fence) for hand in hands if not hand.settling]

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
            hand = self._hands[claim.job_id] = Hand(claim)
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
            self._settler.put(
                hand.claim, settle(hand.claim, Stopped(), took=timedelta(), backoff=timedelta())
            )
        self._hands.clear()
        return len(hands)

    @property
    def quiet(self) -> bool:
        """Nothing in hand and nothing left to write."""
        return not self._hands and not self._settler.pending

    def _end(self, hand: Hand, ending: Ending) -> None:
        if hand.ending is ending or hand.ending is Ending.DROP:
            return
        hand.ending = ending
        if hand.task is not None:
            hand.task.cancel()

    async def _run(self, hand: Hand) -> None:
        hand.task = asyncio.current_task()
        claim = hand.claim
        task = self._registry.get(claim.task)
        began = self._clock.monotonic()
        outcome = Stopped(started=False) if hand.ending else await self._perform(task, hand)
        if self._hands.get(claim.job_id) is hand:
            del self._hands[claim.job_id]
        took = timedelta(seconds=self._clock.monotonic() - began)
        if isinstance(outcome, Settled):
            self._settler.tell(claim, settle(claim, outcome, took=took, backoff=timedelta()))
        elif hand.ending is not Ending.DROP:
            wait = timedelta()
            if hand.ending is Ending.RELEASE and isinstance(outcome, Failed):
                outcome = Stopped()  # what it raised, it raised because we ended it
            if isinstance(outcome, Failed):
                wait = delay(task.retry, claim.attempt, self._entropy.fraction())
            self._settler.put(claim, settle(claim, outcome, took=took, backoff=wait))
        self.on_freed()

    async def _perform(self, task: AnyTask, hand: Hand) -> Outcome:
        claim = hand.claim
        self._telemetry.emit(RunStarted(job_id=claim.job_id, task=claim.task, attempt=claim.attempt))
        try:
            return await self._executor.run(task, claim, stop=hand)
        except asyncio.CancelledError as error:
            if hand.ending is None:
                # Not by us: the handler cancelled its own task. A release would run it for ever.
                return Failed(failure=failure_of(error))
            return Stopped()
