"""What goes in comes back equal, or is refused with its place and type."""

from __future__ import annotations

import json
from collections import OrderedDict, namedtuple
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainspring.errors import InvalidArgument
from mainspring.tasks.payload import DEEPEST, LARGEST_PAYLOAD, LARGEST_RESULT, decode, encode, encode_result

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
VALUE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
    max_leaves=8,
)


class Colour(StrEnum):
    RED = "red"


class Level(IntEnum):
    HIGH = 3


class Plain(Enum):
    ONE = "one"


@dataclass
class Record:
    a: int = 1


class Text(str):
    pass


Point = namedtuple("Point", "x y")


def nested(levels: int) -> object:
    value: object = []
    for _ in range(levels - 1):
        value = [value]
    return value


def refusal_of(value: object) -> InvalidArgument:
    with pytest.raises(InvalidArgument) as refusal:
        encode((), {"month": value}, field="bill")
    return refusal.value


@given(st.lists(VALUE, max_size=4), st.dictionaries(TEXT, VALUE, max_size=5))
def test_a_call_comes_back_equal_in_value_and_type(args: list[object], kwargs: dict[str, object]) -> None:
    found = decode(encode(args, kwargs, field="bill"))

    # By repr too, since True == 1 == 1.0.
    assert found == (args, kwargs)
    assert repr(found[0]) == repr(json.loads(json.dumps(args, sort_keys=True)))


@given(st.dictionaries(TEXT, VALUE, max_size=5))
def test_the_order_of_keys_does_not_change_the_bytes(kwargs: dict[str, object]) -> None:
    backwards = dict(reversed(kwargs.items()))

    assert encode((), kwargs, field="bill") == encode((), backwards, field="bill")


@given(st.lists(VALUE, max_size=3))
def test_the_bytes_are_json(args: list[object]) -> None:
    assert json.loads(encode(args, {}, field="bill")) == ({"args": args} if args else {})


def test_empty_parts_are_left_out() -> None:
    assert encode((), {}, field="bill") == b"{}"
    assert encode((1,), {}, field="bill") == b'{"args":[1]}'
    assert encode((), {"a": 1}, field="bill") == b'{"kwargs":{"a":1}}'


@pytest.mark.parametrize(
    "value",
    [
        (1, 2), {1, 2}, frozenset(), b"x", bytearray(b"x"), datetime(2026, 1, 1, tzinfo=UTC),
        date(2026, 1, 1), timedelta(1), Decimal("1.5"), Fraction(1, 2), UUID(int=1), Path("x"), Record(),
        Point(1, 2), Plain.ONE, Text("x"), object(), Record, len, 1j, range(3), MappingProxyType({}),
        iter([]),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_what_json_would_change_is_refused_with_its_path_and_type(value: object) -> None:
    refusal = refusal_of(["fine", {"deeper": value}])

    assert refusal.field == "bill.kwargs.month[1].deeper"
    assert refusal.got is type(value)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_numbers_that_json_lacks_are_refused(number: float) -> None:
    assert "finite" in refusal_of(number).expected


@pytest.mark.parametrize("number", [2**64, -(2**63) - 1, int("9" * 400), 10**5000], ids=int.bit_length)
def test_integers_beyond_64_bits_are_refused(number: int) -> None:
    refusal = refusal_of([number])

    assert refusal.field == "bill.kwargs.month[0]"
    assert "64 bits" in refusal.expected
    assert refusal.got == number


@pytest.mark.parametrize("number", [2**64 - 1, -(2**63), 9007199254740993, 1e22, 123456789012345680000.0])
def test_long_numbers_that_fit_are_kept(number: float) -> None:
    assert decode(encode((number,), {}, field="bill")) == ([number], {})


@pytest.mark.parametrize("keys", [{1: 2}, {None: 1}, {True: 1}, {1.5: 1}, {(1,): 1}, {b"a": 1}])
def test_keys_that_are_not_text_are_refused(keys: dict[object, object]) -> None:
    refusal = refusal_of(keys)

    assert refusal.field == "bill.kwargs.month"
    assert "str keys" in refusal.expected


@pytest.mark.parametrize("text", ["\ud800", "a\udfff", "\0", "a\0b"])
def test_text_that_no_store_keeps_is_refused_as_value_and_as_key(text: str) -> None:
    assert refusal_of(text).field == "bill.kwargs.month"
    assert refusal_of({text: 1}).field == "bill.kwargs.month"


def test_text_that_only_looks_like_a_nul_or_a_bracket_is_kept() -> None:
    args = ["\\u0000", "[" * 500, "1" * 500]

    assert decode(encode(args, {}, field="bill")) == (args, {})


def test_a_key_that_is_no_identifier_is_escaped_in_the_path() -> None:
    assert refusal_of({"a\nb": (1,)}).field == "bill.kwargs.month['a\\nb']"


def test_nesting_is_kept_to_its_limit_and_refused_beyond() -> None:
    assert decode(encode((nested(DEEPEST),), {}, field="bill"))[0] == [nested(DEEPEST)]
    assert "levels" in refusal_of(nested(DEEPEST + 1)).expected
    assert "levels" in refusal_of(nested(100_000)).expected


def test_a_value_that_contains_itself_is_refused() -> None:
    loop: list[object] = []
    loop.append(loop)

    assert "levels" in refusal_of(loop).expected


def test_many_brackets_side_by_side_are_not_deep() -> None:
    rows = [{"id": number, "tags": []} for number in range(1000)]

    assert decode(encode((rows,), {}, field="bill"))[0] == [rows]


def test_size_is_kept_to_its_limit_and_refused_beyond() -> None:
    room = LARGEST_PAYLOAD - len('{"args":[""]}')

    assert len(encode(("x" * room,), {}, field="bill")) == LARGEST_PAYLOAD
    with pytest.raises(InvalidArgument, match="at most 262144 bytes"):
        encode(("x" * (room + 1),), {}, field="bill")


def test_enums_of_text_and_numbers_come_back_as_their_equal_values() -> None:
    found, _ = decode(encode((Colour.RED, Level.HIGH, OrderedDict(a=1)), {}, field="bill"))

    assert found == [Colour.RED, Level.HIGH, {"a": 1}]


def test_nothing_hostile_in_text_is_interpreted() -> None:
    kwargs = {
        "$type": "os.system",
        "note": "{{ config }} ${jndi:ldap://x} %s%n $(reboot)",
        "caf\u00e9": 1,
        "cafe\u0301": 2,
    }

    assert decode(encode((), kwargs, field="bill")) == ([], kwargs)


@pytest.mark.parametrize(
    "raw",
    [b"", b"{", b"[]", b"null", b"{} {}", b"{'a':1}", b'{"args":{}}', b'{"kwargs":[]}', b'{"other":1}',
     b"\xff\xfe{", b"[" * 100_000, b'{"args":' + b"[" * 100_000, b'{"args":[NaN]}', b'{"args":["\xff"]}'],
)  # fmt: skip
def test_a_stored_payload_that_is_damaged_is_refused(raw: bytes) -> None:
    with pytest.raises(InvalidArgument, match="payload"):
        decode(raw)


def test_a_result_follows_the_same_rules_with_a_smaller_limit() -> None:
    assert encode_result(None) is None
    assert encode_result({"rows": [1, 2]}) == b'{"rows":[1,2]}'
    assert encode_result("x" * (LARGEST_RESULT - 2)) is not None
    with pytest.raises(InvalidArgument, match="result: expected at most 65536 bytes"):
        encode_result("x" * LARGEST_RESULT)
    with pytest.raises(InvalidArgument, match=r"result\.rows"):
        encode_result({"rows": (1, 2)})
    with pytest.raises(InvalidArgument, match="levels"):
        encode_result(nested(DEEPEST + 1))
