"""The contract of tokens and sessions: known by their digest alone, and dead at once when they are ended."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from mainspring.model.access import AccessRole, NewSession, NewToken, Session, Token
from tests.support.desk import DAY, HOUR, MINUTE, SECOND, Desk

LIMITS = {"idle": HOUR, "longest": DAY}


def digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def add(desk: Desk, secret: str = "s", **fields: Any) -> Token:
    new = NewToken(
        **{
            "name": "ci",
            "role": AccessRole.OPERATOR,
            "digest": digest(secret),
            "hint": "ms_abc",
            "author": "ada",
            "scopes": ("jobs", "queues"),
            **fields,
        }
    )
    return desk.run(desk.store.access.add_token(new, at=desk.now))


def look(desk: Desk, secret: str = "s") -> Token | None:
    return desk.run(desk.store.access.token(digest(secret), at=desk.now))


def sign_in(desk: Desk, cookie: str = "c", **fields: Any) -> Session:
    new = NewSession(**{"digest": digest(cookie), "name": "ada", "role": AccessRole.ADMIN, **fields})
    return desk.run(desk.store.access.open_session(new, longest=DAY, at=desk.now))


def session(desk: Desk, cookie: str = "c") -> Session | None:
    return desk.run(desk.store.access.session(digest(cookie), **LIMITS, at=desk.now))


def test_a_token_is_found_by_its_digest_with_all_that_was_said_of_it(desk):
    made = add(desk, expires_at=desk.now + DAY)

    found = look(desk)

    assert found == made
    assert (made.name, made.role, made.hint, made.author) == ("ci", AccessRole.OPERATOR, "ms_abc", "ada")
    assert (made.scopes, made.created_at, made.expires_at) == (("jobs", "queues"), desk.now, desk.now + DAY)
    assert (made.last_used_at, made.revoked_at, made.alive) == (None, None, True)
    assert look(desk, "another") is None


def test_a_token_ends_when_it_expires_and_stays_on_record(desk):
    add(desk, expires_at=desk.now + HOUR)
    desk.advance(HOUR)

    assert look(desk) is None
    [kept] = desk.run(desk.store.access.tokens(at=desk.now))
    assert not kept.alive
    assert desk.run(desk.store.access.revoke_token(kept.id, at=desk.now)) is False


def test_that_a_token_was_used_is_noted_at_most_once_a_minute(desk):
    add(desk)
    seen = []
    for _ in range(3):
        look(desk)
        [kept] = desk.run(desk.store.access.tokens(at=desk.now))
        seen.append(kept.last_used_at)
        desk.advance(40 * SECOND)

    assert seen[0] == seen[1]
    assert seen[2] == seen[0] + 80 * SECOND


def test_revoking_ends_a_token_and_the_sessions_opened_with_it_at_once(desk):
    token, other = add(desk), add(desk, "other")
    sign_in(desk, "mine", token_id=token.id)
    sign_in(desk, "theirs", token_id=other.id)

    assert desk.run(desk.store.access.revoke_token(token.id, at=desk.now)) is True

    assert look(desk) is None
    assert session(desk, "mine") is None
    assert session(desk, "theirs") is not None
    assert desk.run(desk.store.access.revoke_token(token.id, at=desk.now)) is False
    newest, oldest = desk.run(desk.store.access.tokens(at=desk.now))
    assert (newest.id, newest.alive) == (other.id, True)
    assert (oldest.id, oldest.alive, oldest.revoked_at) == (token.id, False, desk.now)


def test_a_session_is_found_by_its_digest(desk):
    made = sign_in(desk, scopes=("jobs",))

    assert session(desk) == made
    assert (made.name, made.role, made.scopes, made.token_id) == ("ada", AccessRole.ADMIN, ("jobs",), None)
    assert made.opened_at == made.seen_at == desk.now
    assert session(desk, "another") is None


def test_a_session_ends_when_it_is_idle(desk):
    sign_in(desk)
    for _ in range(3):
        desk.advance(HOUR - SECOND)
        assert session(desk) is not None
    desk.advance(HOUR)

    assert session(desk) is None
    assert desk.run(desk.store.access.sessions(**LIMITS, at=desk.now)) == []


def test_a_session_ends_when_it_is_old_however_busy(desk):
    opened = sign_in(desk).opened_at
    while desk.now + HOUR / 2 < opened + DAY:
        desk.advance(HOUR / 2)
        assert session(desk) is not None
    desk.advance(HOUR / 2)

    assert session(desk) is None


def test_a_session_ends_when_its_token_expires(desk):
    token = add(desk, expires_at=desk.now + MINUTE)
    sign_in(desk, token_id=token.id)
    assert session(desk) is not None
    desk.advance(MINUTE)

    assert session(desk) is None
    assert desk.run(desk.store.access.sessions(**LIMITS, at=desk.now)) == []


def test_sessions_are_closed_one_by_one_or_by_name(desk):
    first, second = sign_in(desk, "1"), sign_in(desk, "2")
    third = sign_in(desk, "3", name="bob")

    assert desk.run(desk.store.access.close_sessions(session_id=first.id, at=desk.now)) == 1
    assert session(desk, "1") is None
    assert desk.run(desk.store.access.sessions(**LIMITS, at=desk.now)) == [third, second]
    assert desk.run(desk.store.access.close_sessions(name="ada", at=desk.now)) == 1
    assert desk.run(desk.store.access.sessions(**LIMITS, at=desk.now)) == [third]
    assert desk.run(desk.store.access.close_sessions(name="nobody", at=desk.now)) == 0


def test_old_sessions_are_forgotten_by_the_next_one(desk):
    sign_in(desk, "old")
    desk.advance(DAY + SECOND)
    sign_in(desk, "new")

    kept = desk.run(desk.store.access.sessions(idle=100 * DAY, longest=100 * DAY, at=desk.now))

    assert len(kept) == 1


@pytest.mark.parametrize("table", ["tokens", "sessions"])
def test_two_of_one_digest_cannot_be(desk, table):
    make = add if table == "tokens" else sign_in
    make(desk)

    with pytest.raises(Exception, match=r"(?i)unique|duplicate"):
        make(desk)
