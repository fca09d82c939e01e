"""`app.http`, `app.shell` and `app.publish`: tasks that are no Python functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from mainspring.clock import Clock
from mainspring.duration import Duration
from mainspring.model.job import DEFAULT_QUEUE
from mainspring.tasks.enqueue import Sender
from mainspring.tasks.registry import Registry
from mainspring.tasks.retry import Retry

# The targets themselves are loaded when the first of their kind is declared: most apps have none.
if TYPE_CHECKING:
    from mainspring.targets.broker import Broker, Clients
    from mainspring.targets.http import Method
    from mainspring.targets.shell import ProgramLimits
    from mainspring.targets.task import Target, TargetTask


class Targets:
    """Declares targets in one app, and holds the connections that their runs share."""

    def __init__(self, registry: Registry, sender: Sender, clock: Clock) -> None:
        self._registry, self._sender, self._clock = registry, sender, clock
        self._clients: Clients | None = None

    def http(
        self,
        name: str,
        url: str | None = None,
        *,
        method: Method = "POST",
        headers: Mapping[str, str] | None = None,
        body: bytes | str | None = None,
        timeout: Duration = "30s",
        secret: str | Sequence[str] = (),
        idempotent: bool | None = None,
        ports: Sequence[int] | None = None,
        allow_private: Sequence[str] = (),
        keep: int = 4096,
        retry: Retry | None = None,
        queue: str = DEFAULT_QUEUE,
        priority: int = 0,
    ) -> TargetTask:
        """Declare a task that makes an HTTP call. Its arguments are the JSON body, or the query of a
        method that has no body. Without a URL each job brings its own, as `url`.

        `secret` signs each try as the Standard Webhooks say. `idempotent` says that a second call does
        no harm; unless given, the method decides. `ports` and `allow_private`, networks such as
        "10.0.0.0/8", widen what the guard lets through.
        """
        from mainspring.targets.http import HttpTarget

        target = HttpTarget(
            name,
            url,
            method=method,
            headers=headers,
            body=body,
            timeout=timeout,
            secret=secret,
            idempotent=idempotent,
            ports=ports,
            allow_private=allow_private,
            keep=keep,
            clock=self._clock,
        )
        return self._add(target, name, retry=retry, queue=queue, priority=priority)

    def shell(
        self,
        name: str,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        pass_env: Sequence[str] = (),
        timeout: Duration = "1h",
        grace: Duration = "2s",
        permanent_codes: Sequence[int] = (),
        limits: ProgramLimits | None = None,
        user: str | None = None,
        keep: int = 4096,
        retry: Retry | None = None,
        queue: str = DEFAULT_QUEUE,
        priority: int = 0,
    ) -> TargetTask:
        """Declare a task that starts a program, on workers with `worker.shell`. A `{name}` in `argv` is
        filled with the job's argument of that name; no shell reads any of it.

        The program gets `env` and, of the worker's own variables, those named in `pass_env`. An exit
        code in `permanent_codes` ends the job at once.
        """
        from mainspring.targets.shell import ShellTarget

        target = ShellTarget(
            name,
            argv,
            env=env,
            pass_env=pass_env,
            timeout=timeout,
            grace=grace,
            permanent_codes=permanent_codes,
            limits=limits,
            user=user,
            keep=keep,
        )
        return self._add(target, name, retry=retry, queue=queue, priority=priority)

    def publish(
        self,
        name: str,
        broker: Broker,
        *,
        timeout: Duration = "10s",
        retry: Retry | None = None,
        queue: str = DEFAULT_QUEUE,
        priority: int = 0,
    ) -> TargetTask:
        """Declare a task that publishes its arguments as a JSON message; it has succeeded when the
        broker has confirmed."""
        from mainspring.targets.broker import Clients, PublishTarget

        self._clients = self._clients or Clients()
        target = PublishTarget(name, broker, timeout=timeout, clients=self._clients)
        return self._add(target, name, retry=retry, queue=queue, priority=priority)

    async def aclose(self) -> None:
        """Close this event loop's connections."""
        if self._clients is not None:
            await self._clients.aclose()

    def _add(
        self, target: Target, name: str, *, retry: Retry | None, queue: str, priority: int
    ) -> TargetTask:
        from mainspring.targets.task import TargetTask

        task = TargetTask(target, name=name, sender=self._sender, retry=retry, queue=queue, priority=priority)
        self._registry.add_task(task)
        return task
