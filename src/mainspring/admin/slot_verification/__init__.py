"""Whether every slot happened, once: computed anew and compared."""

from __future__ import annotations
