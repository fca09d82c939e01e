"""The metrics of an app: one for all that a process does with it, its doors included."""

from __future__ import annotations

import weakref

from mainspring.app import Mainspring
from mainspring.monitor.metrics import Metrics

_known: weakref.WeakKeyDictionary[Mainspring, Metrics] = weakref.WeakKeyDictionary()


def metrics_of(app: Mainspring) -> Metrics:
    """Made when first asked for; raises InvalidConfig where the extra is missing."""
    found = _known.get(app)
    if found is None:
        found = _known[app] = Metrics(labels=app.settings.metrics.labels)
    return found
