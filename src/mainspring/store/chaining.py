"""How entries of the log of acts are tied together: each digest covers its entry and the digest before it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import msgspec

from mainspring.model.act import Act, ActFilter, NewAct

START = bytes(32)
"""What the first entry is tied to."""
_LAST = 2**63 - 1
_KIND = b"mainspring act 1\n"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def digest_of(previous: bytes, act: Act) -> bytes:
    """What an entry's digest must be after this one. A JSON array of all its fields, in the order of the
    class, is the one way to write it: no two entries read the same."""
    written = msgspec.json.encode(
        (
            act.id,
            (act.at - _EPOCH) // _MICROSECOND,
            act.phase.value,
            act.act,
            act.actor,
            act.role,
            act.via,
            act.target,
            act.details.hex(),
            act.order,
            act.address,
        )
    )
    return hashlib.sha256(_KIND + previous + written).digest()


def chained(last_id: int, digest: bytes, acts: Sequence[NewAct], at: datetime) -> list[Act]:
    """New entries as they follow the last one."""
    entries: list[Act] = []
    for number, new in enumerate(acts, start=last_id + 1):
        loose = Act(id=number, at=at, digest=b"", **msgspec.structs.asdict(new))
        digest = digest_of(digest, loose)
        entries.append(msgspec.structs.replace(loose, digest=digest))
    return entries


def page_of(which: ActFilter) -> tuple[str, dict[str, object]]:
    """The statement that answers a page by its narrowest index, and its parameters."""
    page: dict[str, object] = {"before": which.before or _LAST, "limit": which.limit}
    if which.target is not None:
        return "acts_of_target", {**page, "target": which.target, "actor": which.actor, "act": which.act}
    if which.actor is not None:
        return "acts_of_actor", {**page, "actor": which.actor, "act": which.act}
    if which.act is not None:
        return "acts_of_kind", {**page, "act": which.act}
    return "acts_page", page
