"""From a schedule to a form, and back to what somebody changed in it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from mainspring.admin.redact import HIDDEN, Redaction
from mainspring.admin.schedules.draft import Draft
from mainspring.admin.schedules.form import field_of, form_of, options_from
from mainspring.errors import InvalidArgument
from mainspring.tasks.payload import encode
from mainspring.tasks.schedule_options import PolicyOptions
from mainspring.triggers.cron import Cron
from mainspring.triggers.intervals import Every


def _draft(**policies: object) -> Draft:
    return Draft(
        name="s",
        task="t",
        trigger=Cron("30 2 * * *", "Europe/Berlin"),
        policies=PolicyOptions(**policies).policies("s"),  # type: ignore[arg-type]
        payload=encode([], {"tenant": 7, "password": "very secret"}, field="t"),
        queue="default",
        priority=0,
        attempts=3,
    )


DRAFT = _draft()
FORM = form_of(DRAFT, Redaction())


def test_a_form_that_is_sent_as_it_was_changes_nothing() -> None:
    assert options_from(FORM, FORM, DRAFT) == {}
    assert (
        options_from({name: f"{text}\r\n" for name, text in FORM.items() if name != "kind"}, FORM, DRAFT)
        == {}
    )


def test_secrets_are_not_in_the_form_and_come_back_as_they_were() -> None:
    assert "very secret" not in str(FORM)
    said = {**FORM, "kwargs": f'{{"tenant": 8, "password": "{HIDDEN}"}}'}

    assert options_from(said, FORM, DRAFT) == {"kwargs": {"tenant": 8, "password": "very secret"}}


def test_only_the_chosen_kind_of_trigger_is_read() -> None:
    said = {**FORM, "kind": "every", "every": "90m", "cron": "nonsense", "tz": ""}

    assert options_from(said, FORM, DRAFT) == {"every": "90m", "tz": None}


@pytest.mark.parametrize(
    ("field", "typed", "read"),
    [
        ("cron", "0 3 * * *", "0 3 * * *"),
        ("attempts", "5", 5),
        ("max_fires", "10", 10),
        ("jitter", "5m", "5m"),
        ("args", "[1]", [1]),
        ("window", "15m", "15m"),
    ],
)
def test_what_was_typed_is_read_as_its_option(field: str, typed: str, read: object) -> None:
    assert options_from({**FORM, field: typed}, FORM, DRAFT) == {field: read}


@pytest.mark.parametrize(
    ("field", "typed"),
    [("attempts", "five"), ("priority", "1e3"), ("kwargs", "{"), ("kind", "moon"), ("max_fires", "١")],
)
def test_what_cannot_be_read_is_told_of_its_field(field: str, typed: str) -> None:
    with pytest.raises(InvalidArgument) as wrong:
        options_from({**FORM, field: typed}, FORM, DRAFT)

    assert field_of(wrong.value, FORM) == field


def test_an_emptied_field_asks_for_the_default_and_another_policy_drops_the_limit() -> None:
    draft = _draft(overlap="allow", allow=4, jitter="5m")
    before = form_of(draft, Redaction())

    assert (before["allow"], before["jitter"]) == ("4", "5m")
    assert options_from({**before, "jitter": ""}, before, draft) == {"jitter": None}
    assert options_from({**before, "overlap": "skip", "allow": "9"}, before, draft) == {"overlap": "skip"}


def test_an_interval_shows_its_length() -> None:
    draft = Draft(
        **{**{name: getattr(DRAFT, name) for name in DRAFT.__slots__}, "trigger": Every(timedelta(hours=1))}
    )

    found = form_of(draft, Redaction())
    assert (found["kind"], found["every"], found["tz"], found["cron"]) == ("every", "1h", "", "")


@pytest.mark.parametrize(
    ("said", "field"),
    [
        ("schedule.catch_up", "catch_up"),
        ("cron", "cron"),
        ("schedule", "kind"),
        ("t.tenant", "kwargs"),
        ("limit", ""),
    ],
)
def test_an_error_finds_its_field(said: str, field: str) -> None:
    assert field_of(InvalidArgument(said, 1, "x"), FORM) == field
