"""What the parts of a process tell each other.

A part sends a signal and does not know what follows from it; whatever is concerned connects to the signal.
All parts of a process share one `Signals`, so that everything they may say to each other is written here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable


class Signal:
    """One thing that may be said, and the calls that it causes, in the order in which they were connected."""

    __slots__ = ("_calls",)

    def __init__(self) -> None:
        self._calls: tuple[Callable[[], object], ...] = ()

    def connect(self, call: Callable[[], object]) -> None:
        """Have this called whenever the signal is sent, on the thread that sends it."""
        self._calls += (call,)

    def send(self) -> None:
        """Make the calls."""
        for call in self._calls:
            call()


class Question:
    """One thing that may be asked: the answer is yes if any of those that are connected says yes."""

    __slots__ = ("_calls",)

    def __init__(self) -> None:
        self._calls: tuple[Callable[[], Awaitable[bool]], ...] = ()

    @property
    def has_listeners(self) -> bool:
        """Whether anything is connected."""
        return bool(self._calls)

    def connect(self, call: Callable[[], Awaitable[bool]]) -> None:
        """Have this asked, too."""
        self._calls += (call,)

    async def ask(self) -> bool:
        """Ask each of them, also after one has said yes."""
        answers = [await call() for call in self._calls]
        return any(answers)


class Signals:
    """Of one process. All are sent on its event loop, except where it is said."""

    def __init__(self) -> None:
        self.lease_held = Signal()
        """The process has its lease, for the first time or again: claims may be taken."""
        self.run_ended = Signal()
        """Runs have ended, and their execution slots are free. Sent once for all that end together."""
        self.handler_lost = Signal()
        """An execution slot or a thread is lost to a handler that does not end."""
        self.child_free = Signal()
        """A child process is free that is kept for a job whose process died."""
        self.result_waits = Signal()
        """There is a settlement to write, and there was none before."""
        self.results_written = Signal()
        """The store has answered for a batch of settlements."""
        self.limit_freed = Signal()
        """A job with limits has ended, or was claimed where a window counts: others may pass."""
        self.step_ended = Signal()
        """A step of a workflow has ended, or a workflow has begun: it may go on."""
        self.progress_waits = Signal()
        """There is progress of runs to write, and there was none before."""
        self.idle = Signal()
        """A look at the queues found nothing, while no job was running and nothing was left to write."""
        self.let_in = Question()
        """Asked before a worker is idle: has a job just passed its limits, or a step been released? Only a
        burst asks, for it ends when there is nothing left."""
        self.none_expected = Signal()
        """No process is left whose lease has ended and that may still renew it."""
        self.loop_blocked = Signal()
        """A handler holds up the event loop beyond its timeout. Sent on the thread of the heartbeat, the
        only one that still runs."""
        self.ending = Signal()
        """The process begins to end, for whatever reason."""
