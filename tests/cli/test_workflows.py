"""Workflows from the command line, on both stores: shown as text and as JSON, drawn, and steered."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from mainspring.model.job import Failure
from mainspring.model.run import Verdict
from mainspring.model.workflow import NodeKind, Param, StepResult, When
from mainspring.store.opener import open_store
from mainspring.testing.clock import ManualClock
from tests.cli.conftest import Shell
from tests.support.desk import SECOND, Desk
from tests.support.flows import Story, definition

BAD_ROW = Failure(type="ValueError", message="bad \x1b[31m", traceback="line 9")
ETL = definition(
    "etl",
    extract={"args": (Param(name="day"),), "max_attempts": 2},
    parts={"kind": NodeKind.MAP, "over": StepResult(step=0), "parents": ["extract"]},
    clean={"takes": ["extract"]},
    load={"takes": ["parts", "clean"]},
    alarm={"parents": ["load"], "when": When.FAILURE},
)
SHOWN = """\
workflow    {id}  etl, version 1
state       failed
params      {{"day": "monday"}}
started at  2020-01-01 00:00:00Z
ended at    2020-01-01 00:00:20Z
took        20s
steps       3 succeeded, 1 failed, 1 skipped

     STEP     STATE      RUNS  TOOK  WORKER    NOTE
✓    extract  succeeded  2     6.0s  worker-7
├─╮
✗ │  parts    failed           8.0s            3 items: 2 succeeded, 1 failed; [1] ValueError: bad \\x1b[31m
│ ✓  clean    succeeded  1     4.0s  worker-7
├─╯
–    load     skipped                          a step before it failed
✓    alarm    succeeded  1     1.0s  worker-7

TIMELINE  00:00:00                                            00:00:20  TOOK
extract   ▒▒▒▒▒▒████████████                                            6.0s, 2 runs
parts[0]                    ████████████                                4.0s
parts[1]                    ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒                    8.0s
parts[2]                    ████████████████████████                    8.0s
clean                       ████████████                                4.0s
alarm                                               ···············███  1.0s
          · waited  █ ran  ▒ ran in vain
"""
APP = """
from mainspring import Mainspring

app = Mainspring()


@app.task
def t() -> None: ...


@app.task
def u() -> None: ...


flow = app.workflow("declared")
flow.step(u, name="two", after=flow.step(t, name="one"))
"""


@pytest.fixture
def desk(database_url: str, run: Any) -> Iterator[Desk]:
    """The same store as the shell's, at a fixed moment of the past."""
    clock = ManualClock(datetime(2020, 1, 1, tzinfo=UTC))
    store = open_store(database_url, clock=clock)
    try:
        yield Desk(store, clock, run)
    finally:
        run(store.close())


def begun(desk: Desk) -> Story:
    """Extracted in two runs, with three parts and a clean running."""
    story = Story(desk, ETL, {"day": "monday"})
    story.claimed()
    desk.advance(2 * SECOND)
    story.end("extract", Verdict.FAILED, took=2 * SECOND)
    story.claimed()
    desk.advance(4 * SECOND)
    story.end("extract", result=b"[10,20,30]", took=4 * SECOND)
    story.claimed()
    return story


def failed(desk: Desk) -> Story:
    story = begun(desk)
    desk.advance(4 * SECOND)
    story.end("clean", took=4 * SECOND)
    story.end("parts", item=0, result=b'"ten"', took=4 * SECOND)
    desk.advance(4 * SECOND)
    story.end("parts", Verdict.DEAD, item=1, failure=BAD_ROW, took=8 * SECOND)
    story.end("parts", item=2, took=8 * SECOND)
    desk.advance(5 * SECOND)
    story.claimed()
    desk.advance(SECOND)
    story.end("alarm", took=SECOND)
    return story


def test_a_workflow_is_shown_with_its_graph_and_its_timeline(shell: Shell, desk: Desk) -> None:
    story = failed(desk)

    answer = shell("workflows", "show", str(story.id), PYTHONIOENCODING="utf-8")

    assert answer.code == 0, answer.err
    assert answer.out == SHOWN.format(id=story.id)


def test_what_undoes_steps_is_told_only_where_it_matters(shell: Shell, desk: Desk) -> None:
    graph = definition(
        book={},
        pay={"parents": ["book"]},
        end={"kind": NodeKind.BARRIER, "parents": ["pay"], "task": ""},
        unbook={"kind": NodeKind.UNDO, "of": 0, "parents": ["end"], "takes": ["book"]},
    )
    story = Story(desk, graph)
    number = str(story.id)
    assert "1 step that would undo another is not needed so far\n" in shell("workflows", "show", number).out
    story.end("book")
    story.end("pay", Verdict.DEAD)

    out = shell("workflows", "show", number).out

    assert re.search(r"^ +UNDO +OF +STATE .*\n. unbook +book +ready", out, re.MULTILINE)


def test_signs_that_cannot_be_written_are_letters(shell: Shell, desk: Desk) -> None:
    story = failed(desk)

    answer = shell("workflows", "show", str(story.id), PYTHONIOENCODING="ascii")

    assert answer.code == 0, answer.err
    assert answer.out.isascii()
    assert "\n+-.\nX |  parts    failed" in answer.out
    assert "\nextract   xxxxxx############  " in answer.out


def test_a_workflow_is_a_document_too(shell: Shell, desk: Desk) -> None:
    story = failed(desk)

    view = shell("workflows", "show", str(story.id), "--json").data

    assert (view["id"], view["name"], view["state"], view["ended_at"]) == (
        story.id,
        "etl",
        "failed",
        "2020-01-01T00:00:20+00:00",
    )
    nodes = {each["name"]: each for each in view["nodes"]}
    assert nodes["parts"]["items"]["counts"] == {"succeeded": 2, "failed": 1}
    assert nodes["load"]["parents"] == ["parts", "clean"]
    assert {"source": "clean", "target": "load"} in view["edges"]
    assert [each["verdict"] for each in view["timeline"][0]["attempts"]] == ["failed", "succeeded"]


def test_one_step_is_shown_with_its_runs_inputs_and_output(shell: Shell, desk: Desk) -> None:
    story = failed(desk)

    def shown(*words: str) -> str:
        answer = shell("workflows", "show", str(story.id), *words)
        assert answer.code == 0, answer.err
        return answer.out

    extract = shown("--step", "extract")
    assert f"step         extract of workflow {story.id}\n" in extract
    assert 'args         ["monday"]\noutput       [10, 20, 30]\n' in extract
    assert (
        "\n1    failed     2020-01-01 00:00:00Z  2020-01-01 00:00:02Z  2.0s  worker-7  ValueError: boom\n"
        in extract
    )
    assert "\nValueError: boom\n  line 1\n  line 2\n" in extract
    parts = shown("--step", "parts", "--first", "1", "--most", "1")
    assert parts.splitlines()[-1].split()[:5] == ["1", str(story.step("parts", 1).id), "failed", "1", "8.0s"]
    assert "\x1b" not in parts
    item = shown("--step", "parts", "--item", "0")
    assert f"step         parts[0] of workflow {story.id}\n" in item
    assert "args         [10]\noutput       ten\n" in item
    whole = shell("workflows", "show", str(story.id), "--step", "parts", "--json").data
    assert [each["output"] for each in whole["items"]] == ["ten", None, None]


def test_a_step_or_an_item_that_is_not_there_is_refused(shell: Shell, desk: Desk) -> None:
    words = "workflows", "show", str(failed(desk).id)

    for more, said in (
        (["--step", "lod"], "a step of workflow"),
        (["--step", "parts", "--item", "3"], "3 are there"),
        (["--item", "1"], "expected with --step"),
    ):
        answer = shell(*words, *more)
        assert (answer.code, said in answer.err) == (2, True), answer.err
    missing = shell("workflows", "show", "987654")
    assert (missing.code, missing.err) == (1, "Error: workflow: there is none with the id 987654\n")
    assert "the number of a workflow" in shell("workflows", "show", "etl").err


def test_workflows_are_listed_newest_first(shell: Shell, desk: Desk) -> None:
    assert shell("workflows", "list").err.startswith("no workflows in ")
    old = failed(desk)
    new = Story(desk, definition("other", a={}))

    table = shell("workflows", "list").out.splitlines()

    assert [line.split()[:4] for line in table[1:]] == [
        [str(new.id), "other", "1", "running"],
        [str(old.id), "etl", "1", "failed"],
    ]
    for words in (["--name", "etl"], ["--state", "failed"], ["--before", str(new.id)]):
        assert [each["id"] for each in shell("workflows", "list", "--json", *words).data] == [old.id]
    assert len(shell("workflows", "list", "--json", "--limit", "1").data) == 1
    assert shell("workflows", "list", "--state", "tired").code == 2


def test_a_graph_is_drawn_of_one_on_record(shell: Shell, desk: Desk) -> None:
    story = failed(desk)

    by_id = shell("workflows", "graph", str(story.id), PYTHONIOENCODING="utf-8").out
    by_name = shell("workflows", "graph", "etl", PYTHONIOENCODING="utf-8").out

    assert by_id.splitlines()[2:5] == [
        "✓    extract  succeeded  t",
        "├─╮",
        "✗ │  parts    failed     t     for each item",
    ]
    assert by_name.splitlines()[-1] == "○    alarm    t     runs on failure"
    mermaid = shell("workflows", "graph", str(story.id), "--format", "mermaid").out
    assert mermaid.startswith('flowchart TD\n    n0("extract<br/>succeeded")\n')
    assert shell("workflows", "graph", "etl", "--format", "dot").out.startswith('digraph "etl" {\n')
    document = shell("workflows", "graph", "etl", "--json").data
    assert [each["layer"] for each in document["nodes"]] == [0, 1, 1, 2, 3]
    assert shell("workflows", "graph", "nothing").code == 1


def test_a_graph_is_drawn_of_one_that_is_declared(shell: Shell) -> None:
    shell.write("flow.py", APP)

    answer = shell("workflows", "graph", "declared", "-A", "flow.py")

    assert answer.code == 0, answer.err
    assert [line.split()[1:] for line in answer.out.splitlines()[2:]] == [["one", "t"], ["two", "u"]]


def test_a_wide_graph_names_parents_instead_of_drawing_lines(shell: Shell, desk: Desk) -> None:
    middle = {f"b{each}": {"parents": ["a"]} for each in range(12)}
    graph = definition("wide", a={}, **middle, z={"parents": list(middle)})
    story = Story(desk, graph)

    out = shell("workflows", "show", str(story.id), PYTHONIOENCODING="utf-8").out

    assert re.search(r"^○ b3 +waiting +after a$", out, re.MULTILINE)
    assert "after b0, b1, b2, b3, b4 and 7 more\n" in out


def test_a_workflow_is_paused_resumed_and_cancelled(shell: Shell, desk: Desk) -> None:
    story = begun(desk)
    number = str(story.id)
    name = f"workflow {number} (etl)"

    paused = shell("workflows", "pause", number, "--note", "disk is full", "--by", "ann")
    again = shell("workflows", "pause", number)
    shown = shell("workflows", "show", number).out
    resumed = shell("workflows", "resume", number, "--by", "ann", "--json")
    cancelled = shell("workflows", "cancel", number, "--by", "ann", "--note", "wrong day")
    refused = shell("workflows", "cancel", number)

    assert (paused.code, paused.out) == (0, f"{name} paused\n")
    assert (again.code, again.out) == (0, f"{name} is paused already; nothing was done\n")
    assert "state       running, paused\n" in shown
    assert " paused  ann  disk is full\n" in shown
    assert (resumed.code, resumed.data[0]["effect"]) == (0, "resumed")
    assert (cancelled.code, cancelled.out) == (0, f"{name} cancelled\n")
    assert (refused.code, refused.out) == (1, f"{name} was cancelled; nothing was done\n")
    orders = shell("workflows", "show", number, "--json").data["orders"]
    assert [(each["action"], each["author"], each["note"]) for each in orders] == [
        ("paused", "ann", "disk is full"),
        ("resumed", "ann", None),
        ("cancelled", "ann", "wrong day"),
    ]


def test_a_cancel_says_that_something_is_still_to_run_unless_it_is_now(shell: Shell, desk: Desk) -> None:
    story = Story(desk, definition(a={}, tidy={"parents": ["a"], "when": When.ALWAYS}))

    soft = shell("workflows", "cancel", str(story.id))
    now = shell("workflows", "cancel", str(story.id), "--now", "--json")

    assert "is being cancelled: what runs always or undoes steps is still to run" in soft.out
    assert (now.code, now.data[0]["state"]) == (0, "cancelled")


def test_failed_steps_are_retried_and_a_fork_starts_another(shell: Shell, desk: Desk) -> None:
    number = str(failed(desk).id)

    nothing = shell("workflows", "retry", number, "--step", "load")
    wrong = shell("workflows", "retry", number, "--step", "lod")
    forked = shell("workflows", "fork", number, "--from", "clean", "--json")
    retried = shell("workflows", "retry", number, "--step", "parts")

    assert (nothing.code, "has no failed step load" in nothing.out) == (1, True)
    assert (wrong.code, "extract, parts, clean, load, alarm" in wrong.err) == (2, True)
    assert forked.data["effect"] == "forked"
    assert shell("workflows", "show", str(forked.data["new_id"]), "--json").data["forked_from"] == int(number)
    assert (retried.code, retried.out) == (0, f"workflow {number} (etl) retried: parts\n")
    assert shell("workflows", "fork", number).code == 2


def test_jobs_and_dead_letters_name_their_workflow(shell: Shell, desk: Desk) -> None:
    story = failed(desk)
    root, part = str(story.id), str(story.step("parts", 1).id)

    assert f"workflow      etl, failed: `mainspring workflows show {root}`" in shell("jobs", "show", root).out
    assert f"belongs to    step parts[1] of workflow {root} (etl)" in shell("jobs", "show", part).out
    view = shell("jobs", "show", part, "--json").data
    assert (view["workflow_id"], view["step"], view["item"]) == (story.id, "parts", 1)
    assert "workflow_id" not in shell("jobs", "show", root, "--json").data
    assert shell("dead", "show", part, "--json").data["workflow_id"] == story.id
    advice = f"`mainspring workflows retry {root}`"
    one, many = shell("dead", "replay", part), shell("dead", "replay", "--all")
    assert (one.code, advice in one.out) == (1, True)
    assert (many.code, many.out) == (0, "0 replayed\n")
    assert f"2 left, for they belong to workflow {root}: run them again with {advice}" in many.err
    counted = json.loads(shell("dead", "replay", "--all", "--json").out)
    assert (counted["replayed"], counted["left"], counted["workflows"]) == (0, 2, [story.id])
    assert advice in shell("why", "job", part).out


def test_a_workflow_is_listed_as_a_running_job_and_says_what_it_waits_for(shell: Shell, desk: Desk) -> None:
    story = begun(desk)

    listed = {each["id"]: each["state"] for each in shell("jobs", "list", "--json").data}
    said = shell("why", "job", str(story.id)).out

    assert listed[story.id] == "running"
    assert "it waits for parts (0 of 3 items have ended), clean (running)" in said
