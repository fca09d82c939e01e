"""Workflows in a store: begun, released step by step, ended once. Every test runs on both dialects."""

from __future__ import annotations

from datetime import timedelta

from mainspring.model.job import JobState
from mainspring.model.limit import LimitKey
from mainspring.model.run import Verdict
from mainspring.model.workflow import (
    Condition,
    Constant,
    Limiting,
    NodeKind,
    Param,
    StepResult,
    Stopping,
    When,
    WorkflowState,
)
from tests.support.desk import Desk
from tests.support.flows import Story, definition

DEAD = Verdict.DEAD


def test_a_chain_runs_link_by_link_and_passes_results_on(desk: Desk) -> None:
    drawn = definition(
        a={"args": (Param(name="day"),)}, b={"takes": ["a"]}, c={"takes": ["b"]}, returns=StepResult(step=2)
    )
    story = Story(desk, drawn, {"day": "monday"})
    assert story.states() == {"a": "live", "b": "waiting", "c": "waiting"}
    assert [claim.payload for claim in story.claimed().values()] == [b'{"args":["monday"]}']
    story.end("a", result=b'{"n":1}')
    assert [claim.payload for claim in story.claimed().values()] == [b'{"args":[{"n":1}]}']
    story.end("b")
    assert [claim.payload for claim in story.claimed().values()] == [b'{"args":[null]}']
    assert desk.job(story.id).state is JobState.RUNNING
    story.end("c", result=b"[1,2]")
    assert story.states() == {"a": "succeeded", "b": "succeeded", "c": "succeeded"}
    assert (story.workflow.state, story.workflow.left) == (WorkflowState.SUCCEEDED, 0)
    root = desk.job(story.id)
    assert (root.state, root.result) == (JobState.SUCCEEDED, b"[1,2]")
    assert [run.verdict for run in desk.runs(story.id)] == [Verdict.STARTED, Verdict.SUCCEEDED]


def test_a_join_is_released_once_by_the_last_of_its_parents(desk: Desk) -> None:
    drawn = definition(a={}, b={}, c={}, join={"takes": ["a", "b", "c"]})
    story = Story(desk, drawn)
    claims = story.claimed()
    assert len(claims) == 3
    for name in "abc":
        desk.end(claims[story.step(name).id], Verdict.SUCCEEDED, result=f'"{name}"'.encode())
    done = story.resolve()
    assert sum(each.released for each in done) == 1
    story.claims.clear()
    [join] = story.claimed().values()
    assert join.payload == b'{"args":["a","b","c"]}'
    assert join.workflow_id == story.id


def test_a_failure_skips_what_wants_success_and_runs_what_does_not(desk: Desk) -> None:
    drawn = definition(
        a={},
        b={"takes": ["a"]},
        c={"takes": ["b"]},
        alarm={"parents": ["c"], "when": When.FAILURE},
        fine={"parents": ["c"]},
        tidy={"takes": ["c"], "when": When.ALWAYS},
    )
    story = Story(desk, drawn)
    story.end("a", DEAD)
    assert story.states() == {
        "a": "failed",
        "b": "skipped:failure",
        "c": "skipped:failure",
        "alarm": "live",
        "fine": "skipped:failure",
        "tidy": "live",
    }
    assert story.claimed()[story.step("tidy").id].payload == b'{"args":[null]}'
    story.end("alarm")
    assert story.workflow.state is WorkflowState.RUNNING
    story.end("tidy")
    assert (story.workflow.state, story.workflow.failed) == (WorkflowState.FAILED, 1)
    root = desk.job(story.id)
    assert root.state is JobState.DEAD
    assert root.errors[-1].message == "failed: a"


def test_what_waits_for_failure_is_skipped_without_one(desk: Desk) -> None:
    story = Story(desk, definition(a={}, alarm={"parents": ["a"], "when": When.FAILURE}))
    story.end("a")
    assert story.states() == {"a": "succeeded", "alarm": "skipped:condition"}
    assert story.workflow.state is WorkflowState.SUCCEEDED


def test_a_map_spreads_out_over_a_result_and_its_join_gets_the_list(desk: Desk) -> None:
    drawn = definition(
        raw={},
        parts={
            "kind": NodeKind.MAP,
            "over": StepResult(step=0),
            "parents": ["raw"],
            "args": (Constant(value=9),),
        },
        total={"takes": ["parts"]},
    )
    story = Story(desk, drawn)
    story.end("raw", result=b"[10,20,30]")
    assert [claim.payload for claim in sorted(story.claimed().values(), key=lambda c: c.job_id)] == [
        b'{"args":[10,9]}',
        b'{"args":[20,9]}',
        b'{"args":[30,9]}',
    ]
    story.end("parts", item=2, result=b'"c"')
    story.end("parts", item=0, result=b'"a"')
    assert (story.step("parts").state, story.step("parts").waits) == ("live", 1)
    story.end("parts", item=1)
    assert story.claimed()[story.step("total").id].payload == b'{"args":[["a",null,"c"]]}'


def test_a_map_over_nothing_succeeds_at_once_and_over_no_list_fails(desk: Desk) -> None:
    drawn = definition(
        raw={},
        parts={"kind": NodeKind.MAP, "over": StepResult(step=0), "parents": ["raw"]},
        total={"takes": ["parts"]},
    )
    story = Story(desk, drawn)
    story.end("raw", result=b"[]")
    assert story.states() == {"raw": "succeeded", "parts": "succeeded", "total": "live"}
    assert story.claimed()[story.step("total").id].payload == b'{"args":[[]]}'
    other = Story(desk, drawn)
    other.end("raw", result=b"7")
    assert other.states() == {"raw": "succeeded", "parts": "failed", "total": "skipped:failure"}
    error = other.step("parts").error
    assert error is not None
    assert error.message == "over: expected a list, got 7"


def test_a_map_fails_once_all_its_items_have_ended(desk: Desk) -> None:
    drawn = definition(parts={"kind": NodeKind.MAP, "over": Param(name="all")}, total={"takes": ["parts"]})
    story = Story(desk, drawn, {"all": [1, 2]})
    story.end("parts", DEAD, item=0)
    assert story.states() == {"parts": "live", "total": "waiting"}
    story.end("parts", item=1)
    assert story.states() == {"parts": "failed", "total": "skipped:failure"}


def test_a_step_whose_condition_does_not_hold_is_skipped_and_so_is_who_needs_it(desk: Desk) -> None:
    drawn = definition(
        a={},
        b={"parents": ["a"], "only_if": Condition(text="a > 3", names={"a": StepResult(step=0)})},
        needs={"takes": ["b"]},
        after={"parents": ["b"]},
    )
    story = Story(desk, drawn)
    story.end("a", result=b"3")
    assert story.states() == {
        "a": "succeeded",
        "b": "skipped:condition",
        "needs": "skipped:input",
        "after": "live",
    }
    other = Story(desk, drawn)
    other.end("a", result=b"4")
    assert other.states()["b"] == "live"


def test_a_handler_that_discards_itself_is_skipped(desk: Desk) -> None:
    story = Story(desk, definition(a={}, b={"parents": ["a"]}, c={"takes": ["a"]}))
    story.end("a", Verdict.DISCARDED)
    assert story.states() == {"a": "skipped:itself", "b": "live", "c": "skipped:input"}


def test_steps_are_jobs_of_their_own_with_queue_delay_limits_and_deadline(desk: Desk) -> None:
    limit_key = Limiting(limit_key=LimitKey(name="api", concurrency=1), by="tenant", place=0)
    drawn = definition(
        a={"delay": timedelta(minutes=1)},
        b={"limits": (limit_key,), "args": (Constant(value="acme"),)},
        c={"expires": timedelta(seconds=5)},
    )
    story = Story(desk, drawn)
    assert list(story.claimed()) == [story.step("c").id]
    assert [info.limit_key.key for info in desk.limit_keys()] == ["acme"]
    assert desk.admit() == 1
    assert set(story.claimed()) == {story.step("b").id, story.step("c").id}
    desk.advance(timedelta(minutes=1))
    story.claims.clear()
    assert list(story.claimed()) == [story.step("a").id]


def test_however_a_job_leaves_the_queue_its_workflow_hears_of_it(desk: Desk) -> None:
    story = Story(desk, definition(a={"expires": timedelta(seconds=5)}, b={}, c={}, d={}))
    ids = {name: story.step(name).id for name in "abcd"}
    desk.advance(timedelta(seconds=6))
    assert desk.expire() == [ids["a"]]
    desk.cancel(ids["b"])
    for worker in range(
        95, 99
    ):  # a worker is lost with them in hand, three times with each: the last time alone
        desk.join(worker)
        assert all(desk.begin(claim) for claim in desk.claim(worker, tasks=("t",), limit=2))
        desk.advance(timedelta(seconds=16))
        desk.reap()
    story.resolve()
    assert story.states() == {"a": "failed", "b": "cancelled", "c": "failed", "d": "failed"}
    assert story.workflow.state is WorkflowState.FAILED


def test_a_retry_that_is_not_the_last_ends_nothing(desk: Desk) -> None:
    story = Story(desk, definition(a={"max_attempts": 2}))
    story.end("a", Verdict.FAILED)
    assert story.states() == {"a": "live"}
    story.end("a", result=b"5")
    assert story.states() == {"a": "succeeded"}


def test_a_claim_that_was_lost_begins_no_workflow_and_the_next_one_does(desk: Desk) -> None:
    from mainspring.model.workflow import NewWorkflow
    from tests.support.desk import settlement

    drawn = definition(a={})
    job_id = desk.put(task="root")
    stale = desk.take(1, tasks=("root",))
    desk.advance(timedelta(seconds=16))
    desk.reap()
    new = NewWorkflow(definition=drawn)
    assert desk.settle(settlement(stale, Verdict.STARTED, start=new)) == [job_id]
    assert desk.run(desk.store.workflows.get(job_id)) is None
    fresh = desk.take(2, tasks=("root",))
    written = settlement(fresh, Verdict.STARTED, start=new)
    assert desk.settle(written) == []
    assert desk.recorded(written) == [job_id]
    assert desk.settle(written) == [job_id]  # as after an answer that was lost
    assert len(desk.run(desk.store.workflows.steps_of(job_id, most=10))) == 1


def test_pause_holds_steps_back_and_resume_releases_them(desk: Desk) -> None:
    story = Story(desk, definition(a={}, b={"parents": ["a"]}))
    assert story.action("pause")
    assert not story.action("pause")
    story.end("a")
    assert story.states() == {"a": "succeeded", "b": "waiting"}
    assert story.action("resume")
    assert story.states() == {"a": "succeeded", "b": "live"}
    assert not story.action("resume")
    orders = desk.run(desk.store.workflows.orders(story.id))
    assert [(action.action, action.author) for action in orders] == [("paused", "ann"), ("resumed", "ann")]


def test_cancel_takes_steps_away_and_still_runs_what_runs_always(desk: Desk) -> None:
    drawn = definition(
        a={},
        b={"parents": ["a"]},
        tidy={"parents": ["b"], "when": When.ALWAYS},
        alarm={"parents": ["b"], "when": When.FAILURE},
    )
    story = Story(desk, drawn)
    running = story.claimed()[story.step("a").id]
    assert story.stop()
    assert story.states() == {
        "a": "cancelled",
        "b": "skipped:stopped",
        "tidy": "live",
        "alarm": "skipped:stopped",
    }
    assert desk.beat(running.worker_id, running).lost == (running.job_id,)
    assert desk.job(story.id).state is JobState.CANCELLED
    story.end("tidy")
    assert story.workflow.state is WorkflowState.CANCELLED
    assert not story.stop()


def test_kill_runs_nothing_more(desk: Desk) -> None:
    drawn = definition(a={}, tidy={"parents": ["a"], "when": When.ALWAYS})
    story = Story(desk, drawn)
    assert story.stop(Stopping.KILLED)
    assert story.states() == {"a": "cancelled", "tidy": "skipped:stopped"}
    assert story.workflow.state is WorkflowState.CANCELLED


def test_a_cancel_of_its_own_job_cancels_the_workflow(desk: Desk) -> None:
    story = Story(desk, definition(a={}, b={"parents": ["a"]}))
    assert desk.cancel(story.id) == {story.id: JobState.RUNNING}
    story.resolve()
    assert story.states() == {"a": "cancelled", "b": "skipped:stopped"}
    assert story.workflow.state is WorkflowState.CANCELLED


def test_a_deadline_ends_the_whole_as_failed_and_runs_what_follows_failure(desk: Desk) -> None:
    drawn = definition(a={}, b={"parents": ["a"]}, alarm={"parents": ["b"], "when": When.FAILURE})
    story = Story(desk, drawn, expires=timedelta(hours=1))
    desk.advance(timedelta(hours=2))
    assert desk.expire() == [story.id]
    story.resolve()
    assert story.states() == {"a": "cancelled", "b": "skipped:stopped", "alarm": "live"}
    story.end("alarm")
    assert story.workflow.state is WorkflowState.FAILED
    assert [letter.reason for letter in desk.dead(ids=[story.id])] == ["expired"]
    assert desk.replay(story.id) == []  # that is a retry's


def test_what_was_done_is_undone_in_reverse_when_the_workflow_fails(desk: Desk) -> None:
    drawn = definition(
        flight={},
        hotel={"parents": ["flight"]},
        pay={"parents": ["hotel"]},
        end={"kind": NodeKind.BARRIER, "parents": ["pay"], "task": ""},
        no_hotel={"kind": NodeKind.UNDO, "of": 1, "parents": ["end"], "takes": ["hotel"]},
        no_flight={"kind": NodeKind.UNDO, "of": 0, "parents": ["end", "no_hotel"], "takes": ["flight"]},
        no_pay={"kind": NodeKind.UNDO, "of": 2, "parents": ["end", "pay"]},
    )
    story = Story(desk, drawn)
    story.end("flight", result=b'"F1"')
    story.end("hotel", result=b'"H1"')
    story.end("pay", DEAD)
    assert story.states() == {
        "flight": "succeeded",
        "hotel": "succeeded",
        "pay": "failed",
        "end": "succeeded",
        "no_hotel": "live",
        "no_flight": "waiting",
        "no_pay": "skipped:condition",
    }
    assert story.claimed()[story.step("no_hotel").id].payload == b'{"args":["H1"]}'
    story.end("no_hotel")
    story.end("no_flight")
    assert story.workflow.state is WorkflowState.FAILED


def test_nothing_is_undone_when_the_workflow_succeeds(desk: Desk) -> None:
    drawn = definition(
        flight={},
        end={"kind": NodeKind.BARRIER, "parents": ["flight"], "task": ""},
        no_flight={"kind": NodeKind.UNDO, "of": 0, "parents": ["end", "flight"]},
    )
    story = Story(desk, drawn)
    story.end("flight")
    assert story.states()["no_flight"] == "skipped:condition"
    assert story.workflow.state is WorkflowState.SUCCEEDED


def test_many_workflows_are_dealt_with_in_one_pass_and_a_small_pass_leaves_the_rest(desk: Desk) -> None:
    drawn = definition(a={}, b={"parents": ["a"]})
    stories = [Story(desk, drawn) for _ in range(5)]
    first = stories[0]
    claims = first.claimed()
    for story in stories:
        desk.end(claims[story.step("a").id], Verdict.SUCCEEDED)
    assert first.resolve_once(limit=2).taken == 2
    assert first.resolve_once().taken == 3
    assert all(story.states() == {"a": "succeeded", "b": "live"} for story in stories)
    definitions = {story.workflow.definition_id for story in stories}
    assert len(definitions) == 1


def test_another_definition_of_the_same_name_is_another_version(desk: Desk) -> None:
    one, two = Story(desk, definition(a={})), Story(desk, definition(a={}, b={}))
    again = Story(desk, definition(a={}))
    assert [each.workflow.version for each in (one, two, again)] == [1, 2, 1]
    assert desk.run(desk.store.workflows.definition(two.workflow.definition_id)) == two.drawn


def test_workflows_are_listed_newest_first_and_pruned_with_history(desk: Desk) -> None:
    ended, live = Story(desk, definition(a={})), Story(desk, definition("other", a={}))
    ended.end("a")
    listed = desk.run(desk.store.workflows.find(name=None, state=None, before=None, limit=10))
    assert [each.id for each in listed] == [live.id, ended.id]
    only = desk.run(
        desk.store.workflows.find(name="flow", state=WorkflowState.SUCCEEDED, before=None, limit=10)
    )
    assert [each.id for each in only] == [ended.id]
    assert desk.run(desk.store.workflows.step(live.step("a").id)) == live.step("a")
    desk.advance(timedelta(days=40))
    desk.prune(timedelta(days=30))
    assert desk.run(desk.store.workflows.get(ended.id)) is None
    assert desk.run(desk.store.workflows.steps_of(ended.id, most=10)) == []
    assert live.workflow.state is WorkflowState.RUNNING


def test_the_first_lost_items_of_each_map_are_told(desk: Desk) -> None:
    over = {"kind": NodeKind.MAP, "over": Param(name="all")}
    story = Story(desk, definition(one=dict(over), two=dict(over)), {"all": [1, 2, 3, 4]})
    for item in (3, 1, 2):
        story.end("one", DEAD, item=item)
    story.end("two", item=0)
    desk.cancel(story.step("two", 3).id)
    story.resolve()
    lost = desk.run(desk.store.workflows.lost_items(story.id, most=2))
    assert [(each.place, each.item, each.state) for each in lost] == [
        (0, 1, "failed"),
        (0, 2, "failed"),
        (1, 3, "cancelled"),
    ]


def test_a_step_is_found_by_the_id_of_its_job(desk: Desk) -> None:
    story = Story(desk, definition(a={}, b={"parents": ["a"]}))
    waiting = story.step("b")
    assert desk.run(desk.store.workflows.step(waiting.id)) == waiting
    assert desk.run(desk.store.workflows.step(story.id)) is None
