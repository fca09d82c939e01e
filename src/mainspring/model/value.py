"""The base of every value.

msgspec structs are built about ten times faster than frozen dataclasses, which counts for values
made once per job, and they encode themselves to JSON. `frozen` and `kw_only` hold only for the class
that says so, so every value says so. `gc=False` is for those made once per job: the collector need not visit
what cannot be part of a cycle.
"""

from __future__ import annotations

import msgspec


class Value(msgspec.Struct, frozen=True, kw_only=True):
    """A frozen value with keyword-only fields."""
