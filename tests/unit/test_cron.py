"""Cron expressions: what is taken, what is refused, and what each names in UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainspring.errors import InvalidArgument
from mainspring.trigger.codec import decode
from mainspring.trigger.cron import Cron

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
        "* * * * 8", "*/0 * * * *", "*/-5 * * * *", "1-5/0 * * * *", "*/120 4-22 * * *", "5-1 * * * *",
        "* * * * FRI-MON", ",1 * * * *", "1, * * * *", "1- * * * *", "/5 * * * *", "*/ * * * *",
        "1-2-3 * * * *", "** * * * *", "5* * * * *", "5/15 * * * *", "1,5/15 * * * *",
        "0 0 31 4 *", "0 0 31 2,4,6,9,11 *", "0 0 30 2 *", "0 0 */29 2 1#5",
        "* * * FOO *", "* * * * MONDAY", "* JAN * * *", "* * * * 5#6", "? ? ? ? ?", "H(61-99) * * * *",
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
    started = perf_counter()

    with pytest.raises(InvalidArgument) as refusal:
        Cron(expression)  # type: ignore[arg-type]

    assert refusal.value.field == "cron"
    assert len(str(refusal.value)) < 600
    assert str(refusal.value).isprintable()
    assert perf_counter() - started < 0.5


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
    cron = Cron("0 0 29 2 *")
    started = perf_counter()

    for _ in range(10):
        cron.next_after(NOW)
    with pytest.raises(InvalidArgument, match="50 years"):
        Cron("0 0 */30 2-3 1#4")

    assert perf_counter() - started < 0.5
