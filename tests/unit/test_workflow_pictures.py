"""The picture and the timeline of a workflow, computed from what is on record."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from mainspring.admin.workflows.gantt import WHOLE, gantt
from mainspring.admin.workflows.graph import Edge
from mainspring.admin.workflows.picture import DRAWN, picture
from mainspring.admin.workflows.views import Attempt, Bar, ItemsView, NodeView, WorkflowView
from mainspring.model.workflow import Cause, NodeKind, When, WorkflowState

AT = datetime(2030, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def _node(name: str, state: str = "waiting", **fields: Any) -> NodeView:
    given: dict[str, Any] = dict.fromkeys(
        ("condition", "undoes", "cause", "worker", "released_at", "started_at", "finished_at", "error")
    )
    given |= {"kind": NodeKind.STEP, "task": "t", "when": When.SUCCESS, "parents": (), "layer": 0, "waits": 0}
    given |= {"job_id": 1, "inner": False, "kept": False, "attempts": 0, "max_attempts": 1}
    return NodeView(name=name, state=state, **{**given, **fields})


def _view(*nodes: NodeView, timeline: tuple[Bar, ...] = (), lasted: timedelta | None = None) -> WorkflowView:
    edges = tuple(Edge(source=parent, target=node.name) for node in nodes for parent in node.parents)
    return WorkflowView(
        id=1, name="w", version=1, state=WorkflowState.RUNNING, paused_at=None, stopping=None, started_at=AT,
        ended_at=None if lasted is None else AT + lasted, parent_id=None, forked_from=None, left=1, failed=0,
        as_of=AT + 100 * SECOND, params={}, counts={}, nodes=nodes, edges=edges,
        timeline=timeline, orders=(),
    )  # fmt: skip


def test_each_node_says_what_matters_of_it() -> None:
    items = ItemsView(total=1200, counts={"succeeded": 300, "failed": 6, "live": 894}, lost=())
    found = picture(
        _view(
            _node("plain", "succeeded", attempts=1),
            _node("again", "running", attempts=2, max_attempts=3),
            _node("map", "running", kind=NodeKind.MAP, items=items),
            _node("later", waits=2, parents=("plain", "map")),
            _node("never", "skipped", cause=Cause.CONDITION),
            _node("alarm", when=When.FAILURE, parents=("plain",)),
        )
    )

    assert found is not None
    assert [node.line for node in found.nodes] == [
        "t", "attempt 2 of 3", "300 of 1,200 items, 6 lost", "waits for 2 steps",
        "skipped: condition", "on failure",
    ]  # fmt: skip
    assert [(node.done, node.lost) for node in found.nodes if node.kind == "map"] == [(0.255, 0.005)]
    assert found.nodes[2].label == "map: running, 300 of 1,200 items, 6 lost"
    assert [(line.source, line.target, line.when) for line in found.lines] == [
        ("plain", "later", "success"), ("map", "later", "success"), ("plain", "alarm", "failure"),
    ]  # fmt: skip


def test_too_many_nodes_are_not_drawn() -> None:
    assert picture(_view(*(_node(f"n{number}") for number in range(DRAWN + 1)))) is None


def _bar(*spans: tuple[float, float | None, str], released: float = 0, state: str = "succeeded") -> Bar:
    attempts = tuple(
        Attempt(
            number=number,
            verdict=verdict,
            started_at=AT + start * SECOND,
            finished_at=None if end is None else AT + end * SECOND,
            worker="w1",
        )
        for number, (start, end, verdict) in enumerate(spans, 1)
    )
    ended = attempts[-1].finished_at if attempts else None
    return Bar(
        name="s", item=None, job_id=1, state=state, released_at=AT + released * SECOND,
        started_at=attempts[0].started_at if attempts else None, finished_at=ended, attempts=attempts,
    )  # fmt: skip


def test_strokes_lie_where_their_time_is() -> None:
    bar = _bar((25, 50, "failed"), (75, None, "running"), released=10, state="running")
    [line] = gantt(_view(timeline=(bar,))).lines

    assert [(stroke.kind, stroke.x, stroke.width) for stroke in line.strokes] == [
        ("queued", 100, 150), ("failed", 250, 250), ("running", 750, 250),
    ]  # fmt: skip
    assert line.strokes[0].sentence == "waited 15s"
    assert line.strokes[1].sentence == "attempt 1 by w1, failed, 25s"


def test_what_is_too_short_to_be_seen_is_still_there_and_inside() -> None:
    [line] = gantt(
        _view(timeline=(_bar((99.999, 100, "succeeded"), released=99.999),), lasted=100 * SECOND)
    ).lines

    [stroke] = line.strokes
    assert stroke.width > 0
    assert stroke.x + stroke.width <= WHOLE


def test_a_step_nobody_has_taken_waits_until_now() -> None:
    [line] = gantt(_view(timeline=(_bar(released=40, state="ready"),))).lines

    assert [(stroke.kind, stroke.x, stroke.width) for stroke in line.strokes] == [("queued", 400, 600)]


def test_nothing_has_begun() -> None:
    found = gantt(_view())

    assert found.lines == ()
    assert [tick.words for tick in found.ticks] == ["0", "20s", "40s", "1m", "1m20s"]
