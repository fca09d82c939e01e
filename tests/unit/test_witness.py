"""What of a store reads and what changes it: every call is one or the other. Nouns mark what reads."""

from __future__ import annotations

from mainspring.ops.access.witness import READS
from mainspring.store.ports import Store

# A new call: does it only read? Then it belongs into READS, or looking at something is on record as an act.
CHANGES = {
    "prune",
    "migrate",
    "change_identity",
}


def test_every_call_of_a_store_is_known_to_read_or_to_change() -> None:
    calls = {name for name in dir(Store) if not name.startswith("_")}

    assert calls == READS | CHANGES
    assert not READS & CHANGES
