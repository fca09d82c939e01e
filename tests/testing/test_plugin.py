"""The pytest plugin, in pytest runs of its own."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[2]
PLUGIN = ("-p", "pytest_mainspring", "-p", "no:randomly", "-p", "no:cacheprovider")
SHOP = """
from mainspring import Mainspring

app = Mainspring("sqlite:///never_made.db")
sent = []

@app.task
def send(to: str) -> None:
    sent.append(to)
"""
CONFTEST = """
import pytest
import shop

@pytest.fixture
def mainspring_app():
    return shop.app
"""


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makepyfile(shop=SHOP)
    pytester.makeconftest(CONFTEST)
    pytester.syspathinsert()
    return pytester


def test_the_fixture_is_the_harness(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        from shop import send, sent

        def test_sent(mainspring):
            send.enqueue("ada")
            mainspring.assert_enqueued(send, args=["ada"], count=1)
            mainspring.run_until_idle()
            assert sent == ["ada"]

        def test_each_test_has_a_database_of_its_own(mainspring):
            assert mainspring.enqueued() == [] == mainspring.ran()
        """
    )

    project.runpytest_subprocess(*PLUGIN).assert_outcomes(passed=2)
    assert not (project.path / "never_made.db").exists()


def test_a_failed_assertion_shows_what_waits_and_not_our_code(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        from shop import send

        def test_sent(mainspring):
            send.enqueue("bob")
            mainspring.assert_enqueued(send, args=["ada"])
        """
    )

    result = project.runpytest_subprocess(*PLUGIN)

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["*expected at least one job of send*found 0", "*job 1: args=*bob*other: args"]
    )
    result.stdout.no_fnmatch_line("*def assert_enqueued*")


def test_what_a_handler_raises_is_shown_where_the_user_wrote_it(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        from shop import app

        @app.task
        def broken():
            raise ValueError("boom")

        def test_it(mainspring):
            broken.enqueue()
            mainspring.run_until_idle()
        """
    )

    result = project.runpytest_subprocess(*PLUGIN)

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [">*mainspring.run_until_idle()", ">*raise ValueError*", "E*ValueError: boom"]
    )
    result.stdout.no_fnmatch_line("*/mainspring/*")


def test_without_an_app_the_fixture_says_what_to_do(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_it(mainspring): ...")

    result = pytester.runpytest_subprocess(*PLUGIN)

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*mainspring_app: override this fixture in conftest.py*"])


def test_a_suite_that_does_not_use_it_does_not_load_it(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import sys

        def test_it():
            assert "pytest_mainspring" in sys.modules
            assert [name for name in sys.modules if name.split(".")[0] == "mainspring"] == []
        """
    )

    pytester.runpytest_subprocess(*PLUGIN).assert_outcomes(passed=1)


def test_pytest_finds_it_and_the_wheel_has_it() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

    # The same name as the module's: -p pytest_mainspring is then no second registration.
    assert project["project"]["entry-points"]["pytest11"] == {"pytest_mainspring": "pytest_mainspring"}
    assert "src/pytest_mainspring" in project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
