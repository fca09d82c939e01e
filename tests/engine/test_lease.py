"""Leases for user code: who holds them, how they are kept, and what happens when they are lost."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta
from itertools import pairwise

import pytest

from mainspring.app import Mainspring
from mainspring.client.lease import LeaseAcquirer, leasing
from mainspring.clock import SystemClock
from mainspring.entropy import SeededEntropy, SystemEntropy
from mainspring.errors import InvalidArgument, LeaseHeld, LeaseLost, StoreUnavailable, UsageError
from mainspring.model.process import Lease
from mainspring.sync import Portal
from mainspring.telemetry.events import StoreTrouble, Telemetry
from tests.engine.kit import LEASE, SECOND, Faulty, Heard

NOW = timedelta()
LATE = LEASE * 0.8
BRIEF = timedelta(milliseconds=100)


class Bench:
    """One app's side of a lease, on a store that fails on order; passes are made by hand."""

    def __init__(self, store, clock, seed=1):
        self._store = Faulty(store)
        self.faults = self._store
        self.clock = clock
        self.entropy = SeededEntropy(seed)
        self.heard = Heard()
        self.telemetry = Telemetry(self.heard)

    async def store(self):
        return self._store

    def acquirer(self, wait=NOW):
        return LeaseAcquirer(
            self._store.leases,
            "crm",
            ttl=LEASE,
            wait=wait,
            clock=self.clock,
            entropy=self.entropy,
            telemetry=self.telemetry,
        )

    async def granted(self):
        return await self.acquirer().ask()

    async def info(self):
        [info] = await self._store.leases.all(at=self.clock.stamp())
        return info

    def leasing(self, ttl="1s", wait=None, name="crm"):
        return leasing(self, name, ttl=ttl, wait=wait, portal=Portal(self.store))


@pytest.fixture
def bench(store, clock):
    return Bench(store, clock)


@pytest.fixture
def other(store, clock):
    return Bench(store, clock, seed=2)


@pytest.fixture
def live(store):
    """By the real clocks: what a running keeper does by itself."""
    return Bench(store, SystemClock())


@pytest.fixture
def rival(store):
    return Bench(store, SystemClock(), seed=2)


# Asking, pass by pass.


def test_each_holder_is_another_with_a_higher_token(bench, run):
    async def scenario():
        first = await bench.granted()
        await first.close()
        second = await bench.granted()
        await second.close()
        return first.holding.token, second.holding.token

    assert run(scenario()) == (1, 2)
    ids = [kwargs["holder_id"] for name, _, kwargs in bench.faults.calls if name == "leases.acquire"]
    assert len(set(ids)) == 2


def test_who_does_not_wait_is_told_who_holds_it_and_until_when(bench, other, run, clock):
    run(bench.granted())

    with pytest.raises(LeaseHeld, match=r"held by '.+:[0-9]+' until 2030-01-01T00:00:15\.000") as caught:
        run(other.granted())

    assert caught.value.until == clock.now() + LEASE


def test_who_waits_asks_again_until_the_wait_is_over(bench, other, run, clock):
    run(bench.granted())
    acquirer = other.acquirer(wait=10 * SECOND)

    assert NOW < run(acquirer.ask()) <= SECOND
    clock.advance(10 * SECOND)
    with pytest.raises(LeaseHeld):
        run(acquirer.ask())


def test_who_waits_for_ever_has_it_when_it_ends(bench, other, run, clock):
    run(bench.granted())
    acquirer = other.acquirer(wait=None)
    assert isinstance(run(acquirer.ask()), timedelta)

    clock.advance(LEASE)

    assert run(acquirer.ask()).holding.token == 2


def test_a_store_that_never_answered_is_the_callers_to_know(bench, run):
    bench.faults.before("leases.acquire")

    with pytest.raises(StoreUnavailable):
        run(bench.acquirer(wait=None).ask())


def test_trouble_while_waiting_is_waited_out_and_told(bench, other, run):
    run(bench.granted())
    acquirer = other.acquirer(wait=None)
    run(acquirer.ask())
    other.faults.before("leases.acquire")

    assert isinstance(run(acquirer.ask()), timedelta)
    assert other.heard.of(StoreTrouble)


def test_a_grant_whose_answer_was_lost_is_ours_when_we_ask_again(bench, run):
    bench.faults.after("leases.acquire")
    acquirer = bench.acquirer(wait=10 * SECOND)

    assert isinstance(run(acquirer.ask()), timedelta)
    assert run(acquirer.ask()).holding.token == 1


def test_a_grant_to_one_who_was_cancelled_meanwhile_is_given_back(bench, run):
    asked, go_on = asyncio.Event(), asyncio.Event()

    async def hold_back():
        asked.set()
        await go_on.wait()

    async def scenario():
        bench.faults.during("leases.acquire", hold_back)
        asking = asyncio.create_task(bench.granted())
        await asked.wait()
        asking.cancel()
        await asyncio.sleep(0)
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await asking
        return await bench.info()

    info = run(scenario())
    assert (info.token, info.held) == (1, False)


# Keeping, pass by pass.


def test_a_lease_is_renewed_at_a_third_of_its_time_with_jitter(bench, run, clock):
    keeper = run(bench.granted())
    clock.advance(5 * SECOND)

    rests = {run(keeper.tick()) for _ in range(5)}

    assert len(rests) > 1
    assert all(LEASE * 0.29 < rest <= LEASE / 3 for rest in rests)
    assert run(bench.info()).expires_at == clock.now() + LEASE
    assert keeper.holding.left == LATE


def test_a_lease_counts_as_lost_a_fifth_of_it_before_it_ends(bench, run, clock):
    keeper = run(bench.granted())
    clock.advance(LATE - SECOND)
    assert not keeper.holding.lost

    clock.advance(SECOND)

    assert keeper.holding.lost
    assert run(bench.info()).held


def test_what_was_lost_is_not_renewed_any_more(bench, run, clock):
    keeper = run(bench.granted())
    clock.advance(LATE)
    run(keeper.tick())

    assert "leases.renew" not in [name for name, _, _ in bench.faults.calls]
    assert keeper.holding.lost


def test_a_renewal_that_fails_is_tried_again_soon_and_is_no_loss_yet(bench, run, clock):
    keeper = run(bench.granted())
    clock.advance(5 * SECOND)
    bench.faults.before("leases.renew")

    assert run(keeper.tick()) <= LEASE / 12
    assert not keeper.holding.lost
    run(keeper.tick())
    assert keeper.holding.left == LATE
    assert keeper.trouble is None


def test_errors_until_the_lease_could_have_ended_are_a_loss(bench, run, clock):
    keeper = run(bench.granted())
    bench.faults.before("leases.renew", times=100)
    passes = 0
    while not keeper.holding.lost:
        clock.advance(max(run(keeper.tick()), SECOND / 10))
        passes += 1

    assert passes > 5
    assert clock.monotonic() < LEASE.total_seconds()
    assert isinstance(keeper.trouble, StoreUnavailable)


def test_a_renewal_counts_from_when_it_was_sent(bench, run, clock):
    keeper = run(bench.granted())

    async def slow():
        clock.advance(4 * SECOND)

    bench.faults.during("leases.renew", slow)
    run(keeper.tick())

    assert keeper.holding.left == LATE - 4 * SECOND


def test_an_answer_that_comes_too_late_does_not_bring_the_lease_back(bench, run, clock):
    keeper = run(bench.granted())

    async def slow():
        clock.advance(LATE)

    bench.faults.during("leases.renew", slow)
    run(keeper.tick())

    assert keeper.holding.lost


def test_a_takeover_is_a_loss_at_once(bench, run, clock):
    keeper = run(bench.granted())
    run(bench.faults.leases.release("crm", holder_id=keeper._lease.holder_id, token=1, at=clock.stamp()))
    run(keeper.tick())

    assert keeper.holding.lost
    assert "it had ended; nobody has it now" in str(keeper.holding.loss())


def test_a_lost_lease_names_its_new_holder(bench, other, run, clock):
    keeper = run(bench.granted())
    run(bench.faults.leases.release("crm", holder_id=keeper._lease.holder_id, token=1, at=clock.stamp()))
    run(bench.faults.leases.acquire("crm", holder_id=9, holder="box-2:77", ttl=SECOND, at=clock.stamp()))
    run(keeper.tick())

    assert "lost, box-2:77 has it now, since " in str(keeper.holding.loss())


def test_a_lease_whose_new_holder_cannot_be_asked_for_is_lost_all_the_same(bench, run, clock):
    keeper = run(bench.granted())
    run(bench.faults.leases.release("crm", holder_id=keeper._lease.holder_id, token=1, at=clock.stamp()))
    bench.faults.before("leases.all")
    run(keeper.tick())

    assert "another holder" in str(keeper.holding.loss())


def test_a_release_that_fails_hurts_nobody(bench, run):
    keeper = run(bench.granted())
    bench.faults.before("leases.release")

    run(keeper.close())

    assert bench.heard.of(StoreTrouble)


# The context, by the real clocks.


def test_leaving_releases_the_lease(live, run):
    async def scenario():
        async with live.leasing() as lease:
            assert (lease.name, lease.token, lease.lost) == ("crm", 1, False)
            assert (await live.info()).held
        return await live.info()

    assert not run(scenario()).held


def test_a_body_that_fails_releases_the_lease_and_fails(live, run):
    async def scenario():
        with pytest.raises(ValueError, match="boom"):
            async with live.leasing():
                raise ValueError("boom")
        return await live.info()

    assert not run(scenario()).held


def test_a_lease_is_kept_longer_than_its_time(live, run):
    async def scenario():
        async with live.leasing() as lease:
            await asyncio.sleep(1.5)
            assert not lease.lost

    run(scenario())


def test_the_body_is_cancelled_when_another_holder_has_the_lease(live, run):
    seen = []

    async def scenario():
        with pytest.raises(LeaseLost) as caught:
            async with live.leasing() as lease:
                await take_away(live)
                try:
                    await asyncio.sleep(60)
                except asyncio.CancelledError:
                    seen.append(lease.lost)
                    raise
        assert asyncio.current_task().cancelling() == 0
        await asyncio.sleep(0)  # and nothing of it is left in the task
        return caught.value

    lost = run(scenario())
    assert seen == [True]
    assert (lost.name, lost.token) == ("crm", 1)


def test_the_body_is_cancelled_before_a_lease_that_cannot_be_renewed_ends(live, run):
    async def scenario():
        live.faults.before("leases.renew", times=1000)
        with pytest.raises(LeaseLost) as caught:
            async with live.leasing():
                try:
                    await asyncio.sleep(60)
                finally:
                    still_ours = (await live.info()).held
        assert still_ours
        return caught.value

    assert isinstance(run(scenario()).__cause__, StoreUnavailable)


def test_the_body_is_cancelled_in_time_when_the_store_does_not_answer(live, run):
    async def never():
        await asyncio.Event().wait()

    async def scenario():
        live.faults.during("leases.renew", never)
        with pytest.raises(LeaseLost):
            async with live.leasing():
                await asyncio.sleep(60)

    run(scenario())


def test_a_defect_while_renewing_is_a_loss(live, run):
    async def scenario():
        live.faults.before("leases.renew", RuntimeError("a defect"))
        with pytest.raises(LeaseLost) as caught:
            async with live.leasing():
                await asyncio.sleep(60)
        return caught.value

    assert str(run(scenario()).__cause__) == "a defect"


def test_a_body_that_overran_its_lease_is_told_so_at_the_end(bench, run, clock):
    async def scenario():
        with pytest.raises(LeaseLost):
            async with bench.leasing(ttl="15s"):
                clock.advance(LATE)  # as if it had not let the event loop go on

    run(scenario())


def test_an_error_of_the_body_goes_before_the_loss(bench, run, clock):
    async def scenario():
        with pytest.raises(ValueError, match="boom"):
            async with bench.leasing(ttl="15s"):
                clock.advance(LATE)
                raise ValueError("boom")

    run(scenario())


def test_cancelling_from_outside_stays_a_cancellation(live, run):
    async def body(entered):
        async with live.leasing():
            entered.set()
            await asyncio.sleep(60)

    async def scenario():
        entered = asyncio.Event()
        task = asyncio.create_task(body(entered))
        await entered.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return await live.info()

    assert not run(scenario()).held


def test_one_context_is_entered_once_at_a_time_but_may_be_used_again(live, run):
    async def scenario():
        context = live.leasing()
        async with context as first:
            with pytest.raises(UsageError):
                await context.__aenter__()
        async with context as second:
            return first.token, second.token

    assert run(scenario()) == (1, 2)


def test_two_sides_contend_and_never_hold_it_both(live, rival, run):
    holding, most, tokens = 0, 0, []

    async def take_turns(side):
        nonlocal holding, most
        for _ in range(4):
            async with side.leasing() as lease:
                holding += 1
                most = max(most, holding)
                tokens.append(lease.token)
                await asyncio.sleep(0.01)
                holding -= 1

    async def scenario():
        await asyncio.gather(take_turns(live), take_turns(rival), take_turns(live))

    run(scenario())
    assert most == 1
    assert tokens == sorted(set(tokens))
    assert len(tokens) == 12


def test_holders_times_by_the_stores_clock_never_overlap(database_url, run):
    """Holders that stop in every way: released, renewed and released, and simply gone."""
    spells = []

    async def hold(app, turn):
        store = await app._store()
        asked = await store.leases.acquire(
            "crm", holder_id=SystemEntropy().worker_id(), holder="h", ttl=BRIEF, at=None
        )
        if not isinstance(asked, Lease):
            return
        end = asked.expires_at
        if turn % 3 and await store.leases.renew(
            "crm", holder_id=asked.holder_id, token=asked.token, ttl=BRIEF, at=None
        ):
            [info] = await store.leases.all(at=None)
            end = info.expires_at
        if turn % 3 < 2 and await store.leases.release(
            "crm", holder_id=asked.holder_id, token=asked.token, at=None
        ):
            end = None  # no later than the next one's beginning, or the next would not have been let in
        spells.append((asked.token, asked.acquired_at, end))

    async def scenario():
        apps = [Mainspring(database_url) for _ in range(2)]
        try:
            for turn in range(30):
                await asyncio.gather(*(hold(app, turn) for app in apps))
                await asyncio.sleep(0.02)
        finally:
            await asyncio.gather(*(app.aclose() for app in apps))

    run(scenario())
    spells.sort()
    assert len(spells) > 5
    for (token, began, end), (next_token, next_began, _) in pairwise(spells):
        assert token < next_token
        assert (end or began) <= next_began


# Blocking.


def test_the_blocking_context_holds_and_releases(database_url):
    app = Mainspring(database_url)
    try:
        with app.lease("crm") as lease:
            assert (lease.token, lease.lost) == (1, False)
            with pytest.raises(LeaseHeld), app.lease("crm", wait="0s"):
                pass
        with app.lease("crm", wait="0s") as lease:
            assert lease.token == 2
    finally:
        app.close()


def test_a_blocking_body_is_told_of_its_loss_at_the_end(database_url):
    app = Mainspring(database_url)
    noticed = threading.Event()

    async def take():
        store = await app._store()
        # As if the database's clock had jumped ahead.
        await store.leases.acquire(
            "crm", holder_id=99, holder="thief", ttl=SECOND, at=SystemClock().now() + 5 * SECOND
        )

    try:
        with pytest.raises(LeaseLost), app.lease("crm", ttl="1s") as lease:
            app._portal.call(take, instead="")
            while not lease.lost:
                noticed.wait(0.01)
    finally:
        app.close()


def test_the_blocking_context_is_refused_on_an_event_loop(live, run):
    async def scenario():
        with pytest.raises(UsageError), live.leasing():
            pass

    run(scenario())


# Arguments.


@pytest.mark.parametrize(
    ("name", "options"),
    [("", {}), ("a b", {}), ("a", {"ttl": "0s"}), ("a", {"ttl": "x"}), ("a", {"wait": "-1s"})],
)
def test_wrong_arguments_are_refused_before_anything_is_opened(name, options):
    with pytest.raises(InvalidArgument):
        Mainspring("sqlite://:memory:").lease(name, **options)


async def take_away(side):
    """Somebody else takes the lease, as after an end that this side did not notice."""
    [held] = [kwargs for name, _, kwargs in side.faults.calls if name == "leases.acquire"]
    await side.faults.leases.release("crm", holder_id=held["holder_id"], token=1, at=None)
    await side.faults.leases.acquire("crm", holder_id=99, holder="thief", ttl=LEASE, at=None)
