"""Events reach every sink, in order."""

from __future__ import annotations

from collections.abc import Sequence

from mainspring.telemetry.events import Event, HistoryPruned, StoreRecovered, Telemetry


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


class _Crowd:
    """A sink that takes many at once."""

    def __init__(self) -> None:
        self.calls: list[list[Event]] = []

    def hear(self, event: Event) -> None:
        self.calls.append([event])

    def hear_all(self, events: Sequence[Event]) -> None:
        self.calls.append(list(events))


def test_of_many_each_sink_hears_all_in_order_and_one_that_can_hears_them_at_once() -> None:
    events: list[Event] = [HistoryPruned(gone=gone) for gone in range(3)]
    heard: list[Event] = []
    crowd = _Crowd()
    telemetry = Telemetry(crowd.hear, heard.append)

    telemetry.emit_all(events)
    telemetry.emit(events[0])

    assert heard == [*events, events[0]]
    assert crowd.calls == [events, [events[0]]]


def test_one_event_that_a_sink_fails_on_keeps_it_from_none_of_the_others() -> None:
    heard: list[Event] = []

    def picky(event: Event) -> None:
        if event == HistoryPruned(gone=1):
            raise ValueError("not this one")
        heard.append(event)

    Telemetry(picky).emit_all([HistoryPruned(gone=gone) for gone in range(3)])

    assert heard == [HistoryPruned(gone=0), HistoryPruned(gone=2)]
