"""What the dialects say in their own words, and that each statement is needed."""

from __future__ import annotations

import re

import pytest

from mainspring.store import statements
from mainspring.store.statements import load, numbered
from tests.support.schema import STORES

SQL = STORES / "sql"


def names(folder: str) -> set[str]:
    return {name for path in (SQL / folder).glob("*.sql") for name, _ in statements._file(path.read_text())}


def squeezed(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("( ", "(").replace(" )", ")")


def test_a_statement_that_both_dialects_can_share_is_shared():
    own = {folder: dict(load(folder)) for folder in ("sqlite", "postgres")}
    twice = (names("sqlite") & names("postgres")) - names("shared")

    same = [
        name
        for name in sorted(twice)
        if squeezed(
            statements._spelled(own["postgres"][name].replace(statements._POSTGRES_NOW, ":now"), "sqlite")
        )
        == squeezed(own["sqlite"][name])
    ]

    assert same == []


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_an_override_says_something_else_than_what_it_overrides(dialect):
    shared = {
        name: statements._spelled(text, dialect)
        for path in (SQL / "shared").glob("*.sql")
        for name, text in statements._file(path.read_text())
    }
    overridden = {
        name: text for name, text in load(dialect).items() if name in shared.keys() & names(dialect)
    }

    assert [name for name, text in overridden.items() if squeezed(text) == squeezed(shared[name])] == []


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_every_statement_is_used(dialect):
    once = (*STORES.glob("*.py"), *(STORES / "workflows").glob("*.py"))
    source = "".join(path.read_text(encoding="utf-8") for path in (*(STORES / dialect).glob("*.py"), *once))

    unused = {name for name in load(dialect) if f'"{name}"' not in source}

    # Asked for by a name put together: f"add_{table}".
    assert unused - {"add_queues", "add_tasks"} == set()


def test_parameters_are_bound_by_name_and_never_put_into_the_text():
    text, parameters = numbered("SELECT :a::int, :b, :a")

    assert (text, parameters) == ("SELECT $1::int, $2, $1", ("a", "b"))


def test_what_is_shared_is_spelled_as_each_dialect_reads_it():
    shared = (
        "SELECT greatest(a, :now) FROM mainspring.t WHERE id = ANY (:ids::bigint[]) "
        'AND b IS NOT DISTINCT FROM :b::text ORDER BY c COLLATE "C" FOR UPDATE SKIP LOCKED'
    )

    assert statements._spelled(shared, "sqlite") == (
        "SELECT max(a, :now) FROM t WHERE id IN (SELECT value FROM json_each(:ids)) AND b IS :b ORDER BY c"
    )
    assert "coalesce(:at::timestamptz, now())" in statements._spelled(shared, "postgres")
    assert ":now" not in statements._spelled(shared, "postgres")


def test_numbers_of_queues_and_tasks_moments_and_json_are_spelled_as_sqlite_keeps_them():
    shared = (
        "SELECT j.queue_id, (SELECT name FROM mainspring.tasks WHERE id = j.task_id) AS task, "
        "error ->> 'type', errors -> -1 ->> 'message', errors -> -1 AS last FROM mainspring.jobs j "
        "WHERE queue_id = (SELECT id FROM mainspring.queues WHERE name = :queue) "
        "AND run_at < timestamptz '1970-01-02 00:00:00+00' - interval '2 minutes' AND strpos(note, 'x') > 0"
    )

    assert statements._spelled(shared, "sqlite") == (
        "SELECT j.queue, j.task AS task, json_extract(error, '$.type'), "
        "json_extract(errors, '$[#-1].message'), json_extract(errors, '$[#-1]') AS last FROM jobs j "
        "WHERE queue = :queue AND run_at < 86400000000 - 120000000 AND instr(note, 'x') > 0"
    )
    assert statements._spelled(shared, "postgres") == shared


def test_an_array_that_is_read_as_a_table_is_json_to_sqlite():
    shared = "SELECT l.id FROM unnest(:ids::bigint[]) AS l (id)"

    assert statements._spelled(shared, "sqlite") == (
        "SELECT l.id FROM (SELECT value AS id FROM json_each(:ids)) AS l"
    )
    assert statements._spelled(shared, "postgres") == shared
