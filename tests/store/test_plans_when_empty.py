"""Plans made while every table was empty must still be right once they are full.

A session plans a statement once. A worker usually does so when the queue is empty, and the planner then
takes the whole queue for one row: a join may walk all of it for every row of a batch. That cost us a
hundredfold before jobs were looked up by key only.
"""

from __future__ import annotations

import asyncpg
import pytest

from mainspring.store.postgres import connection as postgres
from mainspring.store.postgres import pooled

#: How a statement may reach a row: by its key, through its priority level, or where it already knows it lies.
ALLOWED = {
    "jobs_pkey": ("id = ",),
    "jobs_schedule": ("schedule_id = ",),
    "jobs_expiring": ("expires_at <= ",),
    "jobs_limited": ("limit_set_id ",),
    "jobs_ready": ("queue_id = ", "priority = "),
    "jobs_orphans": ("queue_id = ",),
    "schedules_pkey": ("id = ",),
    "dead_jobs_pkey": ("id = ",),
    "schedules_name_key": ("name = ",),
    "schedules_spec": ("spec_id = ",),
    "firings_pkey": ("spec_id = ",),
    "specs_pkey": ("id = ",),
    "specs_due": ("next_at",),
    "specs_unplanned": ("id = ",),
    "specs_trigger_key": ("trigger = ", "catch_up = "),
    "limit_keys_name_key_key": ("name = ", "key = "),
    "limit_sets_limit_keys_key": ("limit_keys = ",),
    "steps_pkey": ("job_id",),
    "events_pkey": ("job_id",),
    "event_waits_pkey": ("job_id",),
    "event_waits_name": ("name = ",),
    "audit_log_pkey": ("id ",),
    "audit_log_first": ("id ",),
    "audit_log_order": ("order_id = ",),
    "audit_log_object": ("object = ", "id < "),
    "audit_log_actor": ("actor = ", "id < "),
    "audit_log_action": ("action = ", "id < "),
    "tokens_digest_key": ("digest = ",),
    "tokens_pkey": ("id = ",),
    "sessions_digest_key": ("digest = ",),
}
FROM_A_CURSOR = {("fire", "schedules_spec"): ".last_id"}
"""A chunk of a burst begins where the last one ended."""
STATEMENTS = [
    "audit_log_ends",
    "audit_log_after",
    "audit_log_of_actor",
    "audit_log_of_action",
    "audit_log_of_object",
    "audit_log_page",
    "admit_jobs",
    "awaited",
    "held_claims",
    "begin_orphan",
    "cancel_jobs",
    "claim_jobs",
    "claim_orphans",
    "count_waiting",
    "drop_keys",
    "drop_waits",
    "due_specs",
    "event",
    "expire_jobs",
    "fire",
    "first_of_limit_set",
    "forget_processes",
    "free_limit_holders",
    "limit_key_holders",
    "limit_keys",
    "run_jobs_now",
    "head_depth",
    "held_jobs",
    "known_ids",
    "live_by_id",
    "live_holders",
    "live_job",
    "live_of_schedule",
    "lock_schedules",
    "standing_schedules",
    "decide_slots",
    "hold_specs",
    "move_active",
    "overdue_specs",
    "change_schedules",
    "put_specs",
    "put_limit_keys",
    "put_limit_sets",
    "add_schedules",
    "meet_events",
    "note_progress",
    "old_events",
    "old_steps",
    "old_waits",
    "open_firings",
    "own_wait",
    "pause_schedules",
    "plan_specs",
    "progress",
    "prune_common_events",
    "prune_events",
    "prune_steps",
    "reap_jobs",
    "record_step",
    "release_held",
    "replace_job",
    "running",
    "session_on_record",
    "running_ids",
    "settle_dead",
    "settle_discarded",
    "settle_failed",
    "settle_released",
    "settle_succeeded",
    "step",
    "steps",
    "orphans_due",
    "sweep_progress",
    "token",
    "trigger_schedule",
    "waiting_limit_sets",
    "waits",
    "wake_jobs",
    "watch_expecting",
    "watch_stale",
    "watch_streaks",
    "watch_waiting",
]


async def plan_on_empty(url: str, statement: str) -> list[str]:
    connection = await asyncpg.connect(url, server_settings=pooled.STEERING)
    try:
        await connection.execute("VACUUM ANALYZE")
        sql, names = postgres.SQL[statement]
        await connection.execute(f"PREPARE statement AS {sql}")
        given = f"({', '.join('NULL' for _ in names)})" if names else ""
        return [row[0].strip() for row in await connection.fetch(f"EXPLAIN EXECUTE statement{given}")]
    finally:
        await connection.close()


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_statement_planned_on_empty_tables_looks_rows_up(statement, postgres_url, run):
    plan = run(plan_on_empty(postgres_url, statement))

    looked_up = 0
    for line, following in zip(plan, [*plan[1:], ""], strict=True):
        for index, conditions in ALLOWED.items():
            if f"using {index} on" in line:
                looked_up += 1
                assert following.startswith("Index Cond:"), plan
                assert all(condition in following for condition in conditions), plan
                assert FROM_A_CURSOR.get((statement, index), "") in following, plan
        assert "Seq Scan on jobs" not in line, plan
        assert "Seq Scan on specs" not in line, plan
        assert "Hash Join" not in line, plan
        assert "Merge Join" not in line, plan
    assert looked_up, plan
