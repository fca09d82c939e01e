"""What becomes of jobs of a task that says nothing of retries, when a service is away for some hours."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from mainspring import Mainspring, Retry
from mainspring.admin.views import DeadView, to_json
from mainspring.duration import duration
from mainspring.model.job import NewJob
from mainspring.tasks.payload import encode
from mainspring.testing import Harness
from mainspring.testing.clock import ManualClock

DAY, HOUR, SECOND = timedelta(days=1), timedelta(hours=1), timedelta(seconds=1)


class Provider:
    """A service that is away until some time, and when it was asked."""

    def __init__(self) -> None:
        self.back_at: datetime | None = None
        self.asked: list[datetime] = []
        self.done: list[datetime] = []

    def ask(self, now: datetime) -> None:
        self.asked.append(now)
        if self.back_at is None or now < self.back_at:
            raise ConnectionError("the provider is away")
        self.done.append(now)


@pytest.fixture
def provider() -> Provider:
    return Provider()


@pytest.fixture
def app(provider: Provider) -> Mainspring:
    app = Mainspring("sqlite://:memory:")

    @app.task
    def charge() -> None:
        provider.ask(app._clock.now())

    @app.task(retry=Retry(attempts=5))
    def five() -> None:
        provider.ask(app._clock.now())

    return app


def test_a_job_survives_an_outage_of_hours(app: Mainspring, provider: Provider) -> None:
    with Harness(app, errors="collect") as mainspring:
        began = mainspring.clock.now()
        provider.back_at = began + 5 * HOUR
        app._registry.get("charge").enqueue()

        mainspring.run_for("7h")

        assert mainspring.dead() == []
        [done] = provider.done
        assert done < provider.back_at + HOUR
        first, second, *_ = provider.asked
        assert first == began
        assert second - first <= 5 * SECOND


def test_a_dead_letter_says_for_how_long_it_was_tried(app: Mainspring, provider: Provider) -> None:
    with Harness(app, errors="collect") as mainspring:
        app._registry.get("charge").enqueue()

        mainspring.run_for("3d")

        [letter] = mainspring.dead()
        told = to_json(DeadView.of_letter(letter))
        assert (told["failures"], told["reason"]) == (42, "failed")
        assert 20 * 3600 < told["tried_for_seconds"] < 28 * 3600
        assert told["first_failed_at"] == provider.asked[0].isoformat()


def test_what_is_said_counts(app: Mainspring, provider: Provider) -> None:
    with Harness(app, errors="collect") as mainspring:
        app._registry.get("five").enqueue()

        mainspring.run_for("1d")

        [letter] = mainspring.dead()
        assert (letter.failures, len(provider.asked)) == (5, 5)
        assert provider.asked[-1] - provider.asked[0] < 80 * SECOND


def test_arguments_that_do_not_fit_are_final_at_once() -> None:
    app = Mainspring("sqlite://:memory:")

    @app.task
    def greet(name: str) -> None:
        raise AssertionError("it cannot be called")

    unchecked = {"nobody": "x"}
    with Harness(app, errors="collect") as mainspring:
        app.enqueue_many(
            [NewJob(task="greet", payload=encode([], unchecked, field="greet"), max_attempts=42)]
        )
        mainspring.run_until_idle()

        [letter] = mainspring.dead()
        assert (letter.reason, letter.failures) == ("permanent", 1)
        assert letter.errors[0].type == "mainspring.errors.InvalidArgument"
        assert "only parameters it has (name)" in letter.errors[0].message


def test_arguments_a_target_refuses_are_final_at_once() -> None:
    app = Mainspring("sqlite://:memory:")
    app.http("call")

    with Harness(app, errors="collect") as mainspring:
        app.enqueue_many(
            [NewJob(task="call", payload=encode([], {"url": "ftp://x"}, field="call"), max_attempts=42)]
        )
        mainspring.run_until_idle()

        [letter] = mainspring.dead()
        assert (letter.reason, letter.failures) == ("permanent", 1)
        assert letter.errors[0].type == "mainspring.errors.InvalidArgument"


def test_a_type_error_of_the_handlers_own_is_tried_again() -> None:
    app = Mainspring("sqlite://:memory:")

    @app.task
    def fussy(name: str) -> int:
        return name + 1  # type: ignore[operator, no-any-return]

    with Harness(app, errors="collect") as mainspring:
        fussy.enqueue("x")
        [ran] = mainspring.run_until_idle()

        assert (ran.verdict, type(ran.error)) == ("failed", TypeError)


@pytest.mark.parametrize(("period", "attempts"), [("1m", 4), ("1h", 10), ("1d", 33), ("7d", 42)])
def test_a_slots_job_is_tried_until_the_next_slot_has_its_turn(
    period: str, attempts: int, app: Mainspring, provider: Provider
) -> None:
    app.schedule("often", app._registry.get("charge"), every=period)
    with Harness(app, errors="collect") as mainspring:
        mainspring.run_for(period)
        mainspring.run_for(period)

        first, *_ = [letter for letter in mainspring.dead() if letter.slot_at is not None]
        assert first.failures == attempts
        assert first.slot_at is not None and first.died_at < first.slot_at + duration(period, "period")


@pytest.mark.parametrize("period", ["1s", "2s", "10s"])
def test_a_slots_job_is_tried_three_times_however_soon_the_next_slot_comes(
    period: str, app: Mainspring, provider: Provider
) -> None:
    app.schedule("often", app._registry.get("charge"), every=period)
    with Harness(app, errors="collect") as mainspring:
        mainspring.run_for("1m")

        assert {letter.failures for letter in mainspring.dead()} == {3}


@pytest.mark.parametrize(
    "policy",
    [{"overlap": "queue_one"}, {"overlap": "queue_all"}, {"allow": 5}, {"overlap": "replace"}],
    ids=["queue_one", "queue_all", "allow", "replace"],
)
def test_where_a_live_job_skips_no_slot_a_slots_job_is_tried_as_any_other(
    policy: dict[str, Any], app: Mainspring, clock: ManualClock
) -> None:
    declared = app.schedule("often", app._registry.get("charge"), every="1m", **policy)
    assert declared.new_schedule(clock.now()).max_attempts == 42


def test_slots_wait_behind_a_job_that_is_tried_for_hours(app: Mainspring, provider: Provider) -> None:
    """Away for five hours: nothing is a dead letter, and every slot runs."""
    app.schedule("hourly", app._registry.get("charge"), every="1h", overlap="queue_all", misfire="all")
    with Harness(app, errors="collect") as mainspring:
        provider.back_at = mainspring.clock.now() + 5 * HOUR
        mainspring.run_for("9h")

        assert mainspring.dead() == []
        assert len(provider.done) == 9


def test_no_slot_is_skipped_because_the_one_before_it_waits_for_its_next_attempt(
    app: Mainspring, provider: Provider
) -> None:
    app.schedule("hourly", app._registry.get("charge"), every="1h")
    with Harness(app, errors="collect") as mainspring:
        provider.back_at = mainspring.clock.now() + 3 * HOUR + HOUR / 2
        mainspring.run_for("6h")

        assert [done.hour for done in provider.done] == [3, 4, 5, 6]
        letters = [letter.slot_at for letter in mainspring.dead()]
        assert [slot.hour for slot in letters if slot is not None] == [1, 2]


def test_a_policy_of_your_own_is_kept_for_slots(app: Mainspring) -> None:
    declared = app.schedule("often", app._registry.get("five"), every="10s")

    assert declared.new_schedule(app._clock.now()).max_attempts == 5
