"""Where settings come from, in which order, and what is refused on the way."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path

import pytest

from mainspring.config import Settings, load
from mainspring.errors import InvalidConfig

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(text: str | bytes, name: str = "mainspring.toml") -> Path:
        file = tmp_path / name
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return file

    return write


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., tuple[Settings, Mapping[str, str]]]:
    def read(
        environ: Mapping[str, str] | None = None,
        flags: Mapping[str, object] | None = None,
        **rest: object,
    ) -> tuple[Settings, Mapping[str, str]]:
        return load(flags=flags or {}, environ=environ or {}, cwd=tmp_path, **rest)  # type: ignore[arg-type]

    return read


def test_without_any_source_everything_is_default(read) -> None:
    settings, origins = read()

    assert settings == Settings()
    assert set(origins.values()) == {"default"}
    assert {"database.url", "worker.lease", "scheduler.chunk", "retention.history", "log.format"} <= set(
        origins
    )


def test_each_source_outranks_the_ones_below_it(read, write) -> None:
    write('[database]\nurl = "sqlite:///file.db"\n')
    environ = {"MAINSPRING_DATABASE_URL": "sqlite:///env.db", "DATABASE_URL": "sqlite:///plain.db"}
    flags = {"database.url": "sqlite:///flag.db"}
    code = "sqlite:///code.db"

    found = [
        (settings.database.url, origins["database.url"])
        for settings, origins in (
            read(environ, flags, code_url=code),
            read(environ, code_url=code),
            read(environ),
            read({"DATABASE_URL": "sqlite:///plain.db"}),
            read(),
        )
    ]

    assert found == [
        ("sqlite:///flag.db", "--database-url"),
        ("sqlite:///code.db", "Mainspring(...)"),
        ("sqlite:///env.db", "MAINSPRING_DATABASE_URL"),
        ("sqlite:///plain.db", "DATABASE_URL"),
        ("sqlite:///file.db", "mainspring.toml:2"),
    ]


def test_every_kind_of_value_is_read_from_every_source(read, write) -> None:
    write('[worker]\nqueues = ["a", "b"]\nthreads = 4\n\n[retention]\nhistory = "7d"\n')
    environ = {
        "MAINSPRING_WORKER_LEASE": "1m",
        "MAINSPRING_WORKER_POLL": "2",
        "MAINSPRING_WORKER_CONCURRENCY": "8",
        "MAINSPRING_LOG_LEVEL": "DEBUG",
    }
    settings, origins = read(environ, {"worker.shutdown_timeout": 5, "worker.name": "w1", "log.format": None})

    assert settings.worker.queues == ("a", "b")
    assert (settings.worker.threads, settings.worker.concurrency) == (4, 8)
    assert settings.worker.lease == timedelta(minutes=1)
    assert settings.worker.poll == timedelta(seconds=2)
    assert settings.worker.shutdown_timeout == timedelta(seconds=5)
    assert settings.retention.history == timedelta(days=7)
    assert settings.log.level == "debug"
    assert origins["worker.queues"] == "mainspring.toml:2"
    assert origins["retention.history"] == "mainspring.toml:6"
    assert origins["worker.lease"] == "MAINSPRING_WORKER_LEASE"
    assert origins["worker.shutdown_timeout"] == "--shutdown-timeout"
    assert origins["log.format"] == "default"


def test_queues_in_a_variable_are_a_comma_list(read) -> None:
    settings, _ = read({"MAINSPRING_WORKER_QUEUES": "mail, reports"})

    assert settings.worker.queues == ("mail", "reports")


def test_an_empty_variable_sets_nothing(read, write) -> None:
    write("worker.threads = 3\n")

    settings, origins = read({"MAINSPRING_WORKER_THREADS": "", "DATABASE_URL": ""})

    assert settings.worker.threads == 3
    assert origins["worker.threads"] == "mainspring.toml:1"


@pytest.mark.parametrize(
    "key",
    [
        "alerts.secret",
        "alerts.to",
        "alerts.ping_url",
        "access.oidc_client_secret",
        "database.url",
        "worker.name",
    ],
)
def test_an_empty_variable_of_what_came_out_empty_is_refused(read, key: str) -> None:
    """Webhooks would go unsigned, alerts to nobody, jobs into a file of this folder."""
    variable = f"MAINSPRING_{key.replace('.', '_').upper()}"
    for name in (variable, f"{variable}_FILE"):
        if name == "MAINSPRING_WORKER_NAME_FILE":
            continue
        with pytest.raises(InvalidConfig) as refused:
            read({name: ""})
        assert (refused.value.field, refused.value.got, refused.value.origin) == (key, "nothing", name)
        assert "leave it out for" in str(refused.value)
    # A flag comes first, and then nobody reads the variable.
    if key == "worker.name":
        assert read({variable: ""}, {key: "w1"})[0].worker.name == "w1"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("alerts.secret", "hunter2"),
        ("alerts.secret", "whsec_hunter2"),
        ("alerts.secret", "whsec_aHVudGVyMg=="),
        ("alerts.secret", " "),
        ("access.oidc_client_secret", "hunter2"),
        ("access.oidc_client_secret", "hunter2 hunter2 hunter2\n"),
        ("access.oidc_client_secret", " " * 20),
        ("access.oidc_client_secret", "hunter2" * 200),
    ],
)
def test_a_secret_that_is_none_is_refused_when_settings_are_read_and_not_shown(
    read, write, key: str, value: str
) -> None:
    section, _, name = key.partition(".")
    variable = f"MAINSPRING_{key.replace('.', '_').upper()}"
    for way in (
        lambda: read({variable: value}),
        lambda: (write(f"[{section}]\n{name} = {json.dumps(value)}\n"), read())[1],
    ):
        with pytest.raises(InvalidConfig) as refused:
            way()
        assert refused.value.field == key
        assert "leave it out for none" in str(refused.value)
        assert "hunter2" not in str(refused.value)
        assert "aHVudGVyMg" not in str(refused.value)


def test_the_project_file_is_read_when_there_is_no_other(read, write) -> None:
    write('[project]\nname = "x"\n\n[tool.mainspring.worker]\nthreads = 3\n', "pyproject.toml")
    assert read()[0].worker.threads == 3
    assert read()[1]["worker.threads"] == "pyproject.toml:5"

    write("[worker]\nthreads = 4\n")
    assert read()[0].worker.threads == 4


def test_a_project_file_that_says_nothing_about_us_sets_nothing(read, write) -> None:
    write('[project]\nname = "x"\n', "pyproject.toml")

    assert read()[0] == Settings()


def test_a_named_file_is_the_only_one_read(read, write) -> None:
    write("[worker]\nthreads = 4\n")
    other = write("[scheduler]\nchunk = 5\n", "other.toml")

    settings, origins = read(file=other)

    assert (settings.scheduler.chunk, settings.worker.threads) == (5, 16)
    assert origins["scheduler.chunk"] == "other.toml:2"


def test_a_byte_order_mark_is_ignored(read, write) -> None:
    write(b"\xef\xbb\xbf[worker]\nthreads = 4\n")

    assert read()[0].worker.threads == 4


@pytest.mark.parametrize(
    ("text", "field", "message"),
    [
        (
            "[worker]\n\nconcurency = 5\n",
            "worker.concurency",
            r"mean worker\.concurrency.*mainspring\.toml:3",
        ),
        ("[wroker]\nthreads = 5\n", "wroker", r"mean worker.*mainspring\.toml:1"),
        ("worker = 5\n", "worker", r"a table.*mainspring\.toml:1"),
        ("[worker]\nlease = 'abc'\n", "worker.lease", r"a duration.*'abc'.*mainspring\.toml:2"),
        ("[worker]\nlease = [1]\n", "worker.lease", r"a duration.*mainspring\.toml:2"),
        ("[worker]\nlease = 2026-01-01\n", "worker.lease", r"a duration.*mainspring\.toml:2"),
        ("[worker]\nthreads = true\n", "worker.threads", r"a whole number.*True"),
        ("[worker]\nthreads = 1.5\n", "worker.threads", "a whole number"),
        ("[worker]\nqueues = [1]\n", "worker.queues", "a list of names"),
        ("[worker]\nname = 5\n", "worker.name", "text"),
        ("[worker]\nheartbeat = '10s'\n", "worker.heartbeat", r"a third of worker\.lease \(15s\).*toml:2"),
        ("[worker]\nthreads = 5\nthreads = 6\n", "mainspring.toml", "valid TOML.*line 3"),
        ("[worker\n", "mainspring.toml", "valid TOML"),
        ("x = '\0'\n", "mainspring.toml", "valid TOML"),
        ("lease_seconds: abc\n", "mainspring.toml", "valid TOML"),
        ("worker = { lease = '1ms' }\n", "worker.lease", r"from 1s.*mainspring\.toml:1"),
    ],
)
def test_what_is_wrong_in_the_file_is_refused_with_key_and_line(
    read, write, text: str, field: str, message: str
) -> None:
    write(text)

    with pytest.raises(InvalidConfig, match=message) as refusal:
        read()

    assert refusal.value.field == field


def test_a_secret_under_a_misspelt_key_is_not_shown(read, write) -> None:
    write('[database]\nulr = "postgres://u:s3cret@h/db"\n')

    with pytest.raises(InvalidConfig, match=r"did you mean database\.url") as refusal:
        read()

    assert "s3cret" not in str(refusal.value)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("MAINSPRING_WORKER_CONCURENCY", "MAINSPRING_WORKER_CONCURRENCY"),
        ("MAINSPRING_SCHEDULER_CHUNKS", "MAINSPRING_SCHEDULER_CHUNK"),
        ("MAINSPRING_DATABSE_URL", "MAINSPRING_DATABASE_URL"),
        ("MAINSPRING_LOG_COLOUR", "a known setting"),
    ],
)
def test_a_misspelt_variable_is_refused_with_the_one_meant(read, name: str, meant: str) -> None:
    with pytest.raises(InvalidConfig, match=meant) as refusal:
        read({name: "s3cret"})

    assert refusal.value.field == name
    assert "s3cret" not in str(refusal.value)


def test_variables_of_others_are_left_alone(read) -> None:
    settings, _ = read(
        {"MAINSPRING_APP": "jobs:app", "MAINSPRING_TEST_POSTGRES": "x", "WORKER_LEASE": "1", "TZ": "?"}
    )

    assert settings == Settings()


@pytest.mark.parametrize("value", ["abc", "-1", "1.5", "٣", "9" * 30])
def test_a_variable_that_cannot_be_read_is_refused_by_name(read, value: str) -> None:
    with pytest.raises(InvalidConfig, match="MAINSPRING_WORKER_THREADS"):
        read({"MAINSPRING_WORKER_THREADS": value})


def test_a_url_can_come_from_a_file_named_in_a_variable(read, write) -> None:
    secret = write("postgres://u:p@h/db\n", "secret")

    settings, origins = read({"MAINSPRING_DATABASE_URL_FILE": str(secret), "DATABASE_URL": "sqlite:///x.db"})

    assert settings.database.url == "postgresql://u:p@h/db"
    assert origins["database.url"] == "MAINSPRING_DATABASE_URL_FILE"


def test_a_url_given_twice_is_refused(read, write) -> None:
    both = {"MAINSPRING_DATABASE_URL": "sqlite:///a.db", "MAINSPRING_DATABASE_URL_FILE": "x"}

    with pytest.raises(InvalidConfig, match="either MAINSPRING_DATABASE_URL or"):
        read(both)


def test_a_secret_file_that_is_not_there_is_refused(read) -> None:
    with pytest.raises(InvalidConfig, match="MAINSPRING_DATABASE_URL_FILE"):
        read({"MAINSPRING_DATABASE_URL_FILE": "/nowhere/at/all"})


def test_a_refused_url_names_its_origin(read) -> None:
    with pytest.raises(InvalidConfig, match=r"mysql://u:\*\*\*@h/db.*\(DATABASE_URL\)"):
        read({"DATABASE_URL": "mysql://u:s3cret@h/db"})


def test_an_unknown_flag_is_refused(read) -> None:
    with pytest.raises(InvalidConfig, match=r"did you mean worker\.concurrency"):
        read(flags={"worker.concurrenc": 5})


def test_a_named_file_that_is_missing_a_folder_or_a_pipe_is_refused(read, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "mainspring.toml").mkdir()

    for file in (tmp_path / "missing", tmp_path, tmp_path / "pipe", None):
        with pytest.raises(InvalidConfig, match="file"):
            read(file=file)


def test_a_huge_or_garbled_file_is_refused(read, write) -> None:
    write(b"#" * (1024 * 1024 + 1))
    with pytest.raises(InvalidConfig, match="1 MiB"):
        read()

    write(b"\xff\xfe\x00")
    with pytest.raises(InvalidConfig, match="UTF-8"):
        read()


def test_the_process_environment_is_read_when_no_other_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAINSPRING_WORKER_THREADS", "7")

    settings, _ = load(flags={}, cwd=tmp_path)

    assert settings.worker.threads == 7
