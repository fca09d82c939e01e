"""Sends the notifications that are due: records that it will, sends, and records the end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from datetime import timedelta
from typing import Any

from mainspring.clock import Clock
from mainspring.config import AlertsConfig
from mainspring.model.alert import Message, NoteEnd
from mainspring.rules.alerts import Delivery, deliveries, message_part, next_try
from mainspring.store.store import Store
from mainspring.targets.notify import Notifier
from mainspring.telemetry.events import AlertTold, AlertUndelivered, Telemetry

MOST = 500
NO_LONGER_SET = "it is no longer set"


class NotificationSender:
    """A process that dies between sending a message and recording it is followed by one that sends it again:
    with the same id, once the recorded time is over."""

    def __init__(
        self,
        store: Store,
        notifiers: Sequence[Notifier],
        config: AlertsConfig,
        clock: Clock,
        telemetry: Telemetry,
    ) -> None:
        self._store = store
        self._notifiers = {each.key: each for each in notifiers}
        self._config = config
        self._clock = clock
        self._telemetry = telemetry

    async def run(self, may_go_on: Callable[[], Awaitable[bool]]) -> None:
        """All that is due, targets side by side; `may_go_on` is asked before each message."""
        due = await self._store.alerts.due_notes(limit=MOST, at=self._clock.stamp())
        routes: dict[str, list[Delivery]] = {}
        for each in deliveries(due, self._config):
            routes.setdefault(each.target, []).append(each)
        await together(*(self._route(key, route, may_go_on) for key, route in routes.items()))

    async def _route(
        self, key: str, route: Sequence[Delivery], may_go_on: Callable[[], Awaitable[bool]]
    ) -> None:
        for delivery in route:
            if not await may_go_on() or not await self._deliver(self._notifiers.get(key), delivery):
                return  # what is left is due at the next pass

    async def _deliver(self, notifier: Notifier | None, delivery: Delivery) -> bool:
        """Whether its target took it."""
        taken = await self._store.alerts.begin_notes(
            [note.id for note in delivery.notes],
            batch=delivery.batch,
            lasts=2 * self._config.timeout + timedelta(seconds=5),
            at=self._clock.stamp(),
        )
        notes = [note for note in delivery.notes if note.id in taken]
        if not notes:
            return True
        message = Message(id=delivery.batch, parts=tuple(message_part(note) for note in notes))
        problem = await told(notifier, message)
        again_in = None
        if problem is not None:
            again_in = None if notifier is None else next_try(notes[0].tries + 1, self._config)
            shown = notes[0].shown
            self._telemetry.emit(AlertUndelivered(target=shown, reason=problem, again_in=again_in))
        end = NoteEnd(note_ids=tuple(taken), batch=delivery.batch, problem=problem, again_in=again_in)
        await self._store.alerts.end_notes(end, at=self._clock.stamp())
        return problem is None


async def together(*works: Coroutine[Any, Any, None]) -> None:
    """All of them to their ends, then the first error: none is left running by another's."""
    for came in await asyncio.gather(*works, return_exceptions=True):
        if came is not None:
            raise came


async def told(notifier: Notifier | None, message: Message) -> str | None:
    """Why a target did not take a message; None when it did."""
    if notifier is None:
        return NO_LONGER_SET
    try:
        await notifier.send(message)
    except Exception as problem:  # noqa: BLE001 - a target may fail in any way, and none may stop the others
        return str(problem) or type(problem).__name__
    return None


def into_log(telemetry: Telemetry) -> Callable[[Message], None]:
    """Every alert of a message as an event of its own; the sink for logs writes a line of it."""

    def write(message: Message) -> None:
        for each in message.parts:
            telemetry.emit(
                AlertTold(
                    kind=each.kind,
                    rule=each.rule,
                    subject=each.subject,
                    severity=each.severity,
                    sentence=each.sentence,
                    test=message.test,
                )
            )

    return write
