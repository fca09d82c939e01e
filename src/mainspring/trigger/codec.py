"""From a trigger's canonical JSON back to the trigger."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import lru_cache

import msgspec

from mainspring.errors import InvalidArgument
from mainspring.trigger.base import Trigger
from mainspring.trigger.cron import Cron
from mainspring.trigger.interval import EPOCH, Every

_SPECS_IN_USE = 65_536


class _Cron(msgspec.Struct, forbid_unknown_fields=True):
    cron: str
    tz: str


class _Every(msgspec.Struct, forbid_unknown_fields=True):
    every: float
    anchor: datetime = EPOCH


@lru_cache(maxsize=_SPECS_IN_USE)
def decode(text: str) -> Trigger:
    """Read what `Trigger.encode` wrote; the same text gives the same object."""
    try:
        if '"every":' in text:
            every = msgspec.json.decode(text, type=_Every)
            return Every(timedelta(seconds=every.every), every.anchor)
        cron = msgspec.json.decode(text, type=_Cron)
        return Cron(cron.cron, cron.tz)
    except (msgspec.MsgspecError, OverflowError):
        raise InvalidArgument("trigger", text, "a trigger as `encode` writes it") from None
