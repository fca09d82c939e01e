"""The tasks and schedules declared in one app, by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from mainspring.declare.limits import QueueRules
from mainspring.declare.schedule import ScheduleDeclaration
from mainspring.declare.task import Task
from mainspring.errors import InvalidArgument, UnknownTask


class Registry:
    """Names are taken once: a second declaration is a mistake, never a replacement."""

    def __init__(self) -> None:
        self._tasks: dict[str, Task[..., object]] = {}
        self._schedules: dict[str, ScheduleDeclaration] = {}
        self._queues: dict[str, QueueRules] = {}
        self._shell: set[str] = set()
        self.tasks: Mapping[str, Task[..., object]] = MappingProxyType(self._tasks)
        self.schedules: Mapping[str, ScheduleDeclaration] = MappingProxyType(self._schedules)
        self.queues: Mapping[str, QueueRules] = MappingProxyType(self._queues)

    def add_task(self, task: Task[..., object]) -> None:
        """Take the task's name, or refuse one that is taken."""
        if task.name in self._tasks:
            raise InvalidArgument("task.name", task.name, "a name no other task has; pass name=…")
        self._tasks[task.name] = task
        if task.needs_shell:
            self._shell.add(task.name)

    def add_schedule(self, schedule: ScheduleDeclaration) -> None:
        """Take the schedule's name, or refuse one that is taken, or whose task is not declared here."""
        if schedule.name in self._schedules:
            raise InvalidArgument("schedule.name", schedule.name, "a name no other schedule has")
        self.get(schedule.task.name)
        self._schedules[schedule.name] = schedule

    def add_queue(self, name: str, rules: QueueRules) -> None:
        """Take the rules of a queue, once."""
        if name in self._queues:
            raise InvalidArgument("queue.name", name, "a queue that has no rules yet")
        self._queues[name] = rules

    @property
    def has_limits(self) -> bool:
        """Whether any job of this app may have to wait for a limit."""
        return bool(self._queues) or any(task.limits for task in self._tasks.values())

    def offered(self, *, shell: bool) -> tuple[str, ...]:
        """The names of the tasks that a worker takes, which starts programs or does not."""
        if shell or not self._shell:
            return tuple(self.tasks)
        return tuple(name for name in self.tasks if name not in self._shell)

    def get(self, name: str) -> Task[..., object]:
        """The task of that name; UnknownTask when none is declared here."""
        try:
            return self._tasks[name]
        except KeyError:
            raise UnknownTask(name, tuple(self._tasks)) from None
