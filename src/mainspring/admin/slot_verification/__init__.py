"""The verification that every slot was fired once: slots are computed again and compared with the ledger."""

from __future__ import annotations
