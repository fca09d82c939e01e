"""The rules: from what was seen in the store to what is wrong; for alerts, the overview and `status`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta

from mainspring.config import AlertsConfig
from mainspring.duration import written
from mainspring.model.fleet import MemberInfo, Role
from mainspring.model.queue import QueuePause
from mainspring.model.trouble import Died, Facts, Late, Rule, Severity, Trouble, Waiting, Watched

MISSED_HOLD = timedelta(seconds=10)
"""A scheduler that has just started finds slots that passed meanwhile, and decides about them at once."""
LOOKED_AT = 5
"""Slots beyond those that count which may still be live, when failures in a row are counted."""
_ORDER = (Severity.CRITICAL, Severity.WARNING, Severity.NOTICE)


def watched(config: AlertsConfig) -> Watched:
    """How far the store is to look back for these settings."""
    return Watched(
        missed_after=config.missed_after,
        late_after=config.late_after,
        dead_window=config.dead_window,
        lost_window=config.lost_window,
        streak=config.failing_after + LOOKED_AT,
    )


def troubles(facts: Facts, config: AlertsConfig) -> list[Trouble]:
    """What is wrong, by the rules that are on; the worst first, of those the longest. Each rule speaks of a
    subject at most once."""
    found: dict[tuple[Rule, str], Trouble] = {}
    for rule in _RULES:
        for trouble in rule(facts, config):
            if trouble.rule not in config.off:
                found.setdefault((trouble.rule, trouble.subject), trouble)
    return sorted(
        found.values(), key=lambda each: (_ORDER.index(each.severity), each.since, each.rule, each.subject)
    )


def _missed(facts: Facts, config: AlertsConfig) -> Iterator[Trouble]:
    for each in facts.overdue:
        bound = min(config.missed_after, each.expect_start_within or config.missed_after)
        yield Trouble(
            rule=Rule.MISSED,
            subject=each.schedule,
            severity=Severity.CRITICAL,
            since=each.slot_at,
            sentence=f"schedule {each.schedule} missed its slot of {_at(each.slot_at)}: no scheduler has "
            f"decided about it for {_for(facts.now - each.slot_at)}",
            hold=min(MISSED_HOLD, bound),
        )


def _late(facts: Facts, config: AlertsConfig) -> Iterator[Trouble]:
    pauses = {pause.queue: pause for pause in facts.pauses}
    expecting = {each.schedule for each in facts.late if each.expect_start_within is not None}
    for each in sorted(facts.late, key=lambda late: late.slot_at):
        start, finish = each.expect_start_within, each.expect_finish_by
        if not each.begun and start is not None and facts.now >= each.slot_at + start:
            yield _late_start(each, start, each.slot_at + start, pauses)
        if finish is not None and facts.now >= each.slot_at + finish:
            yield Trouble(
                rule=Rule.LATE_FINISH,
                subject=each.schedule,
                severity=Severity.WARNING,
                since=each.slot_at + finish,
                sentence=f"schedule {each.schedule} should have finished its slot of {_at(each.slot_at)} "
                f"within {written(finish)}: job {each.job_id} {_doing(each, pauses)}",
            )
        if start is None and each.schedule not in expecting and not each.begun and each.due_at is not None:
            since = each.due_at + config.late_after
            if facts.now >= since:
                yield _late_start(each, config.late_after, since, pauses)


def _late_start(
    late: Late, expected: timedelta, since: datetime, pauses: Mapping[str, QueuePause]
) -> Trouble:
    return Trouble(
        rule=Rule.LATE_START,
        subject=late.schedule,
        # Somebody knows why, and may have forgotten.
        severity=Severity.NOTICE if late.queue in pauses else Severity.WARNING,
        since=since,
        sentence=f"schedule {late.schedule} should have started its slot of {_at(late.slot_at)} within "
        f"{written(expected)}: job {late.job_id} {_doing(late, pauses)}",
    )


def _doing(late: Late, pauses: Mapping[str, QueuePause]) -> str:
    if late.claimed:
        return "is still running"
    waits = "waits for another try" if late.begun else "waits"
    if (pause := pauses.get(late.queue)) is not None:
        return f"{waits} in queue {late.queue}, which {_paused(pause)}"
    if late.due_at is None:
        return f"{waits} for earlier jobs of its schedule, or for a limit"
    return f"{waits} in queue {late.queue}"


def _failed(facts: Facts, config: AlertsConfig) -> Iterator[Trouble]:
    tasks: dict[str, list[Died]] = {}
    for each in facts.died:
        if facts.now - each.died_at < config.failed_window:
            tasks.setdefault(each.task, []).append(each)
    for task, died in tasks.items():
        newest, oldest = died[0], died[-1]
        of = f" (schedule {newest.schedule})" if newest.schedule else ""
        jobs = (
            f"job {newest.job_id}"
            if len(died) == 1
            else f"{len(died)} jobs, the last of them {newest.job_id},"
        )
        yield Trouble(
            rule=Rule.FAILED,
            subject=task,
            severity=Severity.WARNING,
            since=oldest.died_at,
            sentence=f"{jobs} of task {task}{of} became a dead letter at {_at(newest.died_at)}: "
            f"{newest.reason}",
        )


def _failing(facts: Facts, config: AlertsConfig) -> Iterator[Trouble]:
    for each in facts.streaks:
        if each.failures >= config.failing_after:
            yield Trouble(
                rule=Rule.FAILING,
                subject=each.schedule,
                severity=Severity.WARNING,
                since=each.since,
                sentence=f"schedule {each.schedule} fails: its last {each.failures} jobs, from the slot of "
                f"{_at(each.since)} on, all became dead letters",
            )


def _dead_growth(facts: Facts, config: AlertsConfig) -> Iterator[Trouble]:
    if facts.grown >= config.dead_growth:
        inside = [each.died_at for each in facts.died if facts.now - each.died_at < config.dead_window]
        yield Trouble(
            rule=Rule.DEAD_GROWTH,
            subject="dead letters",
            severity=Severity.WARNING,
            since=min(inside, default=facts.now),
            sentence=f"{facts.grown} jobs became dead letters in the last {written(config.dead_window)}",
        )


def _oldest_waiting(facts: Facts, config: AlertsConfig) -> Iterator[Trouble]:
    pauses = {pause.queue: pause for pause in facts.pauses}
    for queue, oldest in _oldest(facts).items():
        waits = facts.now - oldest.due_at
        if waits < config.oldest_waiting:
            continue
        pause = pauses.get(queue)
        why = f"; {_paused(pause)}" if pause else ""
        yield Trouble(
            rule=Rule.OLDEST_WAITING,
            subject=queue,
            severity=Severity.NOTICE if pause else Severity.WARNING,
            since=oldest.due_at,
            sentence=f"queue {queue}: job {oldest.job_id} of task {oldest.task} is due for {_for(waits)} and "
            f"waits{why}",
        )


def _no_worker(facts: Facts, config: AlertsConfig) -> Iterator[Trouble]:
    paused = {pause.queue for pause in facts.pauses}
    workers = [each for each in facts.members if each.alive and each.role is Role.WORKER]
    for each in facts.waiting:
        if each.queue in paused:
            continue
        serving = [worker for worker in workers if each.queue in worker.queues]
        if not any(each.task in worker.tasks for worker in serving):
            yield Trouble(
                rule=Rule.NO_WORKER,
                subject=each.queue,
                severity=Severity.CRITICAL,
                since=each.due_at,
                sentence=_nobody(each, serving),
                hold=config.no_worker_after,
            )


def _nobody(waiting: Waiting, serving: list[MemberInfo]) -> str:
    if serving:
        return (
            f"queue {waiting.queue}: no live worker knows task {waiting.task}, for which job "
            f"{waiting.job_id} waits since {_at(waiting.due_at)}"
        )
    return f"queue {waiting.queue} has no live worker; job {waiting.job_id} waits since {_at(waiting.due_at)}"


def _no_scheduler(facts: Facts, config: AlertsConfig) -> Iterator[Trouble]:
    if facts.scheduled and not _schedulers(facts):
        ended = [each.lost_at for each in facts.lost if each.role is Role.SCHEDULER]
        since = max(ended, default=facts.behind_since or facts.now)
        yield Trouble(
            rule=Rule.NO_SCHEDULER,
            subject="schedulers",
            severity=Severity.CRITICAL,
            since=since,
            sentence="there are schedules, and no scheduler is alive: nothing will be fired",
            hold=config.no_scheduler_after,
        )


def _scheduler_lag(facts: Facts, config: AlertsConfig) -> Iterator[Trouble]:
    if facts.behind_since is None or not _schedulers(facts):
        return
    lag = facts.now - facts.behind_since
    if lag >= config.scheduler_lag:
        yield Trouble(
            rule=Rule.SCHEDULER_LAG,
            subject="schedulers",
            severity=Severity.CRITICAL,
            since=facts.behind_since,
            sentence=f"schedulers are alive and {_for(lag)} behind: the slot of {_at(facts.behind_since)} is "
            "not decided",
            hold=min(MISSED_HOLD, config.scheduler_lag),
        )


def _member_lost(facts: Facts, config: AlertsConfig) -> Iterator[Trouble]:
    alive = {(each.role, each.name) for each in facts.members if each.alive}
    for each in facts.lost:
        back = (each.role, each.name) in alive
        if facts.now - each.lost_at < config.lost_window and not back:
            yield Trouble(
                rule=Rule.MEMBER_LOST,
                subject=f"{each.role} {each.name}",
                severity=Severity.WARNING,
                since=each.lost_at,
                sentence=f"{each.role} {each.name} did not renew its lease and was given up at "
                f"{_at(each.lost_at)}",
            )


_RULES: tuple[Callable[[Facts, AlertsConfig], Iterator[Trouble]], ...] = (
    _missed,
    _late,
    _failed,
    _failing,
    _dead_growth,
    _oldest_waiting,
    _no_worker,
    _no_scheduler,
    _scheduler_lag,
    _member_lost,
)


def _oldest(facts: Facts) -> dict[str, Waiting]:
    oldest: dict[str, Waiting] = {}
    for each in sorted(facts.waiting, key=lambda waiting: waiting.due_at):
        oldest.setdefault(each.queue, each)
    return oldest


def _schedulers(facts: Facts) -> list[MemberInfo]:
    return [each for each in facts.members if each.alive and each.role is Role.SCHEDULER]


def _paused(pause: QueuePause) -> str:
    note = f" ({pause.note})" if pause.note else ""
    return f"{pause.paused_by} paused at {_at(pause.paused_at)}{note}"


def _at(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def _for(length: timedelta) -> str:
    """To the second, since nobody reads more."""
    return written(max(timedelta(), length - timedelta(microseconds=length.microseconds)))
