"""What the screen shows besides the events: the calls above the first line, and all about one event. Asked
for in the background, whenever the events on the screen are others. app.py calls it, layout.py draws it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..model import Row
from . import live
from .model import Item
from .tasks import Tasks

if TYPE_CHECKING:
    from .detail import Detail


class Panes:
    """stack: the innermost calls around the first line; detail: of the event under the cursor, scrolled down
    by `top` lines."""

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        self.stack: list[Row] = []
        self.detail: Detail | None = None
        self.top = 0
        self._stack_of: tuple[int, int] | None = None  # event and count
        self._detail_of: Item | None = None
        self._scrolled_in = 0  # the id of this event

    def want(self, first: Row | None, stack_rows: int, current: Item | None, is_detailed: bool) -> None:
        """Asks for what is not the right one yet. first: the event of the first line."""
        if first is not None and first[6] == "call" and first[11] == 0:
            self.stack, self._stack_of = [], None  # there is none around it
        elif stack_rows and first is not None and (first[0], stack_rows) != self._stack_of:
            self._stack_of = first[0], stack_rows
            self._tasks.ask(
                "stack", lambda database: live.stack(database, first, stack_rows), self._take_stack
            )
        if is_detailed and current != self._detail_of:
            self._detail_of = current
            if current is None:
                self.detail = None
            else:
                from .detail import detail

                self._tasks.ask("detail", lambda database: detail(database, current), self._take_detail)

    def _take_stack(self, rows: list[Row]) -> None:
        self.stack = rows

    def _take_detail(self, detail: Detail) -> None:
        if self._scrolled_in != detail.row[0]:  # another event: from its beginning
            self._scrolled_in, self.top = detail.row[0], 0
        self.detail = detail

    def scroll(self, lines: int) -> None:
        """The lines about the event, down or up."""
        self.top = max(self.top + lines, 0)

    def forget(self) -> None:
        """Both are to be asked for again."""
        self._stack_of = self._detail_of = None
