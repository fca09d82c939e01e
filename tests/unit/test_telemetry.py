"""Events reach every sink, in order."""

from __future__ import annotations

from mainspring.telemetry import Event, HistoryPruned, StoreRecovered, Telemetry


def test_every_sink_hears_every_event_in_order() -> None:
    one: list[Event] = []
    two: list[Event] = []
    telemetry = Telemetry(one.append, two.append)
    events: list[Event] = [HistoryPruned(gone=1), StoreRecovered(loop="x"), HistoryPruned(gone=2)]
    for event in events:
        telemetry.emit(event)

    assert one == two == events


def test_no_sink_is_fine() -> None:
    Telemetry().emit(HistoryPruned(gone=1))


def test_a_sink_that_raises_hurts_neither_the_emitter_nor_the_other_sinks() -> None:
    heard: list[Event] = []

    def broken(event: Event) -> None:
        raise RuntimeError("a user's sink")

    Telemetry(broken, heard.append).emit(HistoryPruned(gone=1))

    assert len(heard) == 1
