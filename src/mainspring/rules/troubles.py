"""The rules: from what was seen in the store to what is wrong; for alerts, the overview and `status`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta

from mainspring.config import AlertsConfig
from mainspring.duration import format_duration
from mainspring.model.alert import COUNTED, Facts, LateJob, Rule, Severity, Trouble, Waiting, Watched
from mainspring.model.process import ProcessInfo, Role
from mainspring.model.queue import QueuePause

MISSED_HOLD = timedelta(seconds=10)
"""A scheduler that has just started finds slots that passed meanwhile, and decides about them at once."""
SKEW_HOLD = timedelta(seconds=15)
TRIES = 2
"""Runs that must have failed before a task is said to be tried again in vain."""
OTHERS = "(others)"
"""The subject of what says that a list was cut."""
LOOKED_AT = 5
"""Slots beyond those that count which may still be live, when failures in a row are counted."""
_ORDER = (Severity.CRITICAL, Severity.WARNING, Severity.NOTICE)


def watched(config: AlertsConfig) -> Watched:
    """How far the store is to look back for these settings."""
    return Watched(
        missed_after=config.missed_after,
        dropped_window=config.dropped_window,
        late_after=config.late_after,
        failed_window=config.failed_window,
        dead_window=config.dead_window,
        dead_growth=config.dead_growth,
        lost_window=config.lost_window,
        failing=config.failing_after,
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
    for cut in facts.cut:
        if cut not in config.off:
            found[cut, OTHERS] = _others(cut, found, facts)
    return sorted(
        found.values(), key=lambda each: (_ORDER.index(each.severity), each.since, each.rule, each.subject)
    )


def _others(rule: Rule, found: Mapping[tuple[Rule, str], Trouble], facts: Facts) -> Trouble:
    """That a list was cut, which no alert of its own would say."""
    named = sum(each is rule for each, _ in found)
    return Trouble(
        rule=rule,
        subject=OTHERS,
        severity=Severity.WARNING,
        since=min((each.since for (of, _), each in found.items() if of is rule), default=facts.now),
        sentence=f"{rule}: there is more than can be listed; {named} are named, and others may not be",
        after_start=True,
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
            after_start=True,
        )


def _slots_dropped(facts: Facts, config: AlertsConfig) -> Iterator[Trouble]:
    for each in facts.dropped:
        slots = (
            f"its missed slot of {_at(each.until)}"
            if each.since == each.until
            else f"missed slots from {_at(each.since)} to {_at(each.until)}"
        )
        why = (
            "too many of its jobs were live, and the circuit breaker left out the rest; "
            f"`mainspring schedules go-on {each.schedule}` runs what was left out"
            if each.breaker
            else "older than its catch_up when a scheduler could fire again; "
            f"`mainspring backfill {each.schedule}` runs what is wanted all the same"
        )
        yield Trouble(
            rule=Rule.SLOTS_DROPPED,
            subject=each.schedule,
            severity=Severity.WARNING,
            since=each.dropped_at,
            sentence=f"schedule {each.schedule} dropped {slots}: {why}",
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
                f"within {format_duration(finish)}: job {each.job_id} {_doing(each, pauses)}",
                after_start=True,
            )
        if start is None and each.schedule not in expecting and not each.begun and each.due_at is not None:
            since = each.due_at + config.late_after
            if facts.now >= since:
                yield _late_start(each, config.late_after, since, pauses)


def _late_start(
    late: LateJob, expected: timedelta, since: datetime, pauses: Mapping[str, QueuePause]
) -> Trouble:
    return Trouble(
        rule=Rule.LATE_START,
        subject=late.schedule,
        # An operator paused it, and may have forgotten.
        severity=Severity.NOTICE if late.queue in pauses else Severity.WARNING,
        since=since,
        sentence=f"schedule {late.schedule} should have started its slot of {_at(late.slot_at)} within "
        f"{format_duration(expected)}: job {late.job_id} {_doing(late, pauses)}",
        after_start=True,
    )


def _doing(late: LateJob, pauses: Mapping[str, QueuePause]) -> str:
    if late.claimed:
        return "is still running"
    waits = "waits for another try" if late.begun else "waits"
    if (pause := pauses.get(late.queue)) is not None:
        return f"{waits} in queue {late.queue}, which {_paused(pause)}"
    if late.due_at is None:
        return f"{waits} for earlier jobs of its schedule, or for a limit"
    return f"{waits} in queue {late.queue}"


def _failed(facts: Facts, config: AlertsConfig) -> Iterator[Trouble]:
    for each in facts.died:
        if facts.now - each.died_at >= config.failed_window:
            continue
        of = f" (schedule {each.schedule})" if each.schedule else ""
        least = "at least " if each.jobs >= COUNTED else ""
        yield Trouble(
            rule=Rule.FAILED,
            subject=each.task,
            severity=Severity.WARNING,
            since=each.since,
            sentence=f"job {each.job_id} of task {each.task}{of} became a dead letter at "
            f"{_at(each.died_at)}: {each.reason}"
            if each.jobs == 1
            else f"{least}{each.jobs} jobs of task {each.task} became dead letters, the last of them "
            f"{each.job_id}{of} at {_at(each.died_at)}: {each.reason}",
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


def _retrying(facts: Facts, config: AlertsConfig) -> Iterator[Trouble]:
    for each in facts.retrying:
        if each.failed >= TRIES and facts.now - each.since >= config.retrying_after:
            yield Trouble(
                rule=Rule.RETRYING,
                subject=each.task,
                severity=Severity.WARNING,
                since=each.since,
                sentence=f"task {each.task} fails for {_for(facts.now - each.since)} and is tried again: "
                f"since {_at(each.since)} {each.failed} runs failed and {each.succeeded} succeeded",
            )


def _dead_growth(facts: Facts, config: AlertsConfig) -> Iterator[Trouble]:
    if facts.grown >= config.dead_growth:
        least = "at least " if facts.grown >= max(COUNTED, config.dead_growth) else ""
        yield Trouble(
            rule=Rule.DEAD_GROWTH,
            subject="dead letters",
            severity=Severity.WARNING,
            since=facts.grown_since or facts.now,
            sentence=f"{least}{facts.grown} jobs became dead letters in the last "
            f"{format_duration(config.dead_window)}",
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
            after_start=True,
        )


def _no_worker(facts: Facts, config: AlertsConfig) -> Iterator[Trouble]:
    paused = {pause.queue for pause in facts.pauses}
    workers = [each for each in facts.processes if each.alive and each.role is Role.WORKER]
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
                after_start=True,
            )


def _nobody(waiting: Waiting, serving: list[ProcessInfo]) -> str:
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
        # One that fell silent has been missing since then. One that left, or never was, may be on its way.
        hold = config.no_scheduler_after if ended else max(config.no_scheduler_after, config.restart_within)
        yield Trouble(
            rule=Rule.NO_SCHEDULER,
            subject="schedulers",
            severity=Severity.CRITICAL,
            since=since,
            sentence="there are schedules, and no scheduler is alive: nothing will be fired",
            hold=hold,
            recorded=bool(ended),
            after_start=True,
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
            after_start=True,
        )


def _process_lost(facts: Facts, config: AlertsConfig) -> Iterator[Trouble]:
    alive = {(each.role, each.name) for each in facts.processes if each.alive}
    for each in facts.lost:
        back = (each.role, each.name) in alive
        if facts.now - each.lost_at < config.lost_window and not back:
            yield Trouble(
                rule=Rule.PROCESS_LOST,
                subject=f"{each.role} {each.name}",
                severity=Severity.WARNING,
                since=each.lost_at,
                sentence=f"{each.role} {each.name} did not renew its lease and was given up at "
                f"{_at(each.lost_at)}",
            )


def _clock_skew(facts: Facts, config: AlertsConfig) -> Iterator[Trouble]:
    for each in facts.processes:
        if each.alive and each.skew is not None and abs(each.skew) >= config.clock_skew:
            yield Trouble(
                rule=Rule.CLOCK_SKEW,
                subject=f"{each.role} {each.name}",
                severity=Severity.WARNING,
                since=facts.now,
                sentence=f"the clock of {each.role} {each.name} is {each.skew.total_seconds():+.1f} s from "
                "the database's, which decides; what its handlers read from it is off by as much",
                # What a slow heartbeat took on its way looks like a clock that is behind, once.
                hold=SKEW_HOLD,
            )


def _outage(facts: Facts, config: AlertsConfig) -> Iterator[Trouble]:
    if not (facts.scheduled or facts.waiting or facts.late):
        return  # no job waited
    for each in facts.gaps:
        yield Trouble(
            rule=Rule.OUTAGE,
            subject=f"from {_at(each.began_at)}",
            severity=Severity.WARNING,
            since=each.began_at,
            sentence=f"nothing ran from {_at(each.began_at)} to {_at(each.ended_at)} "
            f"({_for(each.ended_at - each.began_at)}): no worker and no scheduler was alive, or none could "
            "reach the database. It is over",
        )


_RULES: tuple[Callable[[Facts, AlertsConfig], Iterator[Trouble]], ...] = (
    _missed,
    _slots_dropped,
    _late,
    _failed,
    _failing,
    _retrying,
    _dead_growth,
    _oldest_waiting,
    _no_worker,
    _no_scheduler,
    _scheduler_lag,
    _process_lost,
    _clock_skew,
    _outage,
)


def _oldest(facts: Facts) -> dict[str, Waiting]:
    oldest: dict[str, Waiting] = {}
    for each in sorted(facts.waiting, key=lambda waiting: waiting.due_at):
        oldest.setdefault(each.queue, each)
    return oldest


def _schedulers(facts: Facts) -> list[ProcessInfo]:
    return [each for each in facts.processes if each.alive and each.role is Role.SCHEDULER]


def _paused(pause: QueuePause) -> str:
    note = f" ({pause.note})" if pause.note else ""
    return f"{pause.paused_by} paused at {_at(pause.paused_at)}{note}"


def _at(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def _for(length: timedelta) -> str:
    """To the second: more digits only distract."""
    return format_duration(max(timedelta(), length - timedelta(microseconds=length.microseconds)))


def hindrance(facts: Facts, config: AlertsConfig) -> str | None:
    """Why slots are not decided about; None when they are, or there are none. Rules that are off count too:
    this is not an alert."""
    if not facts.scheduled:
        return None
    if not any(each.alive and each.role is Role.SCHEDULER for each in facts.processes):
        return "there are schedules, and no scheduler is alive"
    if facts.behind_since is not None and facts.now - facts.behind_since >= config.scheduler_lag:
        return f"schedulers are more than {format_duration(config.scheduler_lag)} behind"
    return None
