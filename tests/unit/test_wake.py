"""How often hints are sent."""

from __future__ import annotations

from datetime import timedelta

from mainspring.store.postgres.wake import CROWD, LONG_REST, SHORT_REST, next_rest


def rests(rate: int, count: int = 6) -> list[timedelta]:
    """The rests that follow one another while so many jobs a second come in."""
    found = [SHORT_REST]
    while len(found) < count:
        found.append(next_rest(found[-1], round(rate * found[-1].total_seconds())))
    return found


def test_a_few_thousand_jobs_a_second_are_told_of_soon() -> None:
    assert set(rests(4000)) == {SHORT_REST}


def test_a_flood_is_told_of_less_often() -> None:
    assert rests(CROWD * 1000)[-1] == LONG_REST


def test_rests_are_short_again_when_the_flood_is_over() -> None:
    rest = LONG_REST
    for _ in range(3):
        rest = next_rest(rest, 0)

    assert rest == SHORT_REST
