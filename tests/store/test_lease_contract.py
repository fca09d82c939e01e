"""The contract of leases for user code, on every store."""

from __future__ import annotations

import asyncio

import pytest

from mainspring.model.process import Held, Lease, LeaseInfo
from mainspring.store.opener import open_store
from tests.support.desk import LEASE, SECOND


class Counter:
    """Leases of one store, stamped and run to their end."""

    def __init__(self, desk):
        self.desk = desk

    def acquire(self, holder_id=1, name="crm", ttl=LEASE):
        holder = f"box:{holder_id}"
        return self._run("acquire", name, holder_id=holder_id, holder=holder, ttl=ttl)

    def renew(self, lease, ttl=LEASE, **fields):
        return self._run("renew", lease.name, **(named(lease) | fields), ttl=ttl)

    def release(self, lease, **fields):
        return self._run("release", lease.name, **(named(lease) | fields))

    def all(self):
        return self._run("all")

    def _run(self, method, *args, **kwargs):
        return self.desk.run(
            getattr(self.desk.store.leases, method)(*args, **kwargs, at=self.desk.clock.stamp())
        )


def named(lease):
    return {"holder_id": lease.holder_id, "token": lease.token}


@pytest.fixture
def counter(desk):
    return Counter(desk)


# Acquiring.


def test_the_first_holder_of_a_name_has_token_one(counter, desk):
    assert counter.acquire(7) == Lease(
        name="crm", token=1, holder_id=7, acquired_at=desk.now, expires_at=desk.now + LEASE
    )


def test_names_are_leased_apart(counter):
    assert [counter.acquire(1, "a").token, counter.acquire(2, "b").token] == [1, 1]


def test_a_held_lease_is_refused_with_its_holder_and_end(counter, desk):
    counter.acquire(1)
    desk.advance(5 * SECOND)

    assert counter.acquire(2) == Held(
        name="crm", holder="box:1", until=desk.now + LEASE - 5 * SECOND, remaining=LEASE - 5 * SECOND
    )


def test_a_refusal_changes_nothing(counter):
    counter.acquire(1)
    before = counter.all()
    counter.acquire(2)

    assert counter.all() == before


def test_a_lease_is_held_until_its_end_and_not_beyond(counter, desk):
    counter.acquire(1)
    desk.advance(LEASE - SECOND)
    assert isinstance(counter.acquire(2), Held)

    desk.advance(SECOND)

    assert counter.acquire(2).token == 2


def test_the_token_rises_with_every_holder(counter, desk):
    tokens = []
    for holder in (5, 3, 5, 9):
        lease = counter.acquire(holder)
        tokens.append(lease.token)
        if holder == 3:
            desk.advance(LEASE)
        else:
            counter.release(lease)

    assert tokens == [1, 2, 3, 4]


def test_a_holder_that_asks_again_has_the_same_lease_for_longer(counter, desk):
    first = counter.acquire(1)
    desk.advance(SECOND)
    again = counter.acquire(1)

    assert (again.token, again.acquired_at) == (first.token, first.acquired_at)
    assert again.expires_at == first.expires_at + SECOND


def test_a_holder_that_asks_again_too_late_is_a_new_holder(counter, desk):
    counter.acquire(1)
    desk.advance(LEASE)

    assert counter.acquire(1).token == 2


def test_asking_again_for_less_time_cuts_nothing_short(counter):
    first = counter.acquire(1)

    assert counter.acquire(1, ttl=SECOND).expires_at == first.expires_at


def test_the_largest_holder_id_there_can_be_is_kept(counter):
    largest = (1 << 63) - 1

    assert counter.renew(counter.acquire(largest))


# Renewing.


def test_a_renewal_counts_from_now(counter, desk):
    lease = counter.acquire(1)
    desk.advance(5 * SECOND)

    assert counter.renew(lease)
    [info] = counter.all()
    assert (info.expires_at, info.acquired_at, info.token) == (desk.now + LEASE, lease.acquired_at, 1)


def test_a_renewal_cuts_nothing_short(counter):
    lease = counter.acquire(1)

    assert counter.renew(lease, ttl=SECOND)
    assert counter.all()[0].expires_at == lease.expires_at


def test_a_renewal_after_the_end_is_refused(counter, desk):
    lease = counter.acquire(1)
    desk.advance(LEASE)
    before = counter.all()

    assert not counter.renew(lease)
    assert counter.all() == before


def test_a_renewal_after_another_took_over_is_refused(counter, desk):
    stale = counter.acquire(1)
    desk.advance(LEASE)
    counter.acquire(2)
    before = counter.all()

    assert not counter.renew(stale)
    assert counter.all() == before


@pytest.mark.parametrize("other", [{"holder_id": 2}, {"token": 2}, {"token": 0}])
def test_a_renewal_must_name_holder_and_token(counter, other):
    lease = counter.acquire(1)

    assert not counter.renew(lease, **other)


def test_a_renewal_of_what_was_never_leased_is_refused(counter):
    assert not counter.renew(Lease(name="x", token=1, holder_id=1, acquired_at=None, expires_at=None))
    assert counter.all() == []


# Releasing.


def test_a_released_lease_is_free_at_once(counter):
    lease = counter.acquire(1)

    assert counter.release(lease)
    assert counter.acquire(2).token == 2


def test_a_released_lease_keeps_its_row_and_token(counter, desk):
    lease = counter.acquire(1)
    desk.advance(SECOND)
    counter.release(lease)

    assert counter.all() == [
        LeaseInfo(
            name="crm",
            token=1,
            holder="box:1",
            acquired_at=lease.acquired_at,
            expires_at=desk.now,
            held=False,
        )
    ]


def test_a_renewal_that_comes_after_the_release_does_not_bring_it_back(counter, desk):
    lease = counter.acquire(1)
    began = desk.now
    desk.advance(SECOND)
    counter.release(lease)

    late = desk.store.leases.renew("crm", **named(lease), ttl=LEASE, at=began)

    assert not desk.run(late)
    assert not counter.all()[0].held


def test_a_stale_release_changes_nothing(counter, desk):
    stale = counter.acquire(1)
    desk.advance(LEASE)
    counter.acquire(2)
    before = counter.all()

    assert not counter.release(stale)
    assert counter.all() == before


def test_releasing_twice_is_no_work(counter, desk):
    lease = counter.acquire(1)
    counter.release(lease)
    before = counter.all()
    desk.advance(SECOND)

    assert not counter.release(lease)
    assert counter.all() == before


def test_a_release_after_the_end_changes_nothing(counter, desk):
    lease = counter.acquire(1)
    desk.advance(LEASE)
    before = counter.all()

    assert not counter.release(lease)
    assert counter.all() == before


def test_leases_are_listed_by_name(counter):
    for holder, name in enumerate(("b", "B", "a"), start=1):
        counter.acquire(holder, name)

    assert [(each.name, each.holder, each.held) for each in counter.all()] == [
        ("B", "box:2", True),
        ("a", "box:3", True),
        ("b", "box:1", True),
    ]


# By the store's own clock, from many sides.


def test_of_many_who_ask_at_once_one_is_granted(database_url, run, clock):
    async def race():
        stores = [open_store(database_url, clock=clock) for _ in range(4)]
        try:
            tokens = []
            for turn in range(10):
                asked = [
                    store.leases.acquire("crm", holder_id=1 + turn * 10 + n, holder="h", ttl=LEASE, at=None)
                    for n, store in enumerate(stores)
                ]
                answers = await asyncio.gather(*asked)
                [lease] = [each for each in answers if isinstance(each, Lease)]
                assert all(each.remaining > 0 * SECOND for each in answers if isinstance(each, Held))
                tokens.append(lease.token)
                await stores[0].leases.release("crm", **named(lease), at=None)
            return tokens
        finally:
            await asyncio.gather(*(store.close() for store in stores))

    assert run(race()) == list(range(1, 11))
