"""How children are started, and how they find what to run."""

from __future__ import annotations

import sys

from mainspring.engine.isolate.frames import Hello
from mainspring.errors import InvalidArgument
from mainspring.model.value import Value
from mainspring.tasks.task import Task


class Launch(Value, frozen=True, kw_only=True):
    """The command of a child, and the first thing it is told."""

    command: tuple[str, ...]
    hello: Hello

    def reaches(self, task: Task[..., object]) -> bool:
        """Whether a child would find the task's function."""
        return self.hello.target is not None or function_name(task) is not None

    def check(self, task: Task[..., object]) -> None:
        """Refuse a task that wants a child which could not find it."""
        if task.isolation is not None and not self.reaches(task):
            raise InvalidArgument(
                "task.isolate",
                task.name,
                "a function at the top of a module other than __main__, or a worker that was told where "
                "its app is (`mainspring worker APP`): a child process has to find it again",
            )


def function_name(task: Task[..., object]) -> str | None:
    """`module:name` under which another process finds the same function; None if none would."""
    module = getattr(task.function, "__module__", None)
    path = getattr(task.function, "__qualname__", "")
    if not module or module == "__main__" or module not in sys.modules:
        return None
    found: object = sys.modules[module]
    for name in path.split("."):
        found = getattr(found, name, None)
    if isinstance(found, Task):
        found = found.function
    return f"{module}:{path}" if found is task.function else None
