"""Settings of our sessions: made at connect, or in each transaction where a session lasts no longer."""

from __future__ import annotations

TOLD = {"application_name": "mainspring", "timezone": "UTC"}
"""What poolers take at connect, too, and see to wherever we are sent."""
ISOLATION = "read committed"
"""Of every transaction of ours. A role or a database may have another by default: then statements that wait
for each other would fail instead."""
STEERING = {
    # Plans must not flip with the size of the backlog: always the index, always the same plan.
    "jit": "off",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "plan_cache_mode": "force_generic_plan",
    # Nothing of ours may hold a lock or a snapshot for long.
    "statement_timeout": "60s",
    "lock_timeout": "5s",
    "idle_in_transaction_session_timeout": "30s",
}
DURABLE = {**STEERING, "synchronous_commit": "on"}
RELAXED = {**STEERING, "synchronous_commit": "off"}
