"""An `Admin` over a store that a test has opened."""

from __future__ import annotations

import inspect
from typing import Any

from mainspring.admin.admin import Admin
from mainspring.admin.order import AdminContext
from mainspring.admin.redact import Redaction
from mainspring.clock import Clock, SystemClock
from mainspring.config import Settings, load
from mainspring.entropy import SeededEntropy
from mainspring.model.access import AccessRole, Actor
from mainspring.store.store import Store
from mainspring.tasks.registry import Registry


def admin_of(
    store: Store,
    clock: Clock,
    *,
    actor: Actor | str = "ann",
    registry: Registry | None = None,
    settings: Settings | None = None,
    **more: Any,
) -> Admin:
    """Questions and orders of one actor."""

    async def opened() -> Store:
        return store

    named = actor if isinstance(actor, Actor) else Actor(name=actor, role=AccessRole.ADMIN, via="test")
    found = settings or load(flags={}, code_url=None, file=None)[0]
    return Admin(
        AdminContext(
            opened,
            clock=clock,
            entropy=SeededEntropy(1),
            settings=found,
            actor=named,
            redaction=Redaction(found.privacy.redact),
            registry=registry,
            **more,
        )
    )


def awaited() -> dict[str, list[str]]:
    """The awaited methods of every noun of `Admin`."""
    nouns = vars(admin_of(None, SystemClock()))  # type: ignore[arg-type]
    del nouns["context"]
    return {
        noun: [
            name
            for name, method in inspect.getmembers(type(found), inspect.iscoroutinefunction)
            if not name.startswith("_")
        ]
        for noun, found in nouns.items()
    }


def orders() -> dict[tuple[str, str], str]:
    """Every order of every noun, and the act that it is on record as."""
    nouns = vars(admin_of(None, SystemClock()))  # type: ignore[arg-type]
    return {
        (noun, name): action
        for noun, names in awaited().items()
        for name in names
        if (action := getattr(getattr(nouns[noun], name), "action", None)) is not None
    }
