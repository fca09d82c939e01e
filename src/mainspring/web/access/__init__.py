"""Who stands at the door: tokens, sessions, providers, other sites."""

from __future__ import annotations
