"""Both dialects must name the same statements, file by file, but for the few below and their reasons."""

from __future__ import annotations

from pathlib import Path

import pytest

from mainspring.store.sqlfile import load, numbered
from tests.support.schema import STORES

#: Statements that only PostgreSQL needs, by file.
ONLY_POSTGRES = {
    "names.sql": {
        # Queues and tasks are numbers there; SQLite keeps their names in the row.
        "add_queues",
        "queues",
        "add_tasks",
        "tasks",
        "all_names",
        # In SQLite's jobs.sql, for it has no names.sql.
        "add_lanes",
    },
    "jobs.sql": {
        # A lost answer is resolved by asking; a call into SQLite has no answer to lose.
        "known_ids",
        "key_holders",
        # One is inserted without arrays; SQLite binds rows one by one anyway.
        "insert_due_job",
        "insert_job",
        # SQLite notes the run as for every other verdict.
        "settle_discarded",
        # History is partitioned there; SQLite deletes by day.
        "add_partitions",
        "drop_partitions",
        # SQLite's settle_started answers it.
        "parents_of",
        # Rows that are copied in cannot look it up themselves.
        "root_traces",
    },
    "schedules.sql": {
        # One transaction writes at a time in SQLite, so it has no locks to order.
        "lock_schedules",
        "hold_specs",
        "moment",
        # SQLite's statements for a fire decide for one schedule as well.
        "decide_slots",
    },
    "limits.sql": {
        # One transaction writes at a time in SQLite: a pass, a pause and a claim cannot meet.
        "lock_gates",
        "lock_lanes",
        "claims_under_way",
        "server_now",
    },
    "events.sql": {
        # One transaction writes at a time in SQLite: those who send and those who begin to wait cannot meet.
        "add_events",
        "meet_events",
    },
    "requests.sql": {
        # The row is there before its answer, for others wait for it; in SQLite they wait for the file.
        "answer_request",
    },
    "acts.sql": {
        # One transaction writes at a time in SQLite: nobody appends meanwhile.
        "lock_head",
    },
    "pages.sql": {
        # Indices for finished jobs of a task, a schedule or a rare verdict: worth it where there are many.
        "ended_of_task",
        "ended_of_schedule",
        "ended_unusually",
        # Too many jobs to be counted; SQLite counts them.
        "jobs_size",
        "head_depth",
        "sampled_depth",
    },
    "health.sql": {
        # A server has sessions, snapshots, partitions and statistics of its tables; a file has a size.
        "table_health",
        "partition_health",
        "server_health",
        "snapshot_health",
    },
    "admin.sql": {
        # Sessions of a server, and its notifications.
        "notify",
        "session",
        "is_standby",
        "end_session",
        "end_marked",
        # BEGIN IMMEDIATE is SQLite's lock.
        "lock_migrations",
    },
}
#: Statements that only SQLite needs: without writable CTEs, one of PostgreSQL's statements is several.
ONLY_SQLITE = {
    "fleet.sql": {"lost_claims", "lost_jobs", "note_lost", "give_back_jobs", "bury_jobs"},
    "alerts.sql": {"note_gap"},
    "jobs.sql": {
        "add_lanes",
        "claim_lanes",
        "standing_claims",
        "note_run",
        "remove_jobs",
        "note_expired",
        "note_edit",
        "prune_runs",
        "prune_logs",
        "prune_slots",
    },
    "schedules.sql": {
        "move_spec",
        "oldest_fire",
        "herd",
        "write_ledger",
        "names_of",
        "replaced_jobs",
        "count_down",
        "forward_fire",
        "close_fire",
    },
    "requests.sql": {"request"},
    "workflows.sql": {"bury_root", "prune_workflow_steps", "prune_acts", "bump_ids"},
    "health.sql": {"file_health", "quick_check"},
    # PRAGMAs in place of notifications and settings.
    "admin.sql": {"data_version", "journal_mode"},
    # Which file a caller's connection is on, and a setting of it; PostgreSQL's says what it lacks.
    "effects.sql": {"database_list", "no_autocheckpoint"},
}


def files(dialect: str) -> set[str]:
    return {path.name for path in (STORES / dialect / "sql").glob("*.sql")}


def statements(dialect: str, filename: str) -> set[str]:
    if filename not in files(dialect):
        return set()
    return set(load(f"mainspring.store.{dialect}", filename))


@pytest.mark.parametrize("filename", sorted(files("postgres") | files("sqlite")))
def test_dialects_name_the_same_statements(filename):
    postgres, sqlite = statements("postgres", filename), statements("sqlite", filename)

    assert postgres - sqlite == ONLY_POSTGRES.get(filename, set())
    assert sqlite - postgres == ONLY_SQLITE.get(filename, set())


def test_dialects_have_the_same_files():
    assert files("postgres") - files("sqlite") == {"names.sql"}
    assert files("sqlite") - files("postgres") == set()


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_every_statement_is_used_by_its_adapter(dialect):
    shared = (*STORES.glob("*.py"), *(STORES / "workflows").glob("*.py"))  # written once, for both
    source = "".join(
        path.read_text(encoding="utf-8") for path in (*Path(STORES / dialect).glob("*.py"), *shared)
    )
    named = {name for filename in files(dialect) for name in statements(dialect, filename)}

    unused = {name for name in named if f'"{name}"' not in source}

    # Asked for by a name put together: f"add_{table}".
    assert unused - {"add_queues", "add_tasks"} == set()


def test_parameters_are_bound_by_name_and_never_put_into_the_text():
    text, names = numbered("SELECT :a::int, :b, :a")

    assert (text, names) == ("SELECT $1::int, $2, $1", ("a", "b"))
