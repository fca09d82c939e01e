"""Every move of a job on both stores: those in the table happen, and no other does.

First each pair of state and verb, one by one; then random stories, in which every job is compared, after
each step, with what the table allows.
"""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from mainspring.model.job import LIVE_STATES, Claim, JobState
from mainspring.model.run import Reason, Verdict
from mainspring.rules.settle import CRASHES_ALLOWED
from mainspring.store.opener import open_store
from mainspring.testing.clock import ManualClock
from tests.support.desk import HOUR, MINUTE, SECOND, Desk, settlement
from tests.support.transitions import MOVES, Move, Verb, targets

EXAMPLES, STEPS, MOST_JOBS = 40, 40, 6

VERDICTS = {
    Verb.SUCCEED: Verdict.SUCCEEDED,
    Verb.FAIL: Verdict.FAILED,
    Verb.DIE: Verdict.DEAD,
    Verb.RELEASE: Verdict.RELEASED,
    Verb.SNOOZE: Verdict.SNOOZED,
    Verb.DISCARD: Verdict.DISCARDED,
    Verb.CRASH: Verdict.CRASHED,
}
TESTED = [move for move in MOVES if move.verb is not Verb.ENQUEUE]
ILLEGAL = [
    (state, verb)
    for state in JobState
    for verb in Verb
    if verb not in (Verb.ENQUEUE, Verb.DUE) and not targets(state, verb)
]


class Story:
    """One job of its own task, its claims, and the verbs to move it."""

    def __init__(self, desk: Desk, name: str, **fields):
        self.desk = desk
        self.task = name
        self.id = desk.put(task=name, **fields)
        self.claims: list[Claim] = []
        self.workers = 0

    @property
    def state(self) -> JobState | None:
        found = self.desk.find(self.id)
        return None if found is None else found.state

    @property
    def claim(self) -> Claim:
        """The newest, or one that never was."""
        if self.claims:
            return self.claims[-1]
        moment = self.desk.now
        return Claim(
            job_id=self.id, worker_id=999, fence=1, task=self.task, queue="default", payload=b"{}",
            failures=0, max_attempts=1, run_at=moment, enqueued_at=moment,
        )  # fmt: skip

    def action(self, verb: Verb, *, delay: timedelta = timedelta(), dies: bool = False) -> None:
        desk = self.desk
        match verb:
            case Verb.DUE:
                desk.advance(2 * HOUR)
            case Verb.HASTEN:
                desk.hasten(self.id)
            case Verb.CLAIM:
                self.workers += 1
                worker = 1000 * self.id + self.workers
                desk.join(worker, lease=timedelta(days=400))
                self.claims += desk.claim(worker, tasks=(self.task,))
            case Verb.REAP:
                desk.begin(self.claim)
                desk.leave(self.claim.worker_id, clean=False)
                desk.reap()
            case Verb.EXPIRE:
                desk.expire()
            case Verb.CANCEL:
                desk.cancel(self.id)
            case Verb.EDIT:
                desk.edit_dead(self.id, b'{"args":[1]}')
            case Verb.REPLAY:
                desk.replay(self.id)
            case Verb.PURGE:
                desk.purge(self.id)
            case _:
                reason = Reason.CRASHED if dies and verb is Verb.CRASH else None
                desk.settle(settlement(self.claim, VERDICTS[verb], delay=delay, reason=reason))

    def bring_to(self, state: JobState) -> None:
        """From ready, or delayed where it was put so."""
        ways = {
            JobState.SUCCEEDED: Verb.SUCCEED,
            JobState.DEAD: Verb.DIE,
            JobState.DISCARDED: Verb.DISCARD,
            JobState.CANCELLED: Verb.CANCEL,
        }
        if state not in (JobState.READY, JobState.DELAYED):
            self.action(Verb.CLAIM)
        if state in ways:
            self.action(ways[state])
        assert self.state is state


def story(desk: Desk, state: JobState, **fields) -> Story:
    told = Story(desk, "t", **({"delay": HOUR} if state is JobState.DELAYED else {}), **fields)
    told.bring_to(state)
    return told


def named(move: Move) -> str:
    return f"{move.source} {move.verb} {move.target}".replace(" ", "-")


@pytest.mark.parametrize("move", TESTED, ids=named)
def test_every_move_of_the_table_happens(desk, move):
    assert move.source is not None
    late = move.verb is Verb.EXPIRE
    told = story(desk, move.source, **({"expires_at": desk.now + MINUTE} if late else {}))
    if late:
        desk.advance(MINUTE)
    if move.verb is Verb.REAP and move.target is JobState.DEAD:
        for _ in range(CRASHES_ALLOWED - 1):
            told.action(Verb.REAP)
            told.action(Verb.CLAIM)

    waits = move.target is JobState.DELAYED
    told.action(move.verb, delay=HOUR if waits else timedelta(), dies=move.target is JobState.DEAD)

    assert told.state is move.target


@pytest.mark.parametrize(("state", "verb"), ILLEGAL, ids=lambda value: str(value).replace(" ", "-"))
def test_no_other_move_happens(desk, state, verb):
    told = story(desk, state, expires_at=desk.now + 3 * HOUR)
    if state is not JobState.DELAYED:
        desk.advance(
            4 * HOUR
        )  # beyond its deadline, which touches no job that somebody holds or that has ended
    before, runs = desk.find(told.id), desk.runs(told.id)

    told.action(verb)

    assert (desk.find(told.id), desk.runs(told.id)) == (before, runs)


@pytest.mark.parametrize("delay", [timedelta(), HOUR], ids=["due", "later"])
def test_a_job_comes_into_being_ready_or_delayed(desk, delay):
    assert desk.job(desk.put(delay=delay)).state in targets(None, Verb.ENQUEUE)


ACTS = [verb for verb in Verb if verb not in (Verb.ENQUEUE, Verb.DUE, Verb.EXPIRE)]
# Half of all acts by chance would meet a job that they cannot move.
acts = st.one_of(st.sampled_from([Verb.CLAIM, Verb.FAIL, Verb.REAP, Verb.CRASH]), st.sampled_from(ACTS))
lives = st.sampled_from([None, None, MINUTE, HOUR])


class Life(RuleBasedStateMachine):
    """Some jobs on one store, and whatever anybody may do to them."""

    def __init__(self, run, store, clock):
        super().__init__()
        self.desk = Desk(store, clock, run)
        self.clock = clock
        self.jobs: list[Story] = []

    def teardown(self):
        for each in self.jobs:
            self.desk.cancel(each.id)
            self.desk.purge(each.id)

    def states(self):
        return [each.state for each in self.jobs]

    def some(self):
        return bool(self.jobs)

    @precondition(lambda self: len(self.jobs) < MOST_JOBS)
    @rule(delay=st.sampled_from([timedelta(), timedelta(), MINUTE]), expires=lives)
    def enqueue(self, delay, expires):
        name = f"life-{len(self.jobs)}"
        self.jobs.append(Story(self.desk, name, delay=delay, expires=expires, max_attempts=3))
        assert self.jobs[-1].state in targets(None, Verb.ENQUEUE)

    @precondition(some)
    @rule(by=st.sampled_from([SECOND, MINUTE, HOUR]))
    def pass_time(self, by):
        before = self.states()
        self.desk.advance(by)
        for was, now in zip(before, self.states(), strict=True):
            assert now is was or now in targets(was, Verb.DUE)

    @precondition(some)
    @rule()
    def expire(self):
        before = [self.desk.find(each.id) for each in self.jobs]
        self.desk.expire()
        for was, now in zip(before, self.states(), strict=True):
            if was is None:
                assert now is None
                continue
            late = was.expires_at is not None and was.expires_at <= self.desk.now
            moves = targets(was.state, Verb.EXPIRE) if late else ()
            assert now in moves if moves else now is was.state

    @precondition(some)
    @rule(
        pick=st.integers(0, MOST_JOBS),
        verb=acts,
        delay=st.sampled_from([timedelta(), MINUTE]),
        dies=st.booleans(),
    )
    def action(self, pick, verb, delay, dies):
        told = self.jobs[-1 - pick % len(self.jobs)]
        before, others = told.state, [each for each in self.jobs if each is not told]
        apart = [each.state for each in others]
        crashes = self.desk.job(told.id).crashes if before is not None else 0

        told.action(verb, delay=delay, dies=dies)

        assert [each.state for each in others] == apart
        moves = targets(before, verb)
        if not moves:
            assert told.state is before
            return
        assert told.state in moves
        if verb is Verb.REAP:
            assert (told.state is JobState.DEAD) == (crashes + 1 >= CRASHES_ALLOWED)
        if verb is Verb.CRASH:
            assert (told.state is JobState.DEAD) == dies
        elif told.state in LIVE_STATES and verb in VERDICTS:
            assert (told.state is JobState.DELAYED) == (delay > timedelta())


def run_lives(run, store, clock):
    run_state_machine_as_test(
        lambda: Life(run, store, clock),
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.mark.timeout(600)
def test_no_story_on_sqlite_leaves_the_table(run):
    clock = ManualClock()
    store = open_store("sqlite://:memory:", clock=clock)
    run(store.migrate())
    try:
        run_lives(run, store, clock)
    finally:
        run(store.close())


@pytest.mark.timeout(600)
def test_no_story_on_postgres_leaves_the_table(postgres_url, run):
    clock = ManualClock()
    store = open_store(postgres_url, clock=clock, hints=False)
    try:
        run_lives(run, store, clock)
    finally:
        run(store.close())
