"""The state of a replay between two keys: the scene that is shown, the way there, breakpoints, and
what is open and under a cursor. Commands change it, draw.py shows it. It knows no terminal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...rows import Run
from ...screen.bookmarks import Marks, Place, Trail
from ...screen.lines import DisplayOptions
from ...screen.session import Work
from ...screen.text import Line, shown
from ...source_file import Excerpt
from ..breakpoints import Breakpoint, Watch
from .colours import Colours
from .layout import Layout
from .scene import Scene, Sight
from .variables_pane import Values

if TYPE_CHECKING:
    from ..moment import Moment

_STOPS = 100_000  # that are remembered


@dataclass(frozen=True)
class Other:
    """A file that is looked at, where the program is not."""

    file: str
    source: Excerpt
    colours: Colours


class Walk:
    """A replay of one run. scene: None if nothing was recorded. ascii: the terminal shows only
    ASCII; plain: no colours."""

    def __init__(self, path: str, run: Run, sight: Sight, *, ascii: bool, plain: bool) -> None:
        self.path, self.run, self.sight, self.plain = path, run, sight, plain
        self.display = DisplayOptions(ascii=ascii)
        self.parts = Layout()
        self.scene: Scene | None = None
        self.trail, self.marks = Trail(_STOPS), Marks()
        self.values = Values()
        self.focus = "source"
        self.other: Other | None = None
        self.cursor: int | None = None  # a line of the source; None: where the program is
        self.times: tuple[int, int] | None = None  # which time the line runs, and how often
        self.breakpoints: list[Breakpoint | Watch] = []
        self.tops = {"source": 1, "stack": 0}  # the line, the function in the first row of the pane
        self.sought: str | None = None  # the variable whose lines are gone through
        self.across = False  # steps follow the time over all threads
        self.message: Line | None = None
        self.typed = ""
        self.work: Work | None = None

    @property
    def runs(self) -> list[Run]:
        return [self.run]

    def is_live(self) -> bool:
        """Whether the program is still running."""
        return self.run.finished is None

    @property
    def place(self) -> Place:
        """Where we are: for the trail and for marks."""
        if self.scene is None:
            return Place(None, None)
        return Place(None, (self.scene.moment.time, self.scene.moment.id), self.scene.chosen)

    @property
    def moment(self) -> Moment:
        """Raises CommandError if there is none."""
        if self.scene is None:
            from ...screen.effects import CommandError

            raise CommandError("nothing was recorded in this run")
        return self.scene.moment

    def arrive(self, scene: Scene, remember: bool = True) -> None:
        """Shows another moment, or another function of the stack."""
        if self.scene is None or scene.moment.id != self.scene.moment.id:
            self.times = None
            if remember and self.scene is not None:
                self.trail.push(self.place)
        self.scene, self.run = scene, scene.run
        self.cursor = self.other = self.sought = None
        self.values.show(scene)

    # ---- the source ----

    @property
    def file(self) -> str:
        """The file that is shown."""
        return self.other.file if self.other else self.scene.file if self.scene else ""

    @property
    def line(self) -> int:
        """The line under the cursor."""
        if self.cursor is not None:
            return self.cursor
        return 1 if self.other or self.scene is None else self.scene.line

    @property
    def source(self) -> tuple[Excerpt, Colours]:
        """The lines of the file that is shown."""
        shown = self.other or self.scene
        return (shown.source, shown.colours) if shown else (Excerpt([]), Colours([]))

    # ---- what is said ----

    def say(self, text: str, style: str = "note") -> None:
        """A message at the bottom, until the next key."""
        text = shown(" ".join(text.split("\n")), self.display.ascii)
        self.message = Line(text, ((0, len(text), style),))

    def fit(self, width: int, height: int) -> None:
        """The screen has this size."""
        self.parts.fit(width, height)
        if self.focus not in self.parts.shown:
            self.focus = "source"

    # ---- stops ----

    def earlier(self, place: Place) -> Place | None:
        return self.trail.back(place)

    def later(self, place: Place) -> Place | None:
        return self.trail.forward(place)

    # ---- breakpoints ----

    def lines_with_breakpoints(self) -> set[int]:
        """Lines of the file that is shown."""
        places = [each.place for each in self.breakpoints if isinstance(each, Breakpoint)]
        return {place[1] for place in places if not isinstance(place, str) and place[0] == self.file}

    def breakpoint_at(self, file: str, line: int) -> Breakpoint | None:
        """The breakpoint of a line."""
        for each in self.breakpoints:
            if isinstance(each, Breakpoint) and each.place == (file, line):
                return each
        return None

    @property
    def lost_here(self) -> str:
        """How many events were lost at this moment."""
        scene = self.scene
        return scene.outcome.value if scene is not None and scene.outcome is not None else ""
