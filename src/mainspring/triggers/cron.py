"""Cron expressions: five fields, or six with the seconds first, in one time zone."""

from __future__ import annotations

import copy
import json
import re
from calendar import SATURDAY, SUNDAY, monthrange
from dataclasses import InitVar, dataclass, field
from datetime import UTC, date, datetime
from functools import lru_cache
from hashlib import blake2b
from itertools import accumulate

from cronsim import CronSim, CronSimError

from mainspring.errors import InvalidArgument
from mainspring.model.value import choice
from mainspring.triggers.zones import Fold, FoldOption, Gap, GapOption, Walls, zone

_ANY_WALL = datetime(2024, 1, 1)  # noqa: DTZ001  a wall time has no zone
# Every kind of year there is: common or leap, by the weekday it begins with.
_YEARS = (2001, 2002, 2003, 2005, 2006, 2009, 2010, 2000, 2004, 2008, 2012, 2016, 2020, 2024)
_LONGEST = 256
_ALIASES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_SHAPE = "five fields (minute hour day-of-month month day-of-week) or six with the seconds first"
_WORD = re.compile(r"[^ \t]+")
_RANGE = re.compile(r"(?P<base>\*|[0-9A-Z]+(?:-[0-9A-Z]+)?)(?:/(?P<step>[0-9]+))?")
_HASHED = re.compile(r"H(?:\((?P<range>[0-9]+-[0-9]+)\))?(?:/(?P<step>[0-9]+))?")
_NTH = re.compile(r"([0-9A-Z]+)#([0-9]+)")
_LAST = re.compile(r"([0-9A-Z]+)L")
_NEAREST = re.compile(r"([0-9]+)W")
_ZONE_PREFIX = re.compile(r"(?:CRON_)?TZ=.*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Cron:
    """Slots where the wall clock of a zone matches an expression.

    An hour field that starts with `*` means every real instant that shows a matching wall time. All
    others follow `gap` and `fold` on the nights the clocks change. `key` is what H is hashed from, the
    schedule's name; the expression is kept with every H resolved.
    """

    expression: str
    tz: str = "UTC"
    gap: GapOption = "shift"
    fold: FoldOption = "first"
    key: InitVar[str | None] = None
    _search: CronSim = field(init=False, repr=False, compare=False)
    _walls: Walls | None = field(init=False, repr=False, compare=False)

    def __post_init__(self, key: str | None) -> None:
        reading = _read_expression(self.expression, key)
        gap, fold = choice(Gap, self.gap, "gap"), choice(Fold, self.fold, "fold")
        rules = (Gap.SKIP, Fold.BOTH) if reading.starred_hour else (gap, fold)
        found, search = zone(self.tz), _cron_search(reading.plain, reading.nearest, reading.nearest_only)
        if search is None:
            expected = f"a date that exists in the day-of-month field at column {reading.day_column}"
            raise InvalidArgument("cron", self.expression, expected)
        object.__setattr__(self, "expression", reading.text)
        object.__setattr__(self, "gap", gap.value)
        object.__setattr__(self, "fold", fold.value)
        object.__setattr__(self, "_search", search)
        object.__setattr__(self, "_walls", None if self.tz == "UTC" else Walls(found, *rules))

    def next_after(self, moment: datetime) -> datetime | None:
        try:
            if self._walls is None:
                return self._wall_after(moment.astimezone(UTC).replace(tzinfo=None)).replace(tzinfo=UTC)
            return self._walls.after(moment, self._wall_after)
        except (StopIteration, OverflowError):
            return None

    def shifted(self, slot: datetime) -> bool:
        """Whether a wall time that did not exist has come to lie on this slot."""
        return self._walls is not None and self._walls.shifted(slot, self._wall_after)

    def encode(self) -> str:
        facts = {"cron": self.expression, "tz": self.tz}
        if self.gap != "shift":
            facts["gap"] = self.gap
        if self.fold != "first":
            facts["fold"] = self.fold
        return json.dumps(facts, sort_keys=True, separators=(",", ":"))

    def _wall_after(self, wall: datetime) -> datetime:
        """The next wall time that matches. cronsim sees no zone, so this depends on `wall` alone."""
        search = copy.copy(self._search)
        search.dt = wall.replace(microsecond=0)
        return next(search)


class _CronSearch(CronSim):
    """cronsim, and the weekday nearest to a day of the month."""

    nearest: frozenset[int] = frozenset()

    def match_dom(self, d: date) -> bool:
        """Whether the day of the month matches."""
        return super().match_dom(d) or any(_nearest_weekday(d, day) == d.day for day in self.nearest)


def _nearest_weekday(month: date, day: int) -> int | None:
    """Monday to Friday nearest to that day without leaving the month; None if the month has no such day."""
    _, last = monthrange(month.year, month.month)
    if day > last:
        return None
    weekday = month.replace(day=day).weekday()
    if weekday == SATURDAY:
        return day - 1 if day > 1 else day + 2
    if weekday == SUNDAY:
        return day + 1 if day < last else day - 2
    return day


@lru_cache(maxsize=4096)
def _cron_search(plain: str, nearest: frozenset[int], nearest_only: bool) -> CronSim | None:
    """None when no date ever matches: cronsim itself would look for it through 50 years."""
    try:
        search = _CronSearch(plain, _ANY_WALL)
    except CronSimError:  # the fields are known to be good, and the only other thing it looks at is this
        return None
    search.nearest = nearest
    if nearest_only:
        search.days = set()
    return search if _has_a_date(search) else None


def _has_a_date(search: CronSim) -> bool:
    starts = (date(year, month, 1) for year in _YEARS for month in search.months)
    months = ((start, monthrange(start.year, start.month)[1]) for start in starts)
    return any(
        search.match_day(start.replace(day=day)) for start, last in months for day in range(1, last + 1)
    )


@dataclass(frozen=True, slots=True)
class Field:
    """One of the places of an expression; `last` ends its cycle and `hashed` the values H may take."""

    name: str
    low: int
    high: int
    last: int
    hashed: int
    names: tuple[str, ...] = ()

    @property
    def allowed(self) -> str:
        words = f" or {self.names[0]} to {self.names[-1]}" if self.names else ""
        return f"a number from {self.low} to {self.high}{words}"


_DAY = Field("day-of-month", 1, 31, 31, 28)  # hashed: days that every month has
_WEEKDAY = Field("day-of-week", 0, 7, 6, 6, _WEEKDAYS)  # 7 is Sunday once more
FIELDS = (
    Field("second", 0, 59, 59, 59),
    Field("minute", 0, 59, 59, 59),
    Field("hour", 0, 23, 23, 23),
    _DAY,
    Field("month", 1, 12, 12, 12, _MONTHS),
    _WEEKDAY,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """A well-formed expression: the text we keep, with every H resolved, and the text cronsim takes."""

    text: str
    plain: str
    nearest: frozenset[int]
    """Days such as the 15 of `15W`, which cronsim does not know; they are not in `plain`."""
    nearest_only: bool
    """No other day is named: then `plain` holds one that does not count, for cronsim wants a day."""
    starred_hour: bool
    day_column: int


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a term stands, for the message that refuses it."""

    expression: str
    field: Field
    column: int

    def refusal(self, expected: str) -> InvalidArgument:
        return _refusal(self.expression, f"{expected} in the {self.field.name} field", self.column)

    def number(self, text: str) -> int:
        if text in self.field.names:
            return self.field.names.index(text) + self.field.low
        if not text.isdigit() or not self.field.low <= int(text) <= self.field.high:
            raise self.refusal(self.field.allowed)
        return int(text)

    def step(self, text: str | None) -> int:
        if text is None:
            return 1
        most = self.field.last - self.field.low
        if not 1 <= int(text) <= most:
            raise self.refusal(f"a step from 1 to {most}")
        return int(text)

    def bounds(self, text: str) -> tuple[int, int]:
        low, _, high = text.partition("-")
        return self.number(low), self.number(high)


def _read_expression(expression: str, key: str | None) -> _Reading:
    """Check every field; `key` is what H is hashed from. Raises InvalidArgument with field and column."""
    _check_text(expression)
    words = [(found.start() + 1, found[0].upper()) for found in _WORD.finditer(expression)]
    if words and words[0][1].startswith("@"):
        return _read_expression(_alias(expression, words), key)
    if words and _ZONE_PREFIX.fullmatch(words[0][1]):
        raise _refusal(expression, "no zone in front of the fields: it is an option of its own, tz,", 1)
    fields = _fields_of(expression, words)
    terms = [
        _terms(_Place(expression, field, column), word, key)
        for field, (column, word) in zip(fields, words, strict=True)
    ]
    return _Reading(
        text=" ".join(",".join(text for text, _ in each) for each in terms),
        plain=" ".join(",".join(filter(None, (plain for _, plain in each))) or "1" for each in terms),
        nearest=frozenset(int(text[:-1]) for text, plain in terms[-3] if not plain),
        nearest_only=not any(plain for _, plain in terms[-3]),
        starred_hour=words[-4][1].startswith("*"),
        day_column=words[-3][0],
    )


def _check_text(expression: str) -> None:
    if not isinstance(expression, str) or len(expression) > _LONGEST:
        raise InvalidArgument("cron", expression, f"{_SHAPE}, at most {_LONGEST} characters")
    for column, sign in enumerate(expression, 1):
        if sign != "\t" and not (sign.isascii() and sign.isprintable()):
            raise _refusal(expression, "one line of plain ASCII", column)


def _alias(expression: str, words: list[tuple[int, str]]) -> str:
    column, word = words[0]
    if len(words) == 1 and word.lower() in _ALIASES:
        return _ALIASES[word.lower()]
    if word == "@EVERY":
        raise _refusal(expression, "an interval as every=, not as cron", column)
    raise _refusal(expression, f"one of {', '.join(_ALIASES)}, and nothing else,", column)


def _fields_of(expression: str, words: list[tuple[int, str]]) -> tuple[Field, ...]:
    if len(words) not in (5, 6):
        column = words[6][0] if len(words) > 6 else len(expression.rstrip()) + 1
        raise _refusal(expression, f"{_SHAPE}, found {len(words)}", column)
    return FIELDS[-len(words) :]


def _terms(place: _Place, word: str, key: str | None) -> list[tuple[str, str]]:
    """The parts of a list: each as we keep it, with H made a number or a range, and as cronsim takes it."""
    texts = word.split(",")
    starts = accumulate((len(text) + 1 for text in texts), initial=place.column)
    terms = []
    for text, column in zip(texts, starts, strict=False):
        here = _Place(place.expression, place.field, column)
        hashed = _HASHED.fullmatch(text)
        kept = _hashed(here, hashed, key) if hashed else text
        terms.append((kept, _plain_term(here, kept)))
    return terms


def _plain_term(place: _Place, term: str) -> str:
    """The term as cronsim takes it and means it as we do; empty for one that it does not know."""
    if place.field is _DAY and term in ("L", "LW"):
        return term
    if place.field is _DAY and (nearest := _NEAREST.fullmatch(term)):
        place.number(nearest[1])
        return ""
    if place.field is _WEEKDAY and (last := _LAST.fullmatch(term)):
        return f"{place.number(last[1])}L"
    if place.field is _WEEKDAY and (nth := _NTH.fullmatch(term)):
        if not 1 <= int(nth[2]) <= 5:
            raise place.refusal("a week from #1 to #5")
        return f"{place.number(nth[1])}#{int(nth[2])}"
    found = _RANGE.fullmatch(term)
    if found is None:
        raise place.refusal(f"{place.field.allowed}, a range, or either with a step,")
    return _plain_range(place, found["base"], found["step"])


def _plain_range(place: _Place, base: str, stated: str | None) -> str:
    step = place.step(stated)
    if base == "*":
        return base if step == 1 else f"*/{step}"
    if "-" not in base:
        number = place.number(base)
        if stated is not None:
            # Quartz starts at 5 here, Vixie refuses it, and some take the 5 alone.
            raise place.refusal(f"a range before the step, such as {number}-{place.field.last}/{step},")
        return str(number)
    return ",".join(map(str, _range(place.field, *place.bounds(base), step)))


def _range(field: Field, low: int, high: int, step: int) -> list[int]:
    """Every step-th value from low to high, past the end of the cycle where high is the lower."""
    if low <= high:
        return list(range(low, high + 1, step))
    return [*range(low, field.last + 1), *range(field.low, high + 1)][::step]


def _hashed(place: _Place, found: re.Match[str], key: str | None) -> str:
    """The value or values that this key has, always the same and unlike those of other keys."""
    if not isinstance(key, str):
        raise place.refusal("a schedule's name to go with H")
    field = place.field
    low, high = place.bounds(found["range"]) if found["range"] else (field.low, field.hashed)
    step = place.step(found["step"])
    if low > high or step > high - low + 1:
        raise place.refusal("a range that rises and is at least as long as the step")
    if found["step"] is None:
        return str(low + _digest(key, field) % (high - low + 1))
    start = low + _digest(key, field) % step
    return f"{start}-{high}/{step}"


def _digest(key: str, field: Field) -> int:
    # Each field is hashed on its own: else all that share a minute would share the hour too.
    digest = blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8, person=field.name.encode())
    return int.from_bytes(digest.digest(), "big")


def _refusal(expression: str, expected: str, column: int) -> InvalidArgument:
    return InvalidArgument("cron", expression, f"{expected} at column {column}")
