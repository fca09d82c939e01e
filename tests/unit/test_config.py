"""Settings are checked when they are built, also between fields."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from mainspring.config import (
    DatabaseConfig,
    LogConfig,
    ResultsConfig,
    RetentionConfig,
    SchedulerConfig,
    Settings,
    WorkerConfig,
    masked_url,
)
from mainspring.config.load import load
from mainspring.config.url import DatabaseAddress, database_address
from mainspring.errors import InvalidConfig

SECOND = timedelta(seconds=1)


def test_the_defaults_fit_each_other() -> None:
    settings = Settings()

    assert settings.database.url == "sqlite:///mainspring.db"
    assert settings.worker.heartbeat * 3 <= settings.worker.lease == 15 * SECOND


@pytest.mark.parametrize(
    ("kind", "values", "field"),
    [
        (WorkerConfig, {"concurrency": 0}, "worker.concurrency"),
        (WorkerConfig, {"concurrency": 10_001}, "worker.concurrency"),
        (WorkerConfig, {"concurrency": True}, "worker.concurrency"),
        (WorkerConfig, {"threads": 0}, "worker.threads"),
        (WorkerConfig, {"lease": SECOND / 2}, "worker.lease"),
        (WorkerConfig, {"lease": 15}, "worker.lease"),
        (WorkerConfig, {"heartbeat": timedelta()}, "worker.heartbeat"),
        (WorkerConfig, {"heartbeat": 6 * SECOND}, "worker.heartbeat"),
        (WorkerConfig, {"lease": 3 * SECOND}, "worker.heartbeat"),
        (WorkerConfig, {"poll": timedelta()}, "worker.poll"),
        (WorkerConfig, {"shutdown_timeout": -SECOND}, "worker.shutdown_timeout"),
        (WorkerConfig, {"queues": ()}, "worker.queues"),
        (WorkerConfig, {"queues": ("a", "a")}, "worker.queues"),
        (WorkerConfig, {"queues": ("a", "")}, "worker.queues"),
        (WorkerConfig, {"queues": "mail"}, "worker.queues"),
        (WorkerConfig, {"name": "x\n"}, "worker.name"),
        (WorkerConfig, {"capture_logs": "some"}, "worker.capture_logs"),
        (WorkerConfig, {"log_limit": 1023}, "worker.log_limit"),
        (WorkerConfig, {"log_limit": 2**20 + 1}, "worker.log_limit"),
        (ResultsConfig, {"max_bytes": 0}, "results.max_bytes"),
        (ResultsConfig, {"max_bytes": 2**24 + 1}, "results.max_bytes"),
        (RetentionConfig, {"results": SECOND}, "retention.results"),
        (RetentionConfig, {"results": -SECOND}, "retention.results"),
        (SchedulerConfig, {"chunk": 0}, "scheduler.chunk"),
        (SchedulerConfig, {"poll": timedelta(days=1)}, "scheduler.poll"),
        (RetentionConfig, {"history": timedelta()}, "retention.history"),
        (LogConfig, {"level": "loud"}, "log.level"),
        (LogConfig, {"format": "xml"}, "log.format"),
    ],
)
def test_a_value_out_of_bounds_is_refused_by_name(kind: type, values: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidConfig) as refusal:
        kind(**values)

    assert refusal.value.field == field


def test_a_heartbeat_of_a_third_of_the_lease_is_taken() -> None:
    assert WorkerConfig(lease=SECOND, heartbeat=SECOND / 3).lease == SECOND


def test_a_level_is_taken_in_any_case() -> None:
    assert LogConfig(level="WARNING").level == "warning"


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("postgres://u:p@h/db", "postgresql://u:p@h/db"),
        ("postgresql://u:p@h:5432/db?sslmode=require", "postgresql://u:p@h:5432/db?sslmode=require"),
        ("postgresql+asyncpg://h/db", "postgresql://h/db"),
        ("postgresql://u:p@a:5432,b:5433,c/db", "postgresql://u:p@a:5432,b:5433,c/db"),
        ("postgresql:///db?host=/run/postgresql", "postgresql:///db?host=/run/postgresql"),
        ("postgresql://u:p%40ss%2Fword%23@h/db", "postgresql://u:p%40ss%2Fword%23@h/db"),
        ("sqlite:///jobs.db", "sqlite:///jobs.db"),
        ("sqlite:////var/lib/jobs.db", "sqlite:////var/lib/jobs.db"),
        ("sqlite://:memory:", "sqlite://:memory:"),
        ("sqlite:///:memory:", "sqlite://:memory:"),
    ],
)
def test_a_database_url_is_kept_in_one_spelling(given: str, kept: str) -> None:
    assert DatabaseConfig(url=given).url == kept


@pytest.mark.parametrize(
    "url",
    ["", "jobs.db", "mysql://u:s3cret@h/db", "redis://:s3cret@h", "postgresql+psycopg2://u:s3cret@h/db",
     "postgres://u:s3cret@ss/word#@h/db", "postgres://u:s3cret#x@h/db", "postgres://u:s3/cret@h/db",
     "postgres://u:s3cret@h:port/db", "postgres://u:s3cret@h:99999/db", "postgres://u:s3cret@h", "postgres://u:s3cret@h/",
     "postgresql://u@a:5432,b:0/db", "postgresql://u@a:5432,b:x/db",
     "postgresql://", "sqlite://", "sqlite:///", "sqlite://jobs.db", "sqlite:///jobs.db?mode=ro", "sqlite:///a\0b",
     " sqlite:///jobs.db", "sqlite:///jobs.db\n", "POSTGRES//u:s3cret@h"],
)  # fmt: skip
def test_any_other_url_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(InvalidConfig, match=r"database\.url") as refusal:
        DatabaseConfig(url=url)

    assert "s3" not in str(refusal.value)
    assert "s3" not in repr(refusal.value.got)


MALFORMED = [
    "postgresql//u:s3cret@h/d", "postgresql:u:s3cret@h/d", "postgres:/u:s3cret@h/d", "u:s3cret@h/d",
    "postgresql://u:s3cret", "postgresql://u:s3cret/d", "postgresql://u:s3creth:5432/d", "postgresql://u:s3cret%40h/d",
    "postgresql://u:pa/s3cret@h/d", "postgresql://u:pa#s3cret@h/d", "postgresql://u:pa?s3cret@h/d",
    "host=h user=u password=s3cret dbname=d", "host=h password='s3cret'", "Server=h;Uid=u;Pwd=s3cret;",
    "postgresql://h/d?pass=s3cret", "sqlite:///x?key=s3cret", "postgresql://u%3As3cret@h", "postgresql://u;s3cret@h",
    "jdbc:postgresql://h/d?user=u&password=s3cret", "postgresql://[::1/u:s3cret@h/d", "'postgresql://u:s3cret@h/d'",
    "postgresql://h/d?pool=a&pool=b&password=s3cret", "postgresql://h/d?pool=transaction&listen=u:s3cret@b",
    "postgresql://h?user=x%26password=s3cret", "postgresql://u:s3cret@h:99999/d", " postgresql://u:s3cret@h/d",
]  # fmt: skip


@pytest.mark.parametrize("url", MALFORMED)
def test_a_malformed_url_tells_no_password(url: str, tmp_path: Path) -> None:
    """By whatever way it comes: in code, by a flag, from the environment, from a file."""
    file = tmp_path / "mainspring.toml"
    file.write_text(f"[database]\nurl = {json.dumps(url)}\n")
    ways: list[Callable[[], object]] = [
        lambda: DatabaseConfig(url=url),
        lambda: load(flags={"database.url": url}, environ={}, cwd=tmp_path / "none"),
        lambda: load(flags={}, environ={"MAINSPRING_DATABASE_URL": url}, cwd=tmp_path / "none"),
        lambda: load(flags={}, environ={}, cwd=tmp_path),
        lambda: load(flags={}, environ={}, cwd=tmp_path / "none", code_url=url),
    ]
    for way in ways:
        with pytest.raises(InvalidConfig, match=r"database\.url") as refusal:
            way()
        assert "s3cret" not in f"{refusal.value} {refusal.value!r} {refusal.value.got!r}"
    assert "s3cret" not in masked_url(url)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://u:s3cret@h:5432/db", "postgresql://u:***@h:5432/db"),
        ("postgresql://u:s3@cret@h/db", "postgresql://u:***@h/db"),
        ("postgresql://:s3cret@h/db", "postgresql://:***@h/db"),
        ("postgresql://h/db?user=u&password=s3cret&x=1", "postgresql://h/db?user=u&password=***&x=***"),
        ("postgresql://h/db?sslmode=require&pool=session", "postgresql://h/db?sslmode=require&pool=session"),
        ("postgresql://u:s3@a:5432,b:5433/db", "postgresql://u:***@a:5432,b:5433/db"),
        ("postgresql://u:s3cret@[::1]:5432/db", "postgresql://u:***@[::1]:5432/db"),
        ("sqlite://:memory:", "sqlite://:memory:"),
        ("jobs.db", "jobs.db"),
        ("postgresql://u@h:5432/db", "postgresql://u@h:5432/db"),
        ("sqlite:///jobs.db", "sqlite:///jobs.db"),
    ],
)
def test_a_password_is_masked_wherever_it_stands(url: str, shown: str) -> None:
    assert masked_url(url) == shown


def test_the_password_is_in_no_representation() -> None:
    settings = Settings(database=DatabaseConfig(url="postgres://u:s3cret@h/db"))

    assert "s3cret" not in repr(settings)


def test_a_url_says_whether_it_leads_to_a_pool_and_where_to_listen() -> None:
    plain = database_address("postgresql://u:p@h:1/db?sslmode=require")
    pooled = database_address("postgresql://u:p%40@h:1/db?pool=transaction&sslmode=require")
    around = database_address(
        "postgresql://u:p%40@h:1/db?sslmode=require&pool=transaction&listen=[::1]:2/other"
    )

    assert (plain.url, plain.pooled, plain.listen) == (plain.url, False, plain.url)
    assert pooled == DatabaseAddress(
        url="postgresql://u:p%40@h:1/db?sslmode=require", pooled=True, listen=None
    )
    assert around.url == pooled.url
    assert around.listen == "postgresql://u:p%40@[::1]:2/other?sslmode=require"
    assert (
        database_address("postgresql:///db?host=/run&pool=session&listen=h:2").listen == "postgresql://h:2/db"
    )


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("pool=statement", r"database\.url pool: expected session or transaction, got 'statement'"),
        ("pool=", r"database\.url pool: "),
        ("pool=transaction&pool=session", "each option once"),
        ("listen=", r"database\.url listen: expected a place"),
        ("listen=h:port", r"database\.url listen: "),
        ("listen=u:s3cret@h:1", r"database\.url listen: "),
        ("listen=postgresql://h/db", r"database\.url listen: "),
        ("listen=h:99999", r"database\.url listen: "),
    ],
)
def test_a_pool_that_is_none_is_refused(query: str, said: str) -> None:
    with pytest.raises(InvalidConfig, match=said):
        DatabaseConfig(url=f"postgresql://u@h/db?{query}")


@pytest.mark.parametrize("key", ["alerts.secret", "access.oidc_client_secret", "worker.name"])
def test_what_would_mean_something_else_when_it_is_empty_is_refused(key: str, tmp_path: Path) -> None:
    """An empty secret would sign nothing; often it is a file that nobody has filled."""
    section, _, name = key.partition(".")
    (tmp_path / "mainspring.toml").write_text(f'[{section}]\n{name} = ""\n')
    (tmp_path / "empty").write_text("\n")
    variable = f"MAINSPRING_{section.upper()}_{name.upper()}"
    ways: list[Callable[[], object]] = [
        lambda: load(flags={}, environ={variable: ""}, cwd=tmp_path / "none"),
        lambda: load(flags={key: ""}, environ={}, cwd=tmp_path / "none"),
        lambda: load(flags={}, environ={}, cwd=tmp_path),
    ]
    if name != "name":
        files = {f"{variable}_FILE": str(tmp_path / "empty")}
        ways.append(lambda: load(flags={}, environ=files, cwd=tmp_path / "none"))
    for way in ways:
        with pytest.raises(InvalidConfig, match=key.replace(".", r"\.")):
            way()
