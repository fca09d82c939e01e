"""The task that a schedule calls: as an app declares it, or by its name alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from mainspring.model.job import DEFAULT_QUEUE
from mainspring.tasks import payload
from mainspring.tasks.checks import valid_attempts, valid_name, valid_priority
from mainspring.tasks.registry import Registry
from mainspring.tasks.retry import DEFAULT, Retry


@dataclass(frozen=True, slots=True, kw_only=True)
class Callee:
    """A task's name and defaults. Without a check nobody here knows what it may be called with."""

    name: str
    queue: str = DEFAULT_QUEUE
    priority: int = 0
    attempts: int = DEFAULT.attempts
    retry: Retry = DEFAULT
    check: Callable[[Sequence[object], Mapping[str, object]], None] | None = None
    """The task's own: a target looks at more than names and types."""

    @classmethod
    def named(cls, name: object, registry: Registry | None) -> Callee:
        """The task of that name; UnknownTask when there is a registry and it has none."""
        valid = valid_name(name, "schedule.task")  # type: ignore[arg-type]  # checked there
        if registry is None:
            return cls(name=valid)
        task = registry.get(valid)
        return cls(
            name=task.name,
            queue=task.queue,
            priority=task.priority,
            attempts=task.attempts,
            retry=task.retry,
            check=task.check,
        )

    def payload(self, args: Sequence[object], kwargs: Mapping[str, object]) -> bytes:
        """A call with these, checked as far as the task is known."""
        if self.check is not None:
            self.check(args, kwargs)
        return payload.encode(args, kwargs, field=self.name)

    def option(self, name: str, said: object) -> object:
        """Its queue, priority or attempts: what was said, or its own where that is None."""
        match name:
            case _ if said is None:
                return getattr(self, name)
            case "queue":
                return valid_name(said, "schedule.queue")  # type: ignore[arg-type]  # checked there
            case "priority":
                return valid_priority(said, "schedule.priority")  # type: ignore[arg-type]  # checked there
            case _:
                return valid_attempts(said, "schedule.attempts")  # type: ignore[arg-type]  # checked there
