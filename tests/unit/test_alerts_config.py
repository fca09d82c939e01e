"""Settings of alerts: what is refused, and what nobody is shown."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from mainspring.cli.main import cli
from mainspring.config import AlertsConfig, load, masked_target
from mainspring.errors import InvalidConfig

SECRET = "whsec_" + "c2VjcmV0" * 8


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("to", ("smoke signals",)),
        ("to", ("https://",)),
        ("to", ("log", "log")),
        ("to", ("javascript:alert(1)",)),
        ("to", ("https://example.com/a b",)),
        ("to", ("https://example.com/\n",)),
        ("to", tuple(f"https://example.com/{each}" for each in range(21))),
        ("to", ("https://example.com/" + "x" * 3000,)),
        ("off", ("nothing",)),
        ("every", timedelta()),
        ("missed_after", timedelta(milliseconds=1)),
        ("repeat", timedelta(seconds=1)),
        ("failing_after", 0),
        ("storm", 0),
        ("attempts", 101),
        ("quiet", "22-7"),
        ("quiet", "22:00-22:00"),
        ("quiet", "24:00-07:00"),
        ("quiet_zone", "Europe/Atlantis"),
        ("quiet_zone", "../etc/passwd"),
        ("ping_url", "not a url"),
        ("enabled", "yes"),
        ("timeout", timedelta(hours=1)),
    ],
)
def test_what_makes_no_sense_is_refused(field: str, value: Any) -> None:
    with pytest.raises(InvalidConfig) as refused:
        AlertsConfig(**{field: value})

    assert refused.value.field == f"alerts.{field}"
    assert "x" * 100 not in str(refused.value)


@pytest.mark.parametrize(
    ("target", "shown"),
    [
        ("log", "log"),
        ("https://hooks.example.com/services/T0/SECRET?token=SECRET", "https://hooks.example.com/***"),
        ("https://user:SECRET@hooks.example.com/", "https://hooks.example.com/***"),
        ("json://example.com:8080/SECRET", "json://example.com:8080/***"),
        ("slack://SECRET/SECRET/SECRET", "slack://***"),
        ("mailto://ann:SECRET@example.com?to=SECRET", "mailto://example.com/***"),
        ("mailto://SECRET", "mailto://***"),
        ("SECRET", "***"),
    ],
)
def test_of_a_target_only_its_kind_and_host_are_shown(target: str, shown: str) -> None:
    assert masked_target(target) == shown


def test_secrets_may_stand_in_files_and_are_never_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "to").write_text("log\nslack://hunter2/a/b\n")
    (tmp_path / "secret").write_text(SECRET)
    environ = {
        "MAINSPRING_ALERTS_TO_FILE": str(tmp_path / "to"),
        "MAINSPRING_ALERTS_SECRET_FILE": str(tmp_path / "secret"),
        "MAINSPRING_ALERTS_PING_URL": "https://ping.example.com/hunter2",
    }
    settings, _ = load(flags={}, environ=environ, cwd=tmp_path)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)

    shown = CliRunner().invoke(cli, ["config", "show"], catch_exceptions=False).output

    assert settings.alerts.to == ("log", "slack://hunter2/a/b")
    assert settings.alerts.secret == SECRET
    assert "hunter2" not in shown
    assert SECRET not in shown
    assert "log,slack://***" in shown
    assert "hunter2" not in repr(settings)
    assert SECRET not in repr(settings)
