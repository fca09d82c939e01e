"""The live screen of `top`: it draws frames, asks before each order, and stays if the database is away."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import DataTable, Footer, Input, Static

from mainspring.admin.health.top import Frame
from mainspring.cli.output import printable
from mainspring.cli.top_panes import Line, Order, Pane, headline, order, panes
from mainspring.clock import Clock
from mainspring.errors import MainspringError

Table = DataTable[Text]
_MOST_WRONG = 3
_SLOW = timedelta(seconds=3)


class TopScreen(App[None]):
    """Draws what `read` answers, and has `carry_out` do what was agreed to."""

    ENABLE_COMMAND_PALETTE = False
    TITLE = "mainspring top"
    # No meaning is in a colour: the selected line is reversed, the focused pane has a heavy edge.
    CSS = """
    #head, #said, #filter { height: 1; text-wrap: nowrap; text-overflow: ellipsis; }
    #wrong { height: auto; max-height: 3; text-style: bold; text-wrap: nowrap; text-overflow: ellipsis; }
    #filter { display: none; border: none; padding: 0; }
    DataTable { height: 1fr; min-height: 3; border-top: solid $foreground; scrollbar-size: 0 1; }
    DataTable:focus { height: 2fr; border-top: heavy $foreground; }
    DataTable > .datatable--header { text-style: bold; background: $surface; }
    DataTable > .datatable--cursor { text-style: none; background: $surface; color: $foreground; }
    DataTable:focus > .datatable--cursor { text-style: reverse; }
    Confirm, Help { align: center middle; }
    .dialog { width: auto; max-width: 76; height: auto; border: heavy $foreground; padding: 0 1; }
    .dialog Static { width: auto; max-width: 72; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("p", "order('p')", "pause/resume"),
        Binding("r", "order('r')", "retry"),
        Binding("c", "order('c')", "cancel"),
        Binding("t", "order('t')", "trigger"),
        Binding("slash", "filter", "filter", key_display="/"),
        Binding("s", "sort", "sort"),
        Binding("question_mark", "help", "help", key_display="?"),
        Binding("q", "quit", "quit"),
        Binding("ctrl+c", "quit", show=False, priority=True),
        Binding("escape", "unfilter", show=False),
    ]

    def __init__(
        self,
        first: Frame,
        read: Callable[[], Awaitable[Frame]],
        carry_out: Callable[[Order], Awaitable[str]],
        *,
        where: str,
        every: timedelta,
        clock: Clock,
    ) -> None:
        super().__init__()
        self._frame, self._read, self._carry_out = first, read, carry_out
        self._where, self._every, self._clock = where, every, clock
        self._asked_at: float | None = None
        self._away = ""
        self._said = ""
        self._holding = ""
        self._sorted: dict[str, int | None] = {}
        self._lines: dict[str, tuple[Line, ...]] = {}

    def compose(self) -> ComposeResult:
        """From top to bottom, in 24 lines or more."""
        yield Static(id="head", markup=False)
        yield Static(id="wrong", markup=False)
        for pane in panes(self._frame):
            table: Table = DataTable(id=pane.name, cursor_type="row", cell_padding=1)
            yield table
        yield Input(id="filter", placeholder="only lines that hold this text", compact=True)
        yield Static(id="said", markup=False)
        yield Footer(compact=True)

    def on_mount(self) -> None:
        """Show the first frame, then look again and again."""
        self.draw()
        self.query_one("#queues").focus()
        self.set_interval(self._every.total_seconds(), self.look)

    def look(self) -> None:
        """Read a frame, unless one is being read: a slow database is asked once, not every second."""
        if self._asked_at is None:
            self._asked_at = self._clock.monotonic()
            self.run_worker(self.tick(), name="look")
        elif self._clock.monotonic() - self._asked_at > _SLOW.total_seconds():
            waited = self._clock.monotonic() - self._asked_at
            self._tell_wrong(f"the database has not answered for {waited:.0f} s; this is what it said last")

    async def tick(self) -> None:
        """One pass: read everything, draw what changed."""
        try:
            self._frame = await self._read()
            self._away = ""
        except MainspringError as error:
            self._away = str(error)
        finally:
            self._asked_at = None
        self.draw()

    def draw(self) -> None:
        """Bring the screen up to the frame; only cells that changed are drawn again."""
        with self.batch_update():
            self.query_one("#head", Static).update(headline(self._frame, self._where, width=self.size.width))
            self._tell_wrong(f"the database is away: {self._away}; trying on" if self._away else "")
            self.query_one("#said", Static).update(printable(self._said))
            for pane in panes(self._frame):
                self._show(pane.holding(self._holding).sorted_by(self._sorted.get(pane.name)), pane)

    def _tell_wrong(self, first: str) -> None:
        said = [f"! {printable(first)}"] if first else []
        said += [f"! {each.severity}: {printable(each.sentence)}" for each in self._frame.wrong]
        if len(said) > _MOST_WRONG:
            said = [
                *said[: _MOST_WRONG - 1],
                f"! and {len(said) - _MOST_WRONG + 1} more: `mainspring top --once`",
            ]
        self.query_one("#wrong", Static).update("\n".join(said) or "nothing is wrong")

    def _show(self, pane: Pane, whole: Pane) -> None:
        table = self.query_one(f"#{pane.name}", DataTable)
        shown = f"{len(pane.lines)} of {len(whole.lines)}" if self._holding else f"{len(pane.lines)}"
        column = self._sorted.get(pane.name)
        by = "" if column is None else f", by {pane.columns[column].lower()}"
        table.border_title = f"{pane.title} ({shown}{by})"
        if not table.columns:
            for title in pane.columns:
                table.add_column(title, key=title)
        before = self._lines.get(pane.name, ())
        self._lines[pane.name] = pane.lines
        if [each.key for each in before] == [each.key for each in pane.lines]:
            for old, new in zip(before, pane.lines, strict=True):
                for title, was, cell in zip(pane.columns, old.cells, new.cells, strict=True):
                    if was != cell:
                        table.update_cell(new.key, title, Text(cell), update_width=True)
            return
        held = before[table.cursor_row].key if table.cursor_row < len(before) else None
        place, top = table.cursor_row, table.scroll_y
        table.clear()
        for each in pane.lines:
            table.add_row(*map(Text, each.cells), key=each.key)
        keys = [each.key for each in pane.lines]
        table.move_cursor(
            row=keys.index(held) if held in keys else min(place, max(len(keys) - 1, 0)), scroll=False
        )
        table.scroll_to(y=top, animate=False)

    def _line(self) -> tuple[str, Line] | None:
        table = self.focused
        if not isinstance(table, DataTable) or table.id is None:
            return None
        lines = self._lines.get(table.id, ())
        return (table.id, lines[table.cursor_row]) if table.cursor_row < len(lines) else None

    def action_order(self, key: str) -> None:
        """Ask whether to do what the key means on the selected line."""
        found = self._line()
        wanted = "there is no line here" if found is None else order(key, *found)
        if isinstance(wanted, str):
            self._say(wanted)
            return

        def answered(agreed: bool | None) -> None:
            if agreed:
                self.run_worker(self._obey(wanted), name="order")
            else:
                self._say("nothing was done")

        self.push_screen(Confirm(printable(wanted.question)), answered)

    async def _obey(self, wanted: Order) -> None:
        try:
            self._say(await self._carry_out(wanted))
        except MainspringError as error:
            self._say(f"not done: {error}")
        self.look()

    def _say(self, text: str) -> None:
        self._said = text
        self.query_one("#said", Static).update(printable(text))

    def action_sort(self) -> None:
        """By the next column of the focused pane, and after the last in its own order."""
        table = self.focused
        if isinstance(table, DataTable) and table.id is not None:
            column = self._sorted.get(table.id)
            following = 0 if column is None else column + 1
            self._sorted[table.id] = following if following < len(table.columns) else None
            self.draw()

    def action_filter(self) -> None:
        """Ask for a text."""
        field = self.query_one("#filter", Input)
        field.display = True
        field.focus()

    def on_input_submitted(self, given: Input.Submitted) -> None:
        """Show only lines that hold it."""
        self._holding = given.value.strip()
        given.input.display = False
        self.query_one("#queues").focus()
        self.draw()

    def action_unfilter(self) -> None:
        """Show all lines again."""
        field = self.query_one("#filter", Input)
        field.value, field.display, self._holding = "", False, ""
        self.query_one("#queues").focus()
        self.draw()

    def action_help(self) -> None:
        """The keys."""
        self.push_screen(Help())


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
