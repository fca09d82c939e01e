"""Words of a program's call, and the arguments that fill them."""

from __future__ import annotations

import pytest

from mainspring.errors import InvalidArgument
from mainspring.targets.shell import Argv


def filled(words: list[str], **values: object) -> list[str]:
    return Argv(words, "argv").filled(values, "backup")


def test_arguments_fill_their_places_and_are_never_split() -> None:
    words = filled(["tar", "cf", "/b/{name}.tar", "{{x}}", "{a}-{a}"], name="my files; id", a="$(id)")

    assert words == ["tar", "cf", "/b/my files; id.tar", "{x}", "$(id)-$(id)"]


def test_the_names_of_arguments_are_the_parameters() -> None:
    assert Argv(["cp", "{source}", "{target}/{source}"], "argv").names == ("source", "target")


@pytest.mark.parametrize(("value", "word"), [(3, "3"), (1.5, "1.5"), ("", ""), ("a\nb", "a\nb"), ("ž", "ž")])
def test_text_and_numbers_are_taken_as_they_are(value: object, word: str) -> None:
    assert filled(["echo", "{x}"], x=value) == ["echo", word]


@pytest.mark.parametrize("value", [None, True, ["a"], {"a": 1}, "a\0b", "a" * 100_001])
def test_other_values_are_refused(value: object) -> None:
    with pytest.raises(InvalidArgument, match=r"backup\.x"):
        filled(["echo", "{x}"], x=value)


@pytest.mark.parametrize("value", ["-rf", "--checkpoint-action=exec=id", "-", -1])
def test_a_value_that_would_be_read_as_an_option_is_refused(value: object) -> None:
    with pytest.raises(InvalidArgument, match="begins with -"):
        filled(["tar", "{x}"], x=value)


def test_after_two_dashes_or_inside_a_word_it_may_begin_with_one() -> None:
    assert filled(["rm", "--", "{x}"], x="-rf") == ["rm", "--", "-rf"]
    assert filled(["tar", "--file={x}"], x="-rf") == ["tar", "--file=-rf"]


@pytest.mark.parametrize(
    "wrong",
    [
        "ls -l", [], [""], ["{program}"], ["bin/tool"], ["./tool"], ["ls", None], ["ls", "a\0b"], ["ls",
        "{"], ["ls", "}"], ["ls", "{}"], ["ls", "{0}"], ["ls", "{a.b}"], ["ls", "{a!r}"], ["ls",
        "{a:>5}"], ["ls", "{_a}"], ["ls"] * 1001, None, 5,
    ],
)  # fmt: skip
def test_words_that_cannot_be_read_are_refused(wrong: object) -> None:
    with pytest.raises(InvalidArgument):
        Argv(wrong, "argv")  # type: ignore[arg-type]
