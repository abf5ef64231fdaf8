"""All that is shown of a moment, as one question to the database: the stack, the variables of one
of its functions, the source. `Sight` belongs to the database thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ...query import Query
from ...rows import Run
from ...source_file import Excerpt
from ...sources import Sources
from .. import state
from ..history import History
from ..moment import Moment, after, moments
from ..state import Frame, Item, Variable
from .colours import Colours

if TYPE_CHECKING:
    from ...database import Database

_FRAMES = 60  # of the stack whose lines are asked for; of further ones the function is known


class Returned(NamedTuple):
    """A call that has ended just before a line: its last event, and its value or exception."""

    moment: Moment
    value: Item


class Scene(NamedTuple):
    """stack: the innermost function first; chosen: the one whose variables and source are shown.
    fresh: the variables that are news now."""

    moment: Moment
    stack: list[Frame]
    chosen: int
    variables: list[Variable]
    fresh: frozenset[str]
    outcome: Item | None
    returned: Returned | None
    file: str
    line: int
    source: Excerpt
    colours: Colours
    run: Run
    has_lines: bool

    @property
    def frame(self) -> Frame | None:
        """The function that is shown."""
        return self.stack[self.chosen] if self.stack else None


class Sight:
    """Looks at moments of a run. coloured: source has colours, if Pygments is there."""

    def __init__(self, run: Run, coloured: bool) -> None:
        self._run, self._coloured = run, coloured
        self._sources: Sources | None = None
        self._colours: dict[str, Colours] = {}
        self._has_lines = False

    def first(self, database: Database, at: Moment | None) -> Scene | None:
        """Where a walk begins: at a moment, or with the run."""
        found = at or History(database, self._run.id).first()
        return self.look(database, found) if found else None

    def look(self, database: Database, moment: Moment, chosen: int = 0) -> Scene:
        """A moment, and the function `chosen` calls further out. Raises DatabaseError."""
        self._renew(database)
        stack = self._stack(database, moment, chosen)
        chosen = min(chosen, max(len(stack) - 1, 0))
        frame = stack[chosen] if stack else None
        variables = state.variables(database, frame.at, frame.entered) if frame else []
        file, line = (frame.entered.file, frame.line) if frame else (moment.file, moment.line)
        return Scene(
            moment, stack, chosen, variables, _fresh(moment, frame, variables),
            state.outcome(database, moment),
            _returned(database, moment) if chosen == 0 else None,
            file, line, *self.source(database, file), self._run, self._has_lines,
        )  # fmt: skip

    def source(self, database: Database, file: str) -> tuple[Excerpt, Colours]:
        """All lines of a file, with their colours."""
        if self._sources is None:
            self._sources = Sources(database, self._run)
        found = self._sources.whole(file)
        if file not in self._colours:
            self._colours[file] = Colours(found.lines if self._coloured else [])
        return found, self._colours[file]

    def _renew(self, database: Database) -> None:
        """What may have changed while the program runs."""
        if self._run.finished is None:
            self._run = next((each for each in database.runs() if each.id == self._run.id), self._run)
        if not self._has_lines:
            self._has_lines = History(database, self._run.id).has_lines()

    def _stack(self, database: Database, moment: Moment, chosen: int) -> list[Frame]:
        entered = state.entered(database, moment.id)
        asked = entered[: chosen + _FRAMES]
        callees = [None, *asked]
        known = [state.frame(database, moment, *each) for each in zip(asked, callees, strict=False)]
        if moment.func and (not entered or entered[0].depth < moment.depth):
            known.insert(0, Frame(moment, _last_line(database, moment)))
        return known + [Frame(each, each) for each in entered[len(known) :]]


def _last_line(database: Database, moment: Moment) -> Moment:
    """The place of a function whose beginning was removed, or lost: its line up to the moment."""
    if not moment.leaves:
        return moment
    thread = Query("run = ? AND stream = ?", (moment.run, moment.stream))
    before = moments(database, after(thread, moment, True), True, 1)
    is_line = bool(before) and before[0].kind == "line" and before[0].depth == moment.depth
    return before[0] if is_line else moment


def _fresh(moment: Moment, frame: Frame | None, variables: list[Variable]) -> frozenset[str]:
    """At an end, the news are those of a line that came just before it."""
    is_here = frame is not None and (frame.at.id == moment.id or moment.depth != frame.depth)
    is_end = frame is not None and moment.leaves and frame.at.time == moment.time
    if not (is_here or is_end):
        return frozenset()
    return frozenset(each.name for each in variables if each.is_new)


def _returned(database: Database, moment: Moment) -> Returned | None:
    """What the line before has called last, if it was recorded."""
    if moment.kind != "line":
        return None
    thread = Query("run = ? AND stream = ?", (moment.run, moment.stream))
    before = moments(database, after(thread, moment, True), True, 1)
    if not before or not before[0].leaves or before[0].depth != moment.depth + 1:
        return None
    value = state.outcome(database, before[0])
    return Returned(before[0], value) if value is not None else None
