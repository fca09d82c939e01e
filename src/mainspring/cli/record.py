"""What a command changes is on record: who ran it, with which words, and how it ended."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import cast

import click

from mainspring.app import Mainspring
from mainspring.cli.author import login_name
from mainspring.model.access import AccessRole, Actor
from mainspring.store.ports import Store

_NAMED = {"enqueue": "jobs.enqueue", "backfill": "backfills.start", "schedules.go_on": "backfills.go_on"}
"""Commands whose acts have another name by the other doors."""
# How to reach the database and how to print is nobody's business; the address may hold a password.
_NOT_ASKED = frozenset({"app", "database_url", "file", "as_json", "yes"})


@asynccontextmanager
async def on_record(app: Mainspring) -> AsyncIterator[None]:
    """Inside it, the first call that may change the app's store puts the command on record, and its end
    follows. A command that only reads leaves nothing."""
    from mainspring.ops.access.acts import Acts  # not before a store is needed: help is quick without it
    from mainspring.ops.access.redact import Redaction
    from mainspring.ops.access.witness import Witness

    act, target, details = _said()
    redaction = Redaction(app.settings.privacy.redact)
    async with AsyncExitStack() as stack:
        witness: Witness | None = None

        async def changing(store: Store) -> None:
            who = Actor(name=login_name(), role=AccessRole.ADMIN, via="cli")
            acts = Acts(store, app.clock, redaction)
            recorded = acts.recorded(who, act, target=target, details=details, address=os.uname().nodename)
            ending = await stack.enter_async_context(recorded)
            ending.details = {"calls": witness.calls} if witness else {}

        def between(store: Store) -> Store:
            nonlocal witness
            witness = Witness(store, changing)
            return cast("Store", witness)

        app.witness = between
        try:
            yield
        finally:
            app.witness = None


def _said() -> tuple[str, str, dict[str, object]]:
    """The act, what it was done to, and everything else that was typed."""
    context = click.get_current_context(silent=True)
    if context is None:
        return "cli.call", "", {}
    words = [context.info_name or ""]
    while context.parent is not None and context.parent.parent is not None:
        context = context.parent
        words.insert(0, context.info_name or "")
    path = ".".join(words).replace("-", "_")
    context = click.get_current_context()
    given = {key: value for key, value in context.params.items() if value not in (None, (), False)}
    arguments = [each.name for each in context.command.params if isinstance(each, click.Argument)]
    target = " ".join(_plain(given.get(name or "")) for name in arguments if name not in _NOT_ASKED)
    details = {key: _plain(value) for key, value in given.items() if key not in _NOT_ASKED}
    return _NAMED.get(path, path), target.strip(), dict(details)


def _plain(value: object) -> str:
    if value is None:
        return ""
    return " ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
