"""`pytrace print`: chooses events and format, and explains an empty result."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

import apsw

from ..messages import say, tell
from . import later
from .database import Database, DatabaseError, explained
from .output import Output
from .progress import Progress
from .query import EVERY, INDEX_BITS, Query, as_it_is, neighbours, one, pages, stack

if TYPE_CHECKING:
    from types import SimpleNamespace

    from .filter.tree import Filter
    from .render import Renderer
    from .rows import Row, Run

T = TypeVar("T")
_LOOK_SECONDS = 0.05  # --follow: between two looks at the database
_BESIDE = 10  # --around: events on each side ...
_ABOVE = 30  # ... and calls above them, as text


def run(options: SimpleNamespace) -> int:
    """Prints events by the options. Returns the exit status. Raises DatabaseError, OSError."""
    from .filter.tree import FilterError

    progress = Progress()
    database = Database(options.database, progress.look)
    try:
        return _Print(database, options, progress).run()
    except FilterError as error:
        say(f"this filter cannot be read:\n{error}")
        _offer_words(database, options, progress)
        return 2
    finally:
        progress.clear()
        database.close()


class _Print:
    def __init__(self, database: Database, options: SimpleNamespace, progress: Progress) -> None:
        self.database, self.options, self.progress = database, options, progress
        self.output = Output(options.format == "text", progress)
        self.filter = _parsed(options.filter)
        self.runs: list[Run] = []

    def run(self) -> int:
        options = self.options
        if options.stack is not None or options.around is not None:
            return self._about(options.around if options.stack is None else options.stack)
        self.runs = chosen(self.database, options.run)
        query = self._query()
        if options.explain:
            self._explain(query)
            return 0
        shown = self._show(self._lines(query))
        damages = self.database.damages()
        if not shown and not damages and options.limit != 0:
            self._say_nothing()
        return self._report()

    def _runs_query(self) -> Query:
        if self.options.run is None:
            return EVERY
        return Query("run = ?", (self.runs[0].id if self.runs else 0,))

    def _query(self) -> Query:
        query = self._runs_query()
        if self.options.mine:
            query = self._own(query)
        if self.filter:
            from .filter.sql import compile

            asked = compile(self.filter, self.runs)
            query = query.also(asked.where, *asked.parameters)
        return query

    def _own(self, query: Query) -> Query:
        """Those of own code; as text the first event of each stretch of others, too."""
        if self.options.format != "text":
            return query.also("mine = 1")
        from .stretches import MINE

        query = query._replace(place=MINE.place)
        return query.also("mine = 1") if self.filter else query.also("event MATCH ?", MINE.stretches)

    def _explain(self, query: Query) -> None:
        from .filter.sql import explain

        self.output.write([explain(query)])

    def _lines(self, query: Query) -> Iterator[list[str]]:
        render = self._renderer()
        if not query.place:
            yield from self._pages(query, render)
            return
        from .render import TextRenderer
        from .stretches import MINE, read, with_following

        assert isinstance(render, TextRenderer)
        for rows in self._pages(query, as_it_is):
            found = read(self.database, with_following(rows), MINE.stretches)
            yield [render.other(row, found[row[0]].line) if row[0] in found else render(row) for row in rows]

    def _pages(self, query: Query, make: Callable[[Row], T]) -> Iterator[list[T]]:
        if not (self.options.follow and self.runs):
            # a program may record faster than lines are written
            query = query.also("id < ?", self._end())
            return pages(self.database, query, make, self.options.limit)
        from .follow import follow

        run = self.runs[0].id
        return follow(self.database, run, query, make, lambda: self.output.wait(_LOOK_SECONDS))

    def _end(self) -> int:
        """An id above those of all events stored until now."""
        ((last,),) = self.database.query("i", "SELECT coalesce(max(id), 0) FROM segment")
        return min(int(last + 1) << INDEX_BITS, (1 << 63) - 1)

    def _show(self, found: Iterable[list[str]]) -> int:
        """Prints the lines. Returns the number of events."""
        shown, limit = 0, self.options.limit
        if limit == 0:
            found = ()
        for lines in found:
            if limit is not None:
                lines = lines[: limit - shown]
            self.output.write(lines)
            shown += len(lines)
            if shown == limit:
                break
        self.output.flush()
        return shown

    def _renderer(self) -> Renderer:
        from . import render

        if self.options.format == "json":
            return render.json_renderer()
        if self.options.format == "csv":
            self.output.line(",".join(render.KEYS))
            return render.csv_renderer()
        from .signatures import Signatures

        signatures = Signatures()

        def has_arguments(event: Row) -> bool:
            if event not in signatures:
                signatures.read(self.database, event[1])
            return signatures.has_arguments(event)

        return render.TextRenderer(
            [source for run in self.runs for source in self.database.sources(run.id)],
            colour=wants_colour(self.options.color),
            has_arguments=has_arguments,
        )

    def _about(self, id: int) -> int:
        """--around and --stack."""
        event = one(self.database, id)
        if event is None:
            say(f"there is no event {id} in {self.database.path} (any more)")
            return self._report() or 2
        run = event[1]
        self.runs = [each for each in self.database.runs() if each.id == run]
        render = self._renderer()
        limit = self.options.limit
        calls = stack(self.database, id)
        if self.options.stack is not None:
            shown = calls if limit is None else calls[max(len(calls) - limit, 0) :]
            self.output.write([*map(render, shown)])
            return self._report()
        before, after = neighbours(self.database, event, _BESIDE if limit is None else limit)
        near = [*before, event, *after]
        beside = {row[0] for row in near}
        above = [call for call in calls if call[0] not in beside]
        if self.options.format == "text":
            if len(above) > _ABOVE:
                self.output.line(f"  … {len(above) - _ABOVE:,} calls further up (--stack {id} shows them)")
            self.output.write(["  " + render(call) for call in above[-_ABOVE:]])
            if above:
                self.output.write(["  …"])
            self.output.write([("> " if row is event else "  ") + render(row) for row in near])
        else:
            self.output.write([*map(render, above), *map(render, near)])
        return self._report()

    def _report(self) -> int:
        """Reports segments that could not be read, and skipped content. Returns the exit status."""
        from .damage import report

        self.progress.clear()
        lines = report(self.database.damages())
        for line in [*lines, *later.told(self.database, [run.id for run in self.runs])]:
            say(line)
        return 2 if lines else 0

    def _say_nothing(self) -> None:
        """Says why nothing was shown; if the filter is the reason, with filters that find
        something."""
        self.progress.clear()
        numbers = [run.id for run in self.runs]
        if self.options.mine and not self._has_own():
            say("nothing of your own code was recorded: leave --mine out to see all")
            return
        if not self.filter or not self._has_events(numbers):
            say(_why_nothing(self.database, self.runs, self.options.follow))
            return
        from .suggestions.corrections import corrections, rendered
        from .suggestions.counting import counter
        from .suggestions.names import Names

        try:
            found = corrections(
                self.filter,
                Names.load(self.database, numbers),
                self.runs,
                counter(self.database.connection(), numbers),
            )
        except apsw.Error as error:
            raise explained(self.database.path, error) from error
        self.progress.clear()
        tell(rendered(self.filter.text, found))

    def _has_own(self) -> bool:
        query = self._runs_query().also("mine = 1")
        return bool(
            self.database.query("i", f"SELECT 1 FROM event WHERE {query.where} LIMIT 1", query.parameters)
        )

    def _has_events(self, runs: list[int]) -> bool:
        marks = ", ".join("?" * len(runs))
        return bool(self.database.query("i", f"SELECT 1 FROM segment WHERE run IN ({marks}) LIMIT 1", runs))


def _offer_words(database: Database, options: SimpleNamespace, progress: Progress) -> None:
    """If the filter is a bare word, tells the filters with it that find something."""
    from .suggestions.corrections import offered
    from .suggestions.counting import counter
    from .suggestions.words import bare_word, offers

    word = bare_word(options.filter)
    if not word:
        return
    try:
        runs = chosen(database, options.run)
        found = offers(word, runs, counter(database.connection(), [run.id for run in runs]))
    except (DatabaseError, apsw.Error):
        return  # the mistake has been told
    finally:
        progress.clear()
    if found:
        tell(offered(found))


def _parsed(text: str) -> Filter | None:
    """None: no filter. Raises FilterError."""
    if not text.strip():
        return None
    from .filter.parser import parse

    return parse(text)


def chosen(database: Database, number: int | None) -> list[Run]:
    """`number`: None for all runs, 0 for the newest."""
    runs = database.runs()
    if number is None:
        return runs
    if number == 0:
        return runs[-1:]
    chosen = [run for run in runs if run.id == number]
    if not chosen:
        there = ", ".join(str(run.id) for run in runs[-10:]) or "none"
        earlier = "..., " if len(runs) > 10 else ""
        raise DatabaseError(f"{database.path} has no run {number}; there are: {earlier}{there}")
    return chosen


def wants_colour(choice: str) -> bool:
    """Whether standard output gets colours. choice: auto, always or never."""
    if choice != "auto":
        return choice == "always"
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _why_nothing(database: Database, runs: list[Run], followed: bool) -> str:
    if not runs:
        return f"{database.path} holds no recording yet. Record one with: pytrace script.py"
    if any(run.evicted for run in runs):
        return "all events of this run were removed to keep the size (a larger --max-size helps)"
    if not followed and any(run.finished is None for run in runs):
        return "nothing has been recorded yet; --follow waits for what comes"
    return "nothing was recorded in this run"
