"""The settings of alerts: which rules, how soon, to which notifiers, and the quiet hours."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import time, timedelta
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from mainspring.config.checks import check_flag, check_length, check_range, check_signing
from mainspring.errors import InvalidConfig
from mainspring.model.alert import Rule

LOG = "log"
_SECOND, _MINUTE, _HOUR, _DAY = (timedelta(seconds=n) for n in (1, 60, 3600, 86400))
_MOST_TARGETS = 20
_LONGEST_TARGET = 2048
_TARGET = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,40}://[!-~]+")
_HOURS = re.compile(r"([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)", re.ASCII)
_TARGET_EXPECTED = "log, or a URL such as https://example.com/hook, mailto://… or another that apprise knows"


def masked_target(target: str) -> str:
    """A target as it may be shown: its kind and its host. Anything else of such a URL may be a secret: a
    token in a path is as good as a password."""
    if target == LOG or "://" not in target:
        return target if target == LOG else "***"
    scheme, _, rest = target.partition("://")
    host = re.split(r"[/?#]", rest, maxsplit=1)[0].rpartition("@")[2]
    if scheme.lower() in ("http", "https", "json", "jsons"):
        return f"{scheme}://{host}/***"
    # For most other kinds, the token itself stands where a host would be.
    name = urlsplit(f"//{host}").hostname or ""
    return (
        f"{scheme}://{name}/***"
        if scheme.lower() in ("mailto", "mailtos") and "." in name
        else f"{scheme}://***"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertsConfig:
    """What is watched, and where alerts go."""

    enabled: bool = True
    to: tuple[str, ...] = (LOG,)
    """Where alerts go: `log`, webhooks (https://…), mail (mailto://…), and whatever apprise knows."""
    off: tuple[str, ...] = ()
    """Rules that are switched off."""
    every: timedelta = 5 * _SECOND
    """How often the store is looked at."""
    missed_after: timedelta = _MINUTE
    """A slot that is not decided so long after its moment was missed."""
    dropped_window: timedelta = _DAY
    """How long dropped slots of a schedule are an alert; a backfill of them ends it sooner."""
    late_after: timedelta = 10 * _MINUTE
    """A slot's job that is due so long and never started is late, unless its schedule says otherwise."""
    failed_window: timedelta = _HOUR
    """How long dead letters of a task are an alert, counted from the last of them."""
    failing_after: int = 3
    """So many jobs of a schedule that died in a row."""
    retrying_after: timedelta = 10 * _MINUTE
    """How long the runs of a task must fail, with none that succeeds, to be an alert."""
    dead_growth: int = 10
    """So many dead letters in `dead_window` are too many."""
    dead_window: timedelta = 10 * _MINUTE
    oldest_waiting: timedelta = 15 * _MINUTE
    """How long a job that is due may wait in its queue."""
    no_worker_after: timedelta = _MINUTE
    """How long a queue with jobs that are due may be without a worker that takes them."""
    no_scheduler_after: timedelta = 10 * _SECOND
    """How long after its lease ended the last scheduler may be missing; after a clean stop it is
    `restart_within`."""
    restart_within: timedelta = _MINUTE
    """How long a start or a deploy may take: no work for so long is not reported."""
    scheduler_lag: timedelta = 30 * _SECOND
    """How far schedulers may be behind."""
    lost_window: timedelta = 10 * _MINUTE
    """How long a lost process is an alert."""
    clock_skew: timedelta = 5 * _SECOND
    """How far a process's clock may be from the database's."""
    outage_after: timedelta = 2 * _MINUTE
    """For how long nothing must have run for an outage to be reported afterwards."""
    store_after: timedelta = 30 * _SECOND
    """How long a process may be without its store."""
    recover_after: timedelta = 15 * _SECOND
    """How long a trouble must be gone before its alert is closed."""
    repeat: timedelta = timedelta()
    """How often an alert that is open and not acknowledged is sent again; zero sends it once."""
    quiet: str = ""
    """Hours in which only critical alerts are sent, such as 22:00-07:00; the others are sent after them."""
    quiet_zone: str = "UTC"
    """The time zone of the quiet hours."""
    storm: int = 10
    """More notes than this at a time become one message."""
    attempts: int = 8
    """How often a note is tried before it is given up."""
    timeout: timedelta = 10 * _SECOND
    """How long one delivery may take."""
    secret: str = ""
    """Webhooks are signed with it: whsec_ and base64, as the Standard Webhooks have it."""
    allow_private: tuple[str, ...] = ()
    """Networks that webhooks and the ping may reach although they are private, such as 127.0.0.0/8."""
    ping_url: str = ""
    """Requested every `ping_every` while schedulers and workers make progress, so that a service outside
    notices its end."""
    ping_every: timedelta = _MINUTE

    def __post_init__(self) -> None:
        check_flag("alerts.enabled", self.enabled)
        _check_targets(self.to)
        _check_rules(self.off)
        check_length("alerts.every", self.every, least=_SECOND / 10, most=_HOUR)
        for name in (
            "missed_after", "dropped_window", "late_after", "failed_window", "dead_window", "oldest_waiting",
            "scheduler_lag", "lost_window", "store_after", "no_worker_after", "no_scheduler_after",
            "retrying_after",
            "clock_skew", "outage_after",
        ):  # fmt: skip
            check_length(f"alerts.{name}", getattr(self, name), least=_SECOND, most=365 * _DAY)
        check_length("alerts.restart_within", self.restart_within, most=_DAY)
        check_length("alerts.recover_after", self.recover_after, most=_DAY)
        if self.repeat:
            check_length("alerts.repeat", self.repeat, least=_MINUTE)
        check_length("alerts.timeout", self.timeout, least=_SECOND / 10, most=_MINUTE)
        check_length("alerts.ping_every", self.ping_every, least=_SECOND, most=_DAY)
        check_range("alerts.failing_after", self.failing_after, 1, 20)
        check_range("alerts.dead_growth", self.dead_growth, 1, 10_000)
        check_range("alerts.storm", self.storm, 1, 1_000)
        check_range("alerts.attempts", self.attempts, 1, 100)
        _check_quiet(self.quiet)
        _check_zone(self.quiet_zone)
        check_signing("alerts.secret", self.secret)
        if self.ping_url and not _TARGET.fullmatch(self.ping_url):
            raise InvalidConfig(
                "alerts.ping_url", masked_target(self.ping_url), "a URL such as https://example.com/ping"
            )

    @property
    def quiet_hours(self) -> tuple[time, time] | None:
        """From when to when, by the clock of `quiet_zone`; None when there are none."""
        found = _HOURS.fullmatch(self.quiet)
        if found is None:
            return None
        return time(int(found[1]), int(found[2])), time(int(found[3]), int(found[4]))

    def __repr__(self) -> str:
        to = ", ".join(masked_target(each) for each in self.to)
        return f"AlertsConfig(enabled={self.enabled}, to=({to}), off={self.off})"


def _check_targets(targets: tuple[str, ...]) -> None:
    if not isinstance(targets, tuple) or len(targets) > _MOST_TARGETS:
        raise InvalidConfig("alerts.to", f"{len(targets)} targets", f"at most {_MOST_TARGETS}")
    for each in targets:
        fit = isinstance(each, str) and len(each) <= _LONGEST_TARGET
        if not fit or not (each == LOG or _TARGET.fullmatch(each)):
            # The value stays out of the message: it may be a secret.
            raise InvalidConfig("alerts.to", masked_target(each) if fit else type(each), _TARGET_EXPECTED)
    if len(set(targets)) < len(targets):
        raise InvalidConfig("alerts.to", "a target that is there twice", "each once")


def _check_rules(off: tuple[str, ...]) -> None:
    for each in off:
        if each not in tuple(Rule):
            raise InvalidConfig("alerts.off", each, f"one of {', '.join(Rule)}")


def _check_quiet(quiet: str) -> None:
    if not quiet:
        return
    found = _HOURS.fullmatch(quiet) if isinstance(quiet, str) else None
    if found is None or found.group(1, 2) == found.group(3, 4):
        raise InvalidConfig("alerts.quiet", quiet, "from and to, such as 22:00-07:00")


def _check_zone(zone: str) -> None:
    try:
        ZoneInfo(zone)
    except (OSError, KeyError, ValueError, TypeError):
        raise InvalidConfig("alerts.quiet_zone", zone, "a time zone such as Europe/Berlin") from None
