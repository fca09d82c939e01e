"""Whether the whole makes progress: what an outside watch is told, and a probe asks."""

from __future__ import annotations

from mainspring.config import AlertsConfig
from mainspring.duration import written
from mainspring.model.fleet import Role
from mainspring.model.trouble import Facts


def hindrance(facts: Facts, config: AlertsConfig) -> str | None:
    """Why slots are not decided about; None when they are, or there are none. Rules that are off count too:
    this is not an alert."""
    if not facts.scheduled:
        return None
    if not any(each.alive and each.role is Role.SCHEDULER for each in facts.members):
        return "there are schedules, and no scheduler is alive"
    if facts.behind_since is not None and facts.now - facts.behind_since >= config.scheduler_lag:
        return f"schedulers are more than {written(config.scheduler_lag)} behind"
    return None
