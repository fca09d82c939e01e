"""Cron expressions: what is taken, what is refused, and what each names in UTC."""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainspring.errors import InvalidArgument
from mainspring.triggers.codec import decode
from mainspring.triggers.cron import Cron
from tests.support.budget import within_cpu

NOW = datetime(2026, 11, 15, 7, 0, tzinfo=UTC)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("* * * * *", "2026-11-15 07:01"),
        ("*/7 * * * *", "2026-11-15 07:07"),
        ("0-59/7 * * * *", "2026-11-15 07:07"),
        ("59 23 31 12 *", "2026-12-31 23:59"),
        ("0 0 29 2 *", "2028-02-29 00:00"),
        ("0 0 * JAN-DEC mon-fri", "2026-11-16 00:00"),
        ("0 0 * * 7", "2026-11-22 00:00"),
        ("  0   0 * * *  ", "2026-11-16 00:00"),
        ("1-5,3 * * * *", "2026-11-15 07:01"),
        ("0 0 L * *", "2026-11-30 00:00"),
        ("0 12 * * 5#3", "2026-11-20 12:00"),
        ("0 0 1 * MON", "2026-11-16 00:00"),
        ("30 0 7 * * *", "2026-11-15 07:00:30"),
        ("0 22-2 * * *", "2026-11-15 22:00"),
        ("58-3/3 * * * *", "2026-11-15 07:01"),
        ("0 0 * * FRI-MON", "2026-11-16 00:00"),
        ("0 0 * * SAT-SUN", "2026-11-21 00:00"),
        ("0 0 * * 7-2", "2026-11-16 00:00"),
        ("0 0 * NOV-FEB *", "2026-11-16 00:00"),
        ("0 0 28-2 * *", "2026-11-28 00:00"),
        ("0 9-9 * * *", "2026-11-15 09:00"),
        ("0 9-9/5 * * *", "2026-11-15 09:00"),
        ("0 0 LW * *", "2026-11-30 00:00"),
        ("0 0 LW 1 *", "2027-01-29 00:00"),
        ("0 0 * * 5L", "2026-11-27 00:00"),
        ("0 0 * * FRIL", "2026-11-27 00:00"),
        ("0 0 * * FRI#3", "2026-11-20 00:00"),
        ("0 0 21W * *", "2026-11-20 00:00"),
        ("0 0 22W * *", "2026-11-23 00:00"),
        ("0 0 1W 5 *", "2027-05-03 00:00"),
        ("0 0 31W 1 *", "2027-01-29 00:00"),
        ("0 0 31W * *", "2026-12-31 00:00"),
        ("0 0 20W,17 * *", "2026-11-17 00:00"),
        ("@hourly", "2026-11-15 08:00"),
        ("@daily", "2026-11-16 00:00"),
        ("@midnight", "2026-11-16 00:00"),
        ("@weekly", "2026-11-22 00:00"),
        ("@MONTHLY", "2026-12-01 00:00"),
        ("@yearly", "2027-01-01 00:00"),
        ("@annually", "2027-01-01 00:00"),
    ],
)
def test_an_expression_names_its_next_slot(expression: str, expected: str) -> None:
    assert Cron(expression).next_after(NOW) == at(expected)


@pytest.mark.parametrize(
    "expression",
    [
        "", " ", "\t\n", "*", "* * *", "* * * * * * *",
        "60 * * * *", "-1 * * * *", "* 24 * * *", "* * 0 * *", "* * 32 * *", "* * * 0 *", "* * * 13 *",
        "* * * * 8", "*/0 * * * *", "*/-5 * * * *", "1-5/0 * * * *", "*/120 4-22 * * *",
        ",1 * * * *", "1, * * * *", "1- * * * *", "/5 * * * *", "*/ * * * *",
        "1-2-3 * * * *", "** * * * *", "5* * * * *", "5/15 * * * *", "1,5/15 * * * *",
        "0 0 31 4 *", "0 0 31 2,4,6,9,11 *", "0 0 30 2 *", "0 0 */29 2 1#5",
        "* * * FOO *", "* * * * MONDAY", "* JAN * * *", "* * * * 5#6", "? ? ? ? ?", "H(61-99) * * * *",
        "H(5-1) * * * *", "H/60 * * * *", "H(0-9)/20 * * * *", "H-5 * * * *", "H * * * *", "H(1-2 * * * *",
        "0 0 L-3 * *", "0 0 L5 * *", "0 0 L/2 * *", "0 0 * * L", "0 0 0W * *", "0 0 32W * *", "0 0 31W 2 *",
        "0 0 W * *", "0 0 * * 15W", "0 0 * 5L *", "0 0 WL * *", "0 0 15-20W * *", "0 0 * * 5#0", "5 # * * *",
        "@reboot", "@foo", "@yearly extra", "@DAILY ; id", "@every 1ns",
        "TZ=", "CRON_TZ=UTC", "CRON_TZ=Europe/Rome 0 2 * * *", "TZ=../../etc/passwd * * * * *",
        "\uff15 * * * *", "\u00b2 * * * *", "0x10 * * * *", "1e1 * * * *", "five * * * *",
        "0\x1c0 * * *", "0\u200b 0 * * *", "0 0 * * *\0", "0 0 * * *\n0 1 * * *", "0 0 * * *; rm -rf /",
        "0 0 * * * # nightly", "{{7*7}} * * * *", "' OR 1=1 -- * * *",
        "0," * 100_000 + "0 * * * *", "9" * 1_000_000 + " * * * *", "a" * 50_000 + "!",
        None, 5, True, {}, ["*", "*", "*", "*", "*"], 1e308,
    ],
)  # fmt: skip
def test_what_is_not_an_expression_is_refused_by_name(expression: object) -> None:
    with within_cpu(0.05), pytest.raises(InvalidArgument) as refusal:
        Cron(expression)  # type: ignore[arg-type]

    assert refusal.value.field == "cron"
    assert len(str(refusal.value)) < 600
    assert str(refusal.value).isprintable()


@given(st.text("0123456789*/-,L#W ", max_size=30))
def test_any_text_is_either_an_expression_or_an_invalid_argument(text: str) -> None:
    try:
        slot = Cron(text, "Europe/Berlin").next_after(NOW)
    except InvalidArgument:
        return

    assert slot is None or slot > NOW


FIELD = st.one_of(st.just("*"), st.integers(1, 28).map(str), st.sampled_from(["*/2", "*/5", "3-9", "1,4"]))
HOUR = st.one_of(st.just("*"), st.sampled_from(["0", "2", "*/2", "1-3", "23"]))
MONTH = st.sampled_from(["*", "1", "2-10", "*/3"])
DAY = st.sampled_from(["*", "0", "1-5", "5L", "1#2"])
EXPRESSION = st.tuples(FIELD, HOUR, FIELD, MONTH, DAY).map(" ".join)
ZONE = st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia"])
MOMENT = st.datetimes(datetime(2010, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001  bounds are naive


@given(EXPRESSION, ZONE, MOMENT, st.floats(0, 1, exclude_max=True))
def test_a_slot_is_the_same_from_every_moment_before_it(
    expression: str, tz: str, moment: datetime, part: float
) -> None:
    cron = Cron(expression, tz)
    slot = cron.next_after(moment)
    assert slot is not None

    between = moment + (slot - moment) * part

    assert slot > moment
    assert slot.tzinfo is UTC
    assert slot.microsecond == 0
    if between < slot:
        assert cron.next_after(between) == slot


@given(EXPRESSION, ZONE)
def test_an_encoded_expression_is_read_back_equal(expression: str, tz: str) -> None:
    cron = Cron(expression, tz)

    assert decode(cron.encode()) == cron


@pytest.mark.parametrize(
    ("expression", "field", "column"),
    [
        ("60 * * * *", "minute", 1),
        ("  0 24 * * *", "hour", 5),
        ("0 0,1,99 * * *", "hour", 7),
        ("0 0 32 * *", "day-of-month", 5),
        ("0 0 30 2 *", "day-of-month", 5),
        ("0 0 * FOO *", "month", 7),
        ("0 0 * * 1,MONDAY", "day-of-week", 11),
        ("61 * * * * *", "second", 1),
        ("*/5 */99 * * *", "hour", 5),
        ("5/15 * * * *", "minute", 1),
        ("0 0 * * 5#6", "day-of-week", 9),
        ("0 H * * *", "hour", 3),
    ],
)
def test_a_refusal_names_the_field_and_the_column(expression: str, field: str, column: int) -> None:
    with pytest.raises(InvalidArgument, match=rf"in the {field} field at column {column}, got") as refusal:
        Cron(expression)

    assert refusal.value.got == expression


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("* * *", "found 3 at column 6"),
        ("0 0 * * * * *", "found 7 at column 13"),
        ("0 \x00 * * *", "plain ASCII at column 3"),
        ("CRON_TZ=UTC 0 0 * * *", "an option of its own, tz, at column 1"),
        ("@every 5m", "an interval as every=, not as cron at column 1"),
        (" @dayly", "@daily.* and nothing else, at column 2"),
        ("5/15 * * * *", "such as 5-59/15"),
        ("H * * * *", "a schedule's name to go with H"),
    ],
)
def test_a_refusal_says_what_to_write_instead(expression: str, words: str) -> None:
    with pytest.raises(InvalidArgument, match=words):
        Cron(expression)


@pytest.mark.parametrize(
    ("expression", "allowed"),
    [
        ("H * * * *", r"[1-5]?\d \* \* \* \*"),
        ("h h * * *", r"[1-5]?\d (1?\d|2[0-3]) \* \* \*"),
        ("H/15 * * * *", r"(\d|1[0-4])-59/15 \* \* \* \*"),
        ("H(0-29)/10 * * * *", r"\d-29/10 \* \* \* \*"),
        ("H(7-7) * * * *", r"7 \* \* \* \*"),
        ("H,59 * * * *", r"[1-5]?\d,59 \* \* \* \*"),
        ("0 0 H H H", r"0 0 ([1-9]|1\d|2[0-8]) ([1-9]|1[0-2]) [0-6]"),
        ("H 0 0 * * *", r"[1-5]?\d 0 0 \* \* \*"),
    ],
)
def test_h_becomes_a_value_of_the_schedules_own(expression: str, allowed: str) -> None:
    for number in range(200):
        cron = Cron(expression, key=f"tenant-{number}")

        assert re.fullmatch(allowed, cron.expression)
        assert cron == Cron(expression, key=f"tenant-{number}")
        assert decode(cron.encode()) == cron


def test_h_is_stable_for_ever() -> None:
    """Another version that hashed differently would move every schedule that is written with H."""
    assert Cron("H H H * *", key="nightly-invoices").expression == "10 10 21 * *"


def test_h_spreads_schedules_evenly_and_its_fields_apart() -> None:
    found = Counter(Cron("H H * * *", key=f"tenant-{number}").expression for number in range(6000))
    minutes = Counter(expression.split()[0] for expression in found.elements())

    assert len(minutes) == 60
    assert max(minutes.values()) < 150
    assert len(found) > 1200


def test_policies_are_written_only_where_they_differ_from_the_default() -> None:
    assert Cron("0 2 * * *", "Europe/Berlin").encode() == '{"cron":"0 2 * * *","tz":"Europe/Berlin"}'
    assert Cron("0 2 * * *", gap="skip").encode() == '{"cron":"0 2 * * *","gap":"skip","tz":"UTC"}'
    assert Cron("0 2 * * *", fold="both").encode() == '{"cron":"0 2 * * *","fold":"both","tz":"UTC"}'
    assert decode(Cron("0 2 * * *", gap="skip", fold="second").encode()) == Cron(
        "0 2 * * *", gap="skip", fold="second"
    )


@pytest.mark.parametrize(
    ("field", "value"), [("gap", "forward"), ("gap", None), ("fold", "last"), ("fold", [])]
)
def test_a_policy_that_is_none_is_refused(field: str, value: object) -> None:
    with pytest.raises(InvalidArgument, match="one of") as refusal:
        Cron("0 2 * * *", **{field: value})  # type: ignore[arg-type]

    assert refusal.value.field == field


def test_days_of_month_and_week_are_either_unless_one_starts_with_a_star() -> None:
    either, both = Cron("0 0 13 * FRI"), Cron("0 0 */12 * FRI")

    assert either.next_after(NOW) == at("2026-11-20 00:00")
    assert both.next_after(NOW) == at("2026-12-25 00:00")


def test_two_spellings_of_one_expression_share_their_text() -> None:
    assert Cron(" 0  0 * jan  mon ").encode() == Cron("0 0 * JAN MON", "UTC").encode()
    assert Cron("@daily").encode() == '{"cron":"0 0 * * *","tz":"UTC"}'


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"cron":5,"tz":"UTC"}', '{"every":1e300}', '{"rrule":""}'])
def test_text_that_is_no_trigger_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument):
        decode(text)


def test_there_is_nothing_after_the_end_of_time() -> None:
    assert Cron("@yearly").next_after(datetime.max.replace(tzinfo=UTC)) is None
    assert Cron("@yearly", "Asia/Tokyo").next_after(datetime.max.replace(tzinfo=UTC) - timedelta(1)) is None


def test_a_moment_in_any_zone_is_the_same_moment() -> None:
    elsewhere = datetime.fromisoformat("2026-11-15T12:45:00+05:45")

    assert Cron("@hourly").next_after(elsewhere) == at("2026-11-15 08:00")
    assert Cron("@hourly", "Asia/Kathmandu").next_after(elsewhere) == at("2026-11-15 07:15")


def test_the_longest_search_ends_within_fifty_milliseconds() -> None:
    with within_cpu(0.05):
        Cron("0 0 */28 2 MON#5").next_after(NOW)
    with within_cpu(0.05), pytest.raises(InvalidArgument, match="a date that exists"):
        Cron("0 0 */30 * 1#4")
