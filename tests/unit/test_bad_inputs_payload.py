"""Payloads and names that have broken schedulers: one verdict, in Python and at a shell, soon and in
little room. In the data, `text` is JSON as it comes in, `value` is what it means, `says` is a part of
the message, and `exception` is why we take what others advise to refuse."""

from __future__ import annotations

import base64
import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from mainspring import Mainspring
from mainspring.cli.main import cli
from mainspring.errors import InvalidArgument, shown
from mainspring.tasks.checks import is_text
from mainspring.tasks.payload import NotJSON, decode, read_json
from tests.support.budget import within_cpu, within_memory

DATA = Path(__file__).parents[1] / "data"
PAYLOADS = json.loads((DATA / "bad_inputs_payload.json").read_text(encoding="utf-8"))["payload"]
NAMES = json.loads((DATA / "bad_inputs_name.json").read_text(encoding="utf-8"))["name"]
CPU_SECONDS, BYTES = 0.05, 5_000_000
APP = """
from mainspring import Mainspring

app = Mainspring()

@app.task
def take(value): ...
"""

app = Mainspring("sqlite://:memory:")


@app.task
def take(value: Any) -> None: ...


def cases(every: list[dict[str, Any]], verdict: str) -> list[Any]:
    return [pytest.param(case, id=case["id"]) for case in every if case["expect"] == verdict]


# There is nothing but text to type: null and [] are for Python alone.
TYPED_NAMES = [each for each in cases(NAMES, "reject") if isinstance(each.values[0].get("input", ""), str)]


def text_of(case: dict[str, Any]) -> str | bytes:
    """The case as the value of one keyword."""
    if "b64" in case:
        return b'{"value":' + base64.b64decode(case["b64"]) + b"}"
    if "gen" in case:
        return f'{{"value":{repeated(case["gen"])}}}'
    return f'{{"value":{case["text"]}}}'


def repeated(parts: dict[str, Any]) -> str:
    return str(parts["prefix"] + parts["unit"] * parts["times"] + parts["suffix"])


def sent(text: str | bytes) -> None:
    value = read_json(text, "--kwargs", expected="a JSON object")
    take.job(**value)  # type: ignore[arg-type]


def refusal(call: Callable[[], object]) -> str:
    with pytest.raises(InvalidArgument) as refused:
        call()
    message = str(refused.value)
    assert len(message) < 600
    assert message.isprintable()
    return message


def within_bounds(call: Callable[[], Any]) -> Any:
    """Its answer; it is made twice, for what counts memory takes time."""
    with within_cpu(CPU_SECONDS):
        call()
    with within_memory(BYTES):
        return call()


@pytest.fixture
def enqueue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """`mainspring enqueue` in a folder with an app in it."""
    (tmp_path / "intake.py").write_text(APP, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "intake", raising=False)

    def invoke(*words: str) -> Result:
        return CliRunner().invoke(cli, ["enqueue", "-A", "intake.py", "take", *words])

    assert invoke("--kwargs", "{").exit_code == 2  # loads what is loaded once
    assert invoke("value=1", "--queue", "-").exit_code == 2
    return invoke


def assert_told(answer: Result, message: str) -> None:
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert answer.stderr == f"Error: {' '.join(message.split())}\n"


def assert_no_text(answer: Result, case: dict[str, Any]) -> None:
    assert (answer.exit_code, answer.stdout) == (2, ""), case["id"]
    assert re.match(r"Error: argument \d+: expected text in UTF-8, got ", answer.stderr), case["id"]


@pytest.mark.parametrize("case", cases(PAYLOADS, "reject"))
def test_a_payload_is_refused_in_python(case: dict[str, Any]) -> None:
    text = text_of(case)

    message = within_bounds(lambda: refusal(lambda: sent(text)))

    assert case["says"] in message


@pytest.mark.parametrize("case", cases(PAYLOADS, "reject"))
def test_a_payload_is_refused_with_the_same_words_at_a_shell(
    case: dict[str, Any], enqueue: Callable[..., Result], tmp_path: Path
) -> None:
    text = os.fsdecode(text_of(case))
    message = refusal(lambda: sent(text))

    answer = within_bounds(lambda: enqueue("--kwargs", text))

    if is_text(text.replace("\0", "")):
        assert_told(answer, message)
    else:  # no argument of any command may be that: it is refused before a field is looked at
        assert_no_text(answer, case)
    assert not (tmp_path / "mainspring.db").exists()


@pytest.mark.parametrize("case", cases(PAYLOADS, "accept"))
def test_a_payload_is_taken_and_comes_back_as_it_was(case: dict[str, Any]) -> None:
    job = within_bounds(lambda: take.job(case["value"]))
    text = json.dumps({"value": case["value"]})

    assert decode(job.payload) == ([case["value"]], {})
    assert read_json(text, "--kwargs") == {"value": case["value"]}


def test_payloads_are_taken_at_a_shell_and_shown_as_they_were(enqueue: Callable[..., Result]) -> None:
    taken = [case["value"] for case in PAYLOADS if case["expect"] == "accept"]
    answers = [enqueue("--kwargs", json.dumps({"value": value}), "--json") for value in taken]
    shows = [
        CliRunner().invoke(cli, ["jobs", "show", str(json.loads(answer.stdout)["id"]), *more])
        for answer in answers
        for more in (["--json"], [])
    ]

    assert [show.exit_code for show in shows] == [0] * len(shows)
    assert [json.loads(show.stdout)["kwargs"] for show in shows[::2]] == [{"value": v} for v in taken]
    assert all(line.isprintable() for show in shows for line in show.stdout.splitlines())


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(lambda: "x" * 100_000_000, id="text"),
        pytest.param(lambda: {"a": [{"b": "x" * 100_000_000}]}, id="text inside"),
        pytest.param(lambda: {"x" * 100_000_000: 1}, id="key"),
        pytest.param(lambda: [0] * 10_000_000, id="list"),
        pytest.param(lambda: (0,) * 10_000_000, id="tuple"),
        pytest.param(lambda: b"x" * 100_000_000, id="bytes"),
        pytest.param(lambda: laughs(9), id="a list of lists of lists"),
        pytest.param(lambda: {str(number): number for number in range(300_000)}, id="dict"),
    ],
)
def test_values_of_any_size_are_refused_before_they_are_copied(value: Callable[[], object]) -> None:
    big = value()

    assert "at most 262144 bytes" in within_bounds(lambda: refusal(lambda: take.job(big)))


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(lambda: "x" * 100_000_000, id="text"),
        pytest.param(lambda: [["x" * 100_000_000]], id="text inside"),
        pytest.param(lambda: [0] * 10_000_000, id="list"),
        pytest.param(lambda: 10**5000, id="integer"),
        pytest.param(lambda: {1: [10**5000]}, id="integer inside"),
        pytest.param(lambda: laughs(9), id="a list of lists of lists"),
    ],
)
def test_a_message_shows_little_of_a_big_value(value: Callable[[], object]) -> None:
    big = value()

    assert len(within_bounds(lambda: shown(big))) < 200


def test_a_value_that_cannot_be_shown_is_named() -> None:
    class Shy:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    assert shown(Shy()) == "<Shy>"
    assert shown([1, ("a", {"b": {2}}), None, 1.5]) == "[1, ('a', {'b': {2}}), None, 1.5]"


@pytest.mark.parametrize("text", ["NaN", "Infinity", "Ada", "01", "{'a':1}", ""])
def test_a_word_that_is_no_json_may_be_meant_as_it_stands(text: str) -> None:
    with pytest.raises(NotJSON):
        read_json(text, "value")


@pytest.mark.parametrize("text", ["9" * 30, '{"a":1,"a":2}', "1e400", "[" * 100_000])
def test_a_value_that_is_json_but_refused_is_not_taken_for_text(
    text: str, enqueue: Callable[..., Result]
) -> None:
    answer = enqueue(f"value={text}")

    assert answer.exit_code == 2
    assert answer.stderr.startswith("Error: value: expected ")


@pytest.mark.parametrize("case", cases(NAMES, "reject"))
def test_a_name_is_refused_wherever_one_is_given(case: dict[str, Any]) -> None:
    name = repeated(case["gen"]) if "gen" in case else case["input"]
    other = Mainspring("sqlite://:memory:")
    given = {
        "queue": lambda: take.using(queue=name if name is not None else 5),  # type: ignore[arg-type]
        "task.name": lambda: other.task(name=name if name is not None else 5)(lambda: None),  # type: ignore[arg-type]
        "schedule.name": lambda: other.schedule(name, take, every="1h", args=[1]),  # type: ignore[arg-type]
    }

    for field, call in given.items():
        assert within_bounds(lambda call=call: refusal(call)).startswith(f"{field}: expected 1 to 200 ASCII")


@pytest.mark.parametrize("case", TYPED_NAMES)
def test_a_name_is_refused_with_the_same_words_at_a_shell(
    case: dict[str, Any], enqueue: Callable[..., Result]
) -> None:
    name = repeated(case["gen"]) if "gen" in case else case["input"]
    message = refusal(lambda: take.using(queue=name))

    answer = within_bounds(lambda: enqueue(f"--queue={name}", "value=1"))

    assert_told(answer, message)


@pytest.mark.parametrize("case", cases(NAMES, "accept"))
def test_a_name_is_taken(case: dict[str, Any]) -> None:
    name = repeated(case["gen"]) if "gen" in case else case["input"]

    assert take.using(queue=name).queue == name
    assert Mainspring("sqlite://:memory:").task(name=name)(lambda: None).name == name


def test_every_name_that_goes_against_advice_says_why() -> None:
    taken = [case for case in NAMES if "exception" in case]

    assert {case["id"] for case in taken} == {"name-010", "name-013", "name-026", "name-038"}
    assert all(case["expect"] == "accept" and case["exception"] for case in taken)


def laughs(levels: int) -> list[Any]:
    value: list[Any] = ["x"] * 9
    for _ in range(levels):
        value = [value] * 9
    return value
