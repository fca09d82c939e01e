"""Instants as people write them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from mainspring.errors import InvalidArgument
from mainspring.triggers.zones import read_instant


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-11-15T07:00:00Z", datetime(2026, 11, 15, 7, tzinfo=UTC)),
        ("2026-11-15T07:00Z", datetime(2026, 11, 15, 7, tzinfo=UTC)),
        ("2026-11-15 07:00:00Z", datetime(2026, 11, 15, 7, tzinfo=UTC)),
        ("2026-11-15T07:00:00.5-05:00", datetime(2026, 11, 15, 12, 0, 0, 500_000, tzinfo=UTC)),
        ("2026-11-15T07:00:00.123456+05:30", datetime(2026, 11, 15, 1, 30, 0, 123_456, tzinfo=UTC)),
        ("2000-01-01T00:00:00+14:00", datetime(1999, 12, 31, 10, tzinfo=UTC)),
        ("2100-12-31T23:59:59Z", datetime(2100, 12, 31, 23, 59, 59, tzinfo=UTC)),
    ],
)
def test_an_instant_is_read_as_utc(text: str, expected: datetime) -> None:
    found = read_instant(text, "after")

    assert found == expected
    assert found.tzinfo is UTC


@pytest.mark.parametrize(
    "text",
    ["", "2026-11-15T07:00:00+0100", "2026-11-15T07:00:00+01", "2026-11-15T07:00:00+01:60",
     "2026-11-15T7:00:00Z", "2026-11-15t07:00:00z", "2026-11-15T07:00:00 Z", " 2026-11-15T07:00:00Z",
     "2026-11-15T07:00:00Z\n",
     "2026-11-15T07:00:00.Z", "2026-11-15T07:00:00.1234567Z", "2026-320T07:00:00Z", "2101-01-01T00:00:00Z",
     "1999-12-31T23:59:59Z", "\u0662026-11-15T07:00:00Z", "2026-11-15T07:00:00+24:00", "9" * 1_000_000, None],
)  # fmt: skip
def test_anything_else_is_refused_by_name(text: object) -> None:
    with pytest.raises(InvalidArgument) as refusal:
        read_instant(text, "anchor")  # type: ignore[arg-type]

    assert refusal.value.field == "anchor"
