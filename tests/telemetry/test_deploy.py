"""What is shipped for Grafana, Prometheus and systemd names only what exists; and so does the page about it.

`promtool` would say whether the expressions are right; it is no package. What can be known without it is
looked at here: every name, every label, balanced brackets.
"""

from __future__ import annotations

import configparser
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from mainspring.monitor.catalogue import ALL, Metric, series
from tests.support.metrics import BEGIN, END, PAGE, table

DEPLOY = Path(__file__).parents[2] / "deploy"
KNOWN = {name: each for each in ALL for name in series(each)}
NAME = re.compile(r"\b(mainspring_[a-z_]+)\b(?:\{([^}]*)\})?")
LABEL = re.compile(r'([a-z_]+)\s*(?:=~|!~|!=|=)\s*"')
BY = re.compile(r"\bby \(([^)]*)\)")
#: Given by Prometheus itself, or by the kind of metric.
ALWAYS = {"instance", "job", "le"}


def expressions() -> Iterator[tuple[str, str]]:
    rules = yaml.safe_load((DEPLOY / "prometheus/alerts.yml").read_text())
    for group in rules["groups"]:
        for rule in group["rules"]:
            yield rule["alert"], rule["expr"]
    for panel in dashboard()["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"]


def dashboard() -> dict[str, Any]:
    return dict(json.loads((DEPLOY / "grafana/mainspring.json").read_text()))


def test_every_metric_and_label_that_is_asked_for_exists() -> None:
    asked = set()
    for where, expression in expressions():
        assert expression.count("(") == expression.count(")"), where
        assert expression.count("{") == expression.count("}"), where
        named = [(KNOWN.get(name), inside) for name, inside in NAME.findall(expression)]
        assert named and all(metric is not None for metric, _ in named), f"{where}: {expression}"
        labels = {label for metric, _ in named if metric for label in metric.labels} | ALWAYS
        used = {label for _, inside in named for label in LABEL.findall(inside)}
        used |= {word.strip() for by in BY.findall(expression) for word in by.split(",")}
        assert used <= labels, f"{where}: {used - labels} is no label of what it asks for"
        asked |= {metric.name for metric, _ in named if metric}
    for variable in dashboard()["templating"]["list"]:
        if variable["type"] == "query":
            [(metric, label)] = re.findall(r"label_values\((\w+), (\w+)\)", variable["query"]["query"])
            assert label in (*KNOWN[metric].labels, *ALWAYS)
    assert len(asked) > 20, "else nothing was looked at"


def test_rules_say_how_bad_it_is_and_what_it_is() -> None:
    rules = yaml.safe_load((DEPLOY / "prometheus/alerts.yml").read_text())["groups"][0]["rules"]
    assert len({rule["alert"] for rule in rules}) == len(rules)
    for rule in rules:
        assert rule["labels"]["severity"] in ("critical", "warning")
        assert rule["annotations"]["summary"]
        assert re.fullmatch(r"\d+[smh]", rule.get("for", "1m"))
    scrape = yaml.safe_load((DEPLOY / "prometheus/prometheus.yml").read_text())
    assert scrape["rule_files"] == ["alerts.yml"]
    panels = dashboard()["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)


def test_units_are_what_the_code_says_to_the_manager() -> None:
    for role in ("worker", "scheduler"):
        unit = configparser.ConfigParser(interpolation=None, strict=True)
        unit.optionxform = str  # type: ignore[assignment,method-assign]
        unit.read(DEPLOY / f"systemd/mainspring-{role}.service")
        service = unit["Service"]
        assert service["Type"] == "notify" and f"mainspring {role} " in service["ExecStart"]
        assert int(service["WatchdogSec"]) > 30, "a stuck loop is noticed after metrics.stuck_after"


def test_the_page_lists_every_metric() -> None:
    page = PAGE.read_text(encoding="utf-8")
    written = page.partition(BEGIN)[2].partition(END)[0]
    assert written == table(), "`python -m tests.support.metrics --write` writes it anew"


def test_names_are_as_prometheus_wants_them() -> None:
    for metric in ALL:
        assert re.fullmatch(r"mainspring_[a-z_]+", metric.name), metric.name
        assert metric.help.endswith("."), metric.name
        assert _unit(metric), (
            f"{metric.name}: seconds are base units, counters have no unit suffix of their own"
        )


def _unit(metric: Metric) -> bool:
    if metric.kind == "histogram":
        return metric.name.endswith("_seconds")
    return not metric.name.endswith(("_total", "_ms", "_bucket", "_sum", "_count"))
