"""What `top` puts in front of its panes: a question to be answered with yes or no, and the keys."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static

KEYS = """\
Tab, Shift+Tab   the next pane, the one before
Up, Down         the next line, the one before
p   pause or resume the line's queue; under Next fires, the schedule
r   retry the job of a failure: a waiting one runs now, a dead one again
c   cancel the job: for good, and taken from its worker if it runs
t   trigger the schedule: a job now, besides its slots
/   show only lines that hold a text; empty shows all
s   sort the pane by its next column
?   this page        q   quit

Orders ask first; y agrees. They are the commands `queues`, `jobs`
and `schedules` of the command line, given under your name.
Any key closes this page."""


class Confirm(ModalScreen[bool]):
    """Only y agrees; everything else leaves things as they are."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("y", "dismiss(True)", "yes"),
        ("n,escape,q,enter", "dismiss(False)", "no"),
    ]

    def __init__(self, question: str) -> None:
        super().__init__()
        self._question = question

    def compose(self) -> ComposeResult:
        """One box in the middle."""
        with Vertical(classes="dialog"):
            yield Static(self._question, markup=False, id="question")
            yield Static("y yes    n no", markup=False)


class Help(ModalScreen[None]):
    """The keys."""

    def compose(self) -> ComposeResult:
        """One box in the middle."""
        with Vertical(classes="dialog"):
            yield Static(KEYS, markup=False)

    def on_key(self) -> None:
        """Any key closes it."""
        self.dismiss(None)
