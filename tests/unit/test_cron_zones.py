"""Time zones by name."""

from __future__ import annotations

import zoneinfo
from pathlib import Path

import pytest

from mainspring.errors import InvalidArgument
from mainspring.triggers import zones
from mainspring.triggers.zones import tzdata_version, zone


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A system whose zone files have the stated version."""

    def install(line: str, name: str = "tzdata.zi") -> None:
        (tmp_path / name).write_text(line)
        monkeypatch.setattr(zoneinfo, "TZPATH", (str(tmp_path),))
        zones.tzdata_version.cache_clear()
        zones._load.cache_clear()

    yield install
    zones.tzdata_version.cache_clear()
    zones._load.cache_clear()


@pytest.mark.parametrize(
    "name",
    ["UTC", "Europe/Kyiv", "Asia/Kathmandu", "Europe/Kiev", "Etc/GMT+5", "Antarctica/Troll", "America/Nuuk",
     "America/Argentina/Buenos_Aires", "America/Port-au-Prince"],
)  # fmt: skip
def test_iana_names_are_taken(name: str) -> None:
    assert zone(name).key == name


@pytest.mark.parametrize(
    "name",
    ["", "localtime", "posixrules", "Factory", "right/UTC", "posix/UTC", "tzdata.zi", "leapseconds", "Europe",
     "Mars/Phobos", "GMT+25", "+05:30", "Z", "America/New_York ", "US/Pacific-New", "SystemV/EST5", "Local",
     "EST", "MST", "EST5EDT", "../../etc/passwd", ".", "..", "/etc/localtime", "America//New_York",
     "America/New_York/", "file:///etc/localtime", "America/New_York\n", "\u0410merica/New_York",
     "Europe/Berlin\0", "a" * 1000, "__init__.py", None, 0, [], {}],
)  # fmt: skip
def test_anything_else_is_refused_by_name(name: object) -> None:
    with pytest.raises(InvalidArgument) as refusal:
        zone(name)  # type: ignore[arg-type]

    assert refusal.value.field == "tz"


def test_a_legacy_name_is_refused_with_the_place_to_write_instead() -> None:
    with pytest.raises(InvalidArgument, match="America/New_York"):
        zone("EST5EDT")


def test_the_wheel_wins_over_an_older_system(system) -> None:
    system("# version 2019a\n")

    assert tzdata_version().endswith("(wheel)")
    assert zone("Europe/Berlin").key == "Europe/Berlin"


def test_a_newer_system_wins_over_the_wheel(system) -> None:
    system("# version 2999a\n")

    assert tzdata_version() == "2999a (system)"


def test_a_system_may_state_its_version_in_a_file_of_its_own(system) -> None:
    system("2998b\n", "+VERSION")

    assert tzdata_version() == "2998b (system)"


@pytest.mark.parametrize("line", ["", "garbage\n", "\u00e9\n"])
def test_a_system_that_does_not_say_its_version_counts_as_older(system, line: str) -> None:
    system(line)

    assert tzdata_version().endswith("(wheel)")
