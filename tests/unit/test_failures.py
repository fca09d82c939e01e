"""Whatever was raised becomes a value that any store can keep."""

from __future__ import annotations

import pytest

from mainspring.worker.outcomes import MESSAGE_LIMIT, TRACEBACK_LIMIT, failure_of, timeout_failure


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError


class Nested:
    class Inner(Exception):
        pass


def _raised(error: BaseException) -> BaseException:
    try:
        raise error
    except BaseException as caught:
        return caught


def test_a_builtin_goes_by_its_plain_name_and_others_by_their_modules() -> None:
    assert failure_of(ValueError("x")).type == "ValueError"
    assert failure_of(Nested.Inner()).type == f"{__name__}.Nested.Inner"


def test_an_exception_without_a_message_to_be_had_still_has_a_type_and_a_traceback() -> None:
    failure = failure_of(_raised(Mute()))

    assert failure.type.endswith("Mute")
    assert "RuntimeError" in failure.message
    assert "_raised" in failure.traceback


@pytest.mark.parametrize("text", ["a\x00b", "\ud800", "\x00" * 10, "ü" * 10])
def test_no_text_is_left_that_a_database_refuses(text: str) -> None:
    failure = failure_of(_raised(ValueError(text)))

    for each in (failure.message, failure.traceback):
        assert "\x00" not in each
        each.encode("utf-8")


def test_long_texts_are_cut_and_keep_their_end() -> None:
    failure = failure_of(_raised(ValueError("x" * 100_000 + "the end")))

    assert len(failure.message) <= MESSAGE_LIMIT + 1
    assert len(failure.traceback) <= TRACEBACK_LIMIT + 1
    assert failure.message.endswith("the end")


def test_causes_are_in_the_traceback() -> None:
    try:
        try:
            raise KeyError("first")
        except KeyError as first:
            raise ValueError("second") from first
    except ValueError as second:
        failure = failure_of(second)

    assert "first" in failure.traceback and "second" in failure.traceback


def test_an_exception_that_was_never_raised_is_fine() -> None:
    assert failure_of(ValueError("x"), frames_to_hide=5).message == "x"


def test_a_timeout_says_how_long_it_was() -> None:
    assert timeout_failure(1.5).message == "the handler did not end within its timeout of 1.5 s"
