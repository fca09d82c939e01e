"""What an app declares, compared with the store and written to it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from mainspring.clock import Clock
from mainspring.declare.registry import Registry
from mainspring.ops.schedules.plan import Action, Planned, plan
from mainspring.store.ports import Store

BY_CODE = "code"
MOST_AT_ONCE = 500
"""Schedules deleted in one transaction."""


async def planned(store: Store, clock: Clock, registry: Registry) -> list[Planned]:
    """What an app's schedules would change."""
    now = await store.now(at=clock.stamp())
    return plan(registry.schedules, await store.schedules.all(), now)


async def apply(
    store: Store, clock: Clock, registry: Registry, write: Callable[[], Awaitable[object]], *, prune: bool
) -> list[Planned]:
    """Have it written; what somebody edited at run time stays. With `prune`, also delete what code declared
    once and does not any more."""
    found = await planned(store, clock, registry)
    await write()
    doomed = [each.name for each in found if each.action is Action.REMOVE]
    if prune:
        for start in range(0, len(doomed), MOST_AT_ONCE):
            await store.schedules.delete(
                doomed[start : start + MOST_AT_ONCE], author=BY_CODE, at=clock.stamp()
            )
    return found
