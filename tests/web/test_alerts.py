"""Alerts and the state of the whole by HTTP."""

from __future__ import annotations

from mainspring.model.alert import Rule
from tests.support.door import House, open_alert


def test_an_alert_is_listed_shown_and_acknowledged_once(house: House) -> None:
    house.run(open_alert, house.app)

    [alert] = house.get("/alerts?state=open").json()["items"]
    shown = house.get(f"/alerts/{alert['id']}").json()
    acks = [house.post(f"/alerts/{alert['id']}/ack", role="operator").json()["changed"] for _ in range(2)]

    assert (alert["rule"], alert["subject"], alert["state"]) == ("no_worker", "mail", "open")
    assert [(each["target"], each["state"]) for each in shown["notes"]] == [("https://h/***", "waiting")]
    assert acks == [True, False]
    assert house.get(f"/alerts/{alert['id']}").json()["acked_by"] == "test-operator"
    assert house.get("/alerts?state=recovered").json()["items"] == []


def test_a_test_reaches_the_targets_that_are_set_and_no_other(sqlite_house: House) -> None:
    reached = sqlite_house.post("/alerts/test", {"to": ["log"]})
    other = sqlite_house.post("/alerts/test", {"to": ["https://example.com/"]})

    assert [(each["target"], each["kind"], each["delivered"]) for each in reached.json()["items"]] == [
        ("log", "opened", True),
        ("log", "recovered", True),
    ]
    assert (other.status_code, other.json()["field"]) == (422, "to")


def test_status_says_what_is_wrong(sqlite_house: House) -> None:
    answer = sqlite_house.get("/status").json()

    assert not answer["ok"]
    assert "failed" in {each["rule"] for each in answer["troubles"]}
    assert (answer["workers"], answer["dead"]) == (1, 1)
    assert len(sqlite_house.get("/alerts/rules").json()["items"]) == len(Rule)
