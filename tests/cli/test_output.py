"""Tables, escapes and log lines."""

from __future__ import annotations

import json
import logging
import sys

import pytest

from mainspring.cli import output
from mainspring.cli.logs import JsonLines, TextLines


def record(message: str, **extra: object) -> logging.LogRecord:
    made = logging.LogRecord("mainspring.job", logging.WARNING, "x.py", 1, message, (), None)
    made.__dict__.update(extra)
    return made


def test_columns_are_aligned_and_control_characters_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    output.table(["ID", "NAME"], [(1, "a\x1b[31m\nb"), (100, None)], none="nothing")

    assert capsys.readouterr().out == "ID   NAME\n1    a\\x1b[31m\\nb\n100  -\n"


def test_an_empty_table_is_said_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    output.table(["ID"], [], none="no jobs")

    assert capsys.readouterr() == ("", "no jobs\n")


def test_lines_are_cut_to_the_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)

    output.table(["ID", "NAME"], [(1, "x" * 50)], none="nothing")

    assert capsys.readouterr().out.splitlines()[1] == "1   " + "x" * 15 + "…"


def test_bidirectional_overrides_cannot_turn_text_around() -> None:
    assert output.printable("a\u202eb") == "a\\u202eb"


def test_a_log_line_stays_one_line() -> None:
    line = TextLines().format(record("one\r\n12:00:00 error   forged \x1b[2J"))

    assert line.endswith(r"warning one\r\n12:00:00 error   forged \x1b[2J")
    assert "\n" not in line


def test_a_logged_traceback_is_indented_and_escaped() -> None:
    try:
        raise ValueError("a\x1bb")
    except ValueError:
        made = record("failed")
        made.exc_info = sys.exc_info()

    first, *below = TextLines().format(made).splitlines()

    assert first.endswith("failed")
    assert all(line.startswith("    ") for line in below)
    assert below[-1].strip() == r"ValueError: a\x1bb"


def test_json_lines_carry_the_job() -> None:
    line = json.loads(JsonLines().format(record("hi\n", job_id=7, task="t", attempt=2)))

    assert line["message"] == "hi\n"
    assert (line["level"], line["logger"]) == ("warning", "mainspring.job")
    assert (line["job_id"], line["task"], line["attempt"]) == (7, "t", 2)
