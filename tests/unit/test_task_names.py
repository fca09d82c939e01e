"""Names of tasks, queues and schedules."""

from __future__ import annotations

import pytest

from mainspring.errors import InvalidArgument
from mainspring.tasks.checks import valid_name


@pytest.mark.parametrize(
    "name", ["a", "0", "null", "true", "a.b-c_d", "JOB", "reports:nightly", "eu/billing", "_sweep", "x" * 200]
)
def test_plain_names_are_taken(name: str) -> None:
    assert valid_name(name, "task.name") == name


@pytest.mark.parametrize(
    "name",
    ["", " ", "\t", "-rf", "--help", ".", "..", ".hidden", "a/../b", "/a", "a/", "a//b", "%2e%2e%2fetc",
     "a,b", "a ", "a\n", "a\r\nSet-Cookie: x=1", "a\u202egnp.exe", "\u0430dmin", "\U0001f680",
     "<script>alert(1)</script>", "job'; DROP TABLE jobs;--", "${jndi:ldap://x/a}", "%s%n", "$(id)",
     "=cmd|'/c calc'!A1", "@SUM(1)", "x" * 201, "a" * 1_000_000, "a-" * 500_000, "__proto__", "con\0",
     "\u0661", None, 5, [], b"a"],
)  # fmt: skip
def test_anything_else_is_refused_with_the_field_and_a_short_message(name: object) -> None:
    with pytest.raises(InvalidArgument) as refusal:
        valid_name(name, "queue")  # type: ignore[arg-type]

    assert refusal.value.field == "queue"
    assert len(str(refusal.value)) < 400
    assert str(refusal.value).isprintable()
