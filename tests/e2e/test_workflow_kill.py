"""Workers killed, one after the other, while a workflow spreads out over a thousand items and joins them."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from mainspring.model.job import JobState
from mainspring.model.run import Verdict
from mainspring.model.workflow import StepState, WorkflowState
from mainspring.rules.settle import CRASHES_ALLOWED
from tests.e2e.fan_target import flow
from tests.support.processes import Process, Site, until

pytestmark = pytest.mark.e2e

WIDE = 1000
KILLS = (0, 150, 300, 450, 600, 750)
"""After how many parts somebody dies: the first in the midst of spreading out."""
FINAL = (Verdict.SUCCEEDED, Verdict.DEAD, Verdict.CANCELLED, Verdict.DISCARDED)


def test_a_fan_out_through_kills_joins_once_with_all_its_results(site: Site) -> None:
    dice = random.Random(1)
    crew = [_worker(site, number) for number in range(2)]
    [root] = site.put([flow.job(count=WIDE)])
    for number, parts in enumerate(KILLS, start=2):
        until(
            lambda parts=parts: (
                site.effects.of("spread") and len(site.effects.of("end")) >= parts and not _doomed(site)
            ),
            "progress",
        )
        victim = crew.pop(dice.randrange(2))
        victim.kill()
        crew.append(_worker(site, number))
    until(lambda: site.job(root).state is not JobState.RUNNING, "the workflow to end")

    job = site.job(root)
    assert (job.state, job.result) == (JobState.SUCCEEDED, b"[%d,%d]" % (WIDE, WIDE * (WIDE - 1)))
    workflow = site.ask(site.store.workflows.get(root))
    assert (workflow.state, workflow.left, workflow.failed) == (WorkflowState.SUCCEEDED, 0, 0)
    steps = site.ask(site.store.workflows.steps_of(root, most=WIDE))
    assert Counter(step.state for step in steps) == {StepState.SUCCEEDED: WIDE + 3}
    assert site.live() == 0

    began: dict[int, list[int]] = {step.id: [] for step in steps}
    for effect in [*site.effects.of("spread"), *site.effects.of("start"), *site.effects.of("gather")]:
        began[effect.job].append(effect.fence)
    _, spread_out, join = (step.id for step in steps if step.item is None)
    del began[spread_out]
    crashes = 0
    for job_id, fences in began.items():
        runs = site.ask(site.store.runs.of(job_id))
        [accepted] = [run for run in runs if run.verdict in FINAL]
        assert accepted is runs[-1]
        assert len(set(fences)) == len(fences), "one claim was run twice"
        assert max(fences) == accepted.fence, "it was run after its accepted result"
        crashes += sum(run.verdict is Verdict.CRASHED for run in runs)
    assert len(began[join]) == 1
    assert crashes, "nobody died with anything in hand"


def _doomed(site: Site) -> bool:
    """Whether any part would be quarantined if it lost its worker once more: that is another story."""
    ended = {effect.job for effect in site.effects.of("end")}
    begun = {effect.job for effect in site.effects.of("start")} - ended
    return any(site.job(job_id).crashes >= CRASHES_ALLOWED - 1 for job_id in begun)


def _worker(site: Site, number: int) -> Process:
    options = ("-c", "8", "--lease", "3s", "--heartbeat", "1s")
    target = Path(__file__).with_name("fan_target.py")
    return site.start("worker", f"w{number}", *options, target=target)
