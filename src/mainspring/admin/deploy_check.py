"""Checks whether stored calls fit the tasks of the code that is about to be deployed."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from enum import StrEnum

import msgspec

from mainspring.clock import Clock
from mainspring.errors import InvalidArgument, shown
from mainspring.model.dead_letter import DeadFilter, DeadJob
from mainspring.model.job import Job, JobFilter
from mainspring.model.value import Value
from mainspring.store.store import Store
from mainspring.tasks.fit import Fit
from mainspring.tasks.payload import decode
from mainspring.tasks.registry import Registry
from mainspring.tasks.task import Task

EXAMPLES = 3
LARGEST = 200
"""The most different problems: the content of payloads must not decide how much memory is used."""
LEAST_PAGE, MOST_PAGE = 50, 2000
PAGE_BYTES = 8 * 1024 * 1024
"""About as much of payloads as one page may hold, to judge by the page before."""


class Source(StrEnum):
    """Where a call is stored."""

    JOB = "job"
    DEAD = "dead"
    SCHEDULE = "schedule"


class Trouble(StrEnum):
    """What is wrong with a call."""

    TASK = "task"
    """No task of that name is declared."""
    PAYLOAD = "payload"
    """What is stored cannot be read."""
    ARGUMENTS = "arguments"
    """The function takes other parameters."""
    VALUE = "value"
    """A value does not fit its parameter's annotation."""
    OTHER = "other"
    """Any further problem, when there are too many different ones."""


class Problem(Value, frozen=True, kw_only=True):
    """One thing that is wrong with a number of calls of one task."""

    task: str
    trouble: Trouble
    sentence: str = msgspec.field(name="problem")
    jobs: int
    dead: int
    schedules: int
    examples: tuple[str, ...]

    @property
    def count(self) -> int:
        """Calls in all."""
        return self.jobs + self.dead + self.schedules


class Comparison:
    """Takes calls one after the other; keeps counts and a few examples, never the calls."""

    def __init__(self, tasks: Mapping[str, Task[..., object]]) -> None:
        self._tasks = tasks
        self._fits = {name: Fit(task) for name, task in tasks.items()}
        self._found: dict[tuple[str, Trouble, str], tuple[Counter[Source], list[str]]] = {}
        self.checked: Counter[Source] = Counter()

    def look(self, source: Source, name: object, task: str, payload: bytes) -> None:
        """Look at one call; `name` is what people call the job or schedule it comes from."""
        self.checked[source] += 1
        if problem := self._problem(task, payload):
            trouble, sentence = problem
            key = (task, trouble, sentence)
            if key not in self._found and len(self._found) >= LARGEST:
                key = ("-", Trouble.OTHER, "other problems, too many to be told apart")
            counts, examples = self._found.setdefault(key, (Counter(), []))
            counts[source] += 1
            if len(examples) < EXAMPLES:
                examples.append(f"{source} {name}")

    def problems(self) -> list[Problem]:
        """What was found, by task, the most frequent first."""
        found = [
            Problem(
                task=task,
                trouble=trouble,
                sentence=sentence,
                jobs=counts[Source.JOB],
                dead=counts[Source.DEAD],
                schedules=counts[Source.SCHEDULE],
                examples=tuple(examples),
            )
            for (task, trouble, sentence), (counts, examples) in self._found.items()
        ]
        return sorted(found, key=lambda each: (each.task, -each.count, each.sentence))

    def _problem(self, name: str, payload: bytes) -> tuple[Trouble, str] | None:
        task = self._tasks.get(name)
        if task is None:
            return Trouble.TASK, "no task of that name is declared"
        try:
            args, kwargs = decode(payload)
        except InvalidArgument:
            return Trouble.PAYLOAD, "its payload cannot be read"
        try:
            task.check(args, kwargs)
        except InvalidArgument as error:
            return Trouble.ARGUMENTS, _sentence(error, name)
        if misfit := self._fits[name].misfit(args, kwargs):
            return Trouble.VALUE, misfit
        return None


async def compare(store: Store, clock: Clock, registry: Registry, *, dead: bool) -> Comparison:
    """Look at every live job, every schedule that this code does not write anew, and, if asked, every
    dead letter. Jobs that come and go meanwhile may or may not be seen."""
    comparison = Comparison(registry.tasks)
    async for job in _live(store, clock):
        comparison.look(Source.JOB, job.id, job.task, job.payload)
    if dead:
        async for letter in _dead(store):
            comparison.look(Source.DEAD, letter.id, letter.task, letter.payload)
    for schedule in await store.schedules.all():
        # A start writes the declared schedules, except those that were edited at run time.
        if schedule.edited or schedule.name not in registry.schedules:
            comparison.look(Source.SCHEDULE, schedule.name, schedule.task, schedule.payload)
    return comparison


def _sentence(error: InvalidArgument, task: str) -> str:
    """What is wrong, without a value of the call: calls with the same problem have other values. Of the
    task as a whole, what was given is a number of arguments or a parameter's name."""
    if error.field == task:
        return f"expected {error.expected}, got {shown(error.got)}"
    return f"{error.field.removeprefix(f'{task}.')}: expected {error.expected}"


async def _live(store: Store, clock: Clock) -> AsyncIterator[Job]:
    before, limit = None, LEAST_PAGE
    while page := await store.jobs.find(JobFilter(before=before, limit=limit), at=clock.stamp()):
        for job in page:
            yield job
        before, limit = page[-1].id, _next_limit(page)


def _next_limit(page: Sequence[Job | DeadJob]) -> int:
    size = sum(_size(each) for each in page)
    return max(LEAST_PAGE, min(MOST_PAGE, PAGE_BYTES * len(page) // max(size, 1)))


def _size(job: Job | DeadJob) -> int:
    return len(job.payload) + sum(len(each.message) + len(each.traceback) for each in job.errors)


async def _dead(store: Store) -> AsyncIterator[DeadJob]:
    before, limit = None, LEAST_PAGE
    while page := await store.dead_letters.find(DeadFilter(before=before, limit=limit)):
        for letter in page:
            yield letter
        before, limit = page[-1].id, _next_limit(page)
