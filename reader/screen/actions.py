"""What each command does. A method for each of the table in keys.py, called by the app with the number
that was typed before the key, or None. Those that ask the database are tasks (browser.py).
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from ..model import Row, text
from . import keys, moves
from .browser import Task
from .folds import ENTERS, Folds, span
from .look import TIMES
from .places import Place
from .status import whereabouts
from .view import View

if TYPE_CHECKING:
    from ..database import Database
    from .app import App

Count = int | None
_FAR = 10_000  # the N-th next of something


class Mistake(Exception):
    """Something cannot be done; the message says why."""


class Actions:
    """The commands, on an app."""

    def __init__(self, app: App) -> None:
        self.app, self.browser = app, app.browser
        self._half: int | None = None  # lines of half a screen, once given

    def _row(self) -> Row:
        """The event under the cursor."""
        item = self.browser.current
        if item is None:
            raise Mistake("there is no event here")
        return item.row

    # ---- moving ----

    def forward_line(self, count: Count) -> Task[None]:
        return self.browser.scroll(count or 1)

    def backward_line(self, count: Count) -> Task[None]:
        return self.browser.scroll(-(count or 1))

    def forward_window(self, count: Count) -> Task[None]:
        return self.browser.scroll(count or max(len(self.browser.shown()), 1))

    def backward_window(self, count: Count) -> Task[None]:
        return self.browser.scroll(-count) if count else self.browser.screen_back()

    def forward_half(self, count: Count) -> Task[None]:
        self._half = count or self._half
        return self.browser.scroll(self._half or max(self.browser.height // 2, 1))

    def backward_half(self, count: Count) -> Task[None]:
        self._half = count or self._half
        return self.browser.scroll(-(self._half or max(self.browser.height // 2, 1)))

    def first(self, count: Count) -> Task[None]:
        self._remember()
        if count:
            yield from self._nth(count)
        else:
            yield from self.browser.first()

    def last(self, count: Count) -> Task[None]:
        self._remember()
        if count:
            yield from self._nth(count)
        else:
            yield from self.browser.last()

    def _nth(self, number: int) -> Task[None]:
        query = self.browser.query()
        row = yield lambda database: moves.nth(database, query, number)
        if row is None:
            self.app.say("there are fewer events than that")
            yield from self.browser.last()
        else:
            yield from self.browser.show((row[2], row[0]), 0)

    def percent(self, count: Count) -> Task[None]:
        self._remember()
        timeline = yield from self.app.following.course()
        share = min(count or 0, 100) / 100
        if timeline is None or timeline.events == 0 or share == 0:
            yield from self.browser.first()
        elif share == 1:
            yield from self.browser.last()
        else:
            yield from self.browser.show((timeline.time_at(share), 0), 0)

    def time(self, count: Count) -> None:
        self.app.prompts.line("time: ", self.go_to_time, history="time")

    def go_to_time(self, wanted: str) -> Task[None]:
        from .when import when

        timeline = yield from self.app.following.course()
        run = self.app.run_here()
        if run is None:
            raise Mistake("there is no recording yet")
        try:
            at = when(wanted, run, timeline.last if timeline else run.started)
        except ValueError as error:
            raise Mistake(str(error)) from None
        self._remember()
        yield from self.browser.show((at, 0), 0)

    def cursor_down(self, count: Count) -> Task[None]:
        return self.browser.move_cursor(count or 1)

    def cursor_up(self, count: Count) -> Task[None]:
        return self.browser.move_cursor(-(count or 1))

    def right(self, count: Count) -> None:
        self._aside(count or max(self.browser.width // 2, 1))

    def left(self, count: Count) -> None:
        self._aside(-(count or max(self.browser.width // 2, 1)))

    def _aside(self, columns: int) -> None:
        self.browser.left = max(self.browser.left + columns, 0)
        self.browser.aside = True

    # ---- jumping ----

    def _remember(self) -> None:
        self.browser.trail.push(self.browser.place())

    def _jump(self, question: Callable[[Database], Row | None], nothing: str) -> Task[None]:
        row = yield question
        if row is None:
            self.app.say(nothing)
        elif not (yield from self.browser.go(row)):
            self.app.say("the filter hides it: & with an empty line shows all events")

    def _structural(self, move: Callable[[Database, Row], Row | None], nothing: str) -> Task[None]:
        row = self._row()
        return self._jump(lambda database: move(database, row), nothing)

    def partner(self, count: Count) -> Task[None]:
        if count is not None:
            return self.percent(count)
        return self._structural(
            moves.partner, "nothing belongs to this event: it has not ended, or was not recorded"
        )

    def caller(self, count: Count) -> Task[None]:
        return self._walk(moves.caller, count, "this is the outermost call", "")

    def first_callee(self, count: Count) -> Task[None]:
        return self._structural(moves.first_callee, "it made no call")

    def last_callee(self, count: Count) -> Task[None]:
        return self._structural(moves.last_callee, "it made no call")

    def next_sibling(self, count: Count) -> Task[None]:
        return self._structural(moves.next_sibling, "no further call on this level")

    def previous_sibling(self, count: Count) -> Task[None]:
        return self._structural(moves.previous_sibling, "no call before on this level")

    def _next(self, move: Callable[..., Row | None], count: Count, nothing: str) -> Task[None]:
        """The N-th next of something within run and filter."""
        within = partial(move, query=self.browser.events())
        return self._walk(within, count, nothing, "; this is the last one")

    def _walk(self, move: Callable[..., Row | None], count: Count, nothing: str, last: str) -> Task[None]:
        """So many steps, all in one question. nothing: is said where there is none, and `last` behind it
        where there were some."""
        start = self._row()

        def question(database: Database) -> tuple[Row, bool]:
            row = start
            for _ in range(min(count or 1, _FAR)):
                found = move(database, row=row)
                if found is None:
                    return row, True
                row = found
            return row, False

        row, is_end = yield question
        if is_end:
            self.app.say(nothing if row is start else nothing + last)
        if row is not start and not (yield from self.browser.go(row)):
            self.app.say("the filter hides it: & with an empty line shows all events")

    def next_function(self, count: Count) -> Task[None]:
        return self._next(
            partial(moves.next_of_function, backwards=False), count, "no later event of this function"
        )

    def previous_function(self, count: Count) -> Task[None]:
        return self._next(
            partial(moves.next_of_function, backwards=True), count, "no earlier event of this function"
        )

    def next_thread(self, count: Count) -> Task[None]:
        return self._next(
            partial(moves.next_of_thread, backwards=False), count, "no later event of this thread"
        )

    def previous_thread(self, count: Count) -> Task[None]:
        return self._next(
            partial(moves.next_of_thread, backwards=True), count, "no earlier event of this thread"
        )

    def next_value(self, count: Count) -> Task[None]:
        return self._value(count, False)

    def previous_value(self, count: Count) -> Task[None]:
        return self._value(count, True)

    def _value(self, count: Count, backwards: bool) -> Task[None]:
        """Of one argument at once, of several the one that is chosen."""
        from .menu import Choice

        values = _values(self._row())
        if not values:
            raise Mistake("this event has no value")
        word = "earlier" if backwards else "later"

        def of(name: str, value: str) -> Task[None]:
            move = partial(moves.next_of_value, name=name, value=value, backwards=backwards)
            return self._next(move, count, f"no {word} event with {name} = {value[:40]}")

        if len(values) == 1:
            return of(*values[0])
        last = self.app.last_value
        if last in values and self.app.repeated:  # the key again: the same argument
            return of(*last)

        def chosen(value: tuple[str, str]) -> Task[None]:
            self.app.last_value = value
            return of(*value)

        choices = [Choice(f"{name} = {value}", (name, value), "") for name, value in values]
        self.app.prompts.choose(f"{word} event with the value of", choices, chosen)
        return _nothing()

    def next_exception(self, count: Count) -> Task[None]:
        return self._next(partial(moves.next_exception, backwards=False), count, "no later exception")

    def previous_exception(self, count: Count) -> Task[None]:
        return self._next(partial(moves.next_exception, backwards=True), count, "no earlier exception")

    def next_slow(self, count: Count) -> Task[None]:
        return self._slow(count, False)

    def previous_slow(self, count: Count) -> Task[None]:
        return self._slow(count, True)

    def _slow(self, count: Count, backwards: bool) -> Task[None]:
        from ..render import duration

        app = self.app
        if count:
            app.slow = count * 1_000_000
        if app.slow is None:
            run = self._row()[1]
            app.slow = yield lambda database: moves.slow_enough(database, run)
        move = partial(moves.next_slow, nanoseconds=app.slow, backwards=backwards)
        word = "earlier" if backwards else "later"
        least = f"{duration(app.slow)} or more (N and the key: N milliseconds; :slow 5ms)"
        app.say(f"calls of {least}")
        yield from self._next(move, None, f"no {word} call of {least}")

    def next_loss(self, count: Count) -> Task[None]:
        return self._next(partial(moves.next_loss, backwards=False), count, "nothing was lost later")

    def previous_loss(self, count: Count) -> Task[None]:
        return self._next(partial(moves.next_loss, backwards=True), count, "nothing was lost earlier")

    def back(self, count: Count) -> Task[None]:
        return self._travel(self.browser.trail.back, "this is where we began")

    def forward(self, count: Count) -> Task[None]:
        return self._travel(self.browser.trail.forward, "there is nothing to go forward to")

    def _travel(self, step: Callable[[Any], Any], nothing: str) -> Task[None]:
        place = step(self.browser.place())
        if place is None:
            self.app.say(nothing)
            return
        yield from self.browser.return_to(place)

    def mark(self, letter: str) -> None:
        self.app.marks.set(letter, self.browser.place())
        self.app.say(f"marked: '{letter} comes back here")

    def to_mark(self, letter: str) -> Task[None]:
        if letter == "^":
            yield from self.first(None)
        elif letter == "$":
            yield from self.last(None)
        else:
            place = self.browser.trail.latest if letter == "'" else self.app.marks.get(letter)
            if place is None:
                known = letter.isalpha() and len(letter) == 1
                raise Mistake(
                    f"there is no mark {letter}: m{letter} sets one" if known else "there was no jump yet"
                    if letter == "'" else "a mark is a letter, or one of ' ^ $"
                )  # fmt: skip
            self._remember()
            yield from self.browser.return_to(place)

    # ---- searching ----

    def search(self, count: Count) -> None:
        self.app.searching.ask(False, count or 1)

    def search_backward(self, count: Count) -> None:
        self.app.searching.ask(True, count or 1)

    def next_hit(self, count: Count) -> Task[None]:
        return self.app.searching.next(self.app.searching.backwards, count or 1)

    def previous_hit(self, count: Count) -> Task[None]:
        return self.app.searching.next(not self.app.searching.backwards, count or 1)

    def highlight(self, count: Count) -> None:
        searching = self.app.searching
        searching.highlight = not searching.highlight
        self.app.say("hits are shown" if searching.highlight else "hits are not shown")

    # ---- filtering and folding ----

    def filter(self, count: Count) -> None:
        self.app.prompts.filter(self._filter())

    def _filter(self) -> str:
        """The present filter, as it can be edited."""
        from .asking import editable

        tree = self.browser.view.filter
        return editable(tree) if tree else ""

    def filter_this(self, count: Count) -> None:
        from .asking import from_event
        from .menu import Choice

        choices = [Choice(label, wanted, "") for label, wanted in from_event(self._row(), self._filter())]
        self.app.prompts.choose("a filter for", choices, self.app.prompts.filter)

    def set_filter(self, wanted: str) -> Task[None]:
        from ..filter import parse

        tree = parse(wanted) if wanted.strip() else None
        self._remember()
        yield from self.browser.change(dataclasses.replace(self.browser.view, filter=tree))
        if tree is not None and not self.browser.items:
            yield from self.app.prompts.corrections(tree)

    def fold(self, count: Count) -> Task[None]:
        """Closes the call that the cursor is on or in, or opens the one that is closed."""
        browser = self.browser
        item = browser.current
        if item is None:
            raise Mistake("there is no event here")
        self._check_unfiltered()
        row, folds = item.row, browser.view.folds
        if row[6] not in ENTERS:
            row = yield lambda database: moves.own(database, item.row)
            if row is None:
                raise Mistake("this event is in no recorded call")
        around = yield lambda database: span(database, row)
        changed = folds.open(around) if item.closed else folds.close(around)
        at = browser.row()
        view = dataclasses.replace(browser.view, folds=changed)
        yield from browser.switch(Place(view, (row[2], row[0]), at if row is item.row else None))

    def _check_unfiltered(self) -> None:
        if self.browser.view.filter is not None:
            raise Mistake(
                "calls are folded where all events are shown: & and an empty line take the filter away"
            )

    def close_level(self, count: Count) -> Task[None]:
        level = self.browser.view.folds.level
        if count is None:
            deepest = max((item.row[11] for item in self.browser.shown()), default=0)
            count = max((deepest if level is None else level) - 1, 0) + 1
        return self.levels(count)

    def open_level(self, count: Count) -> Task[None]:
        level, run = self.browser.view.folds.level, self.browser.view.run
        if count is None and level is None:
            raise Mistake("all levels are shown")
        count = count or (level or 0) + 2
        deepest = yield lambda database: moves.deepest(database, run)
        if count <= deepest:
            yield from self.levels(count)
            return
        self.app.say("all levels are shown")
        yield from self.browser.change(dataclasses.replace(self.browser.view, folds=Folds()))

    def levels(self, count: int) -> Task[None]:
        """So many levels are shown; the calls on the last one are closed."""
        self._check_unfiltered()
        levels = max(count, 1)
        self.app.say("1 level is shown" if levels == 1 else f"{levels} levels are shown")
        folds = Folds().at_level(levels - 1)
        return self.browser.change(dataclasses.replace(self.browser.view, folds=folds))

    # ---- while the program runs ----

    def follow(self, count: Count) -> Task[None]:
        self.app.following.start()
        return self.browser.last()

    def follow_until(self, count: Count) -> Task[None]:
        if self.app.searching.pattern is None:
            raise Mistake("search for something first: / and a regular expression")
        self.app.following.start(until_hit=True)
        return self.browser.last()

    # ---- looking closer ----

    def detail(self, count: Count) -> Task[None]:
        self.app.toggle("detail")
        return self.browser.settle()

    def detail_down(self, count: Count) -> None:
        self.app.panes.scroll(count or 1)

    def detail_up(self, count: Count) -> None:
        self.app.panes.scroll(-(count or 1))

    def where(self, count: Count) -> Task[None]:
        position, events = self.browser.place().position, self.browser.events()
        before = 0
        if position is not None:
            before = yield lambda database: moves.earlier(database, events, position)
        self.app.say(whereabouts(self.app, before + 1))

    def edit(self, count: Count) -> None:
        from .editor import EditorMissing, command

        row = self._row()
        file = text(row[9])
        if not file or file.startswith("<"):
            raise Mistake(f"this event has no source file ({file or 'none is known'})")
        run = self.app.run_here()
        path = os.path.join(run.directory if run else "", file)
        if not os.path.isfile(path):
            raise Mistake(f"{path} is not there (any more)")
        try:
            problem = self.app.outside.call(command(path, row[10], os.environ))
        except EditorMissing as error:
            raise Mistake(str(error)) from None
        if problem:
            raise Mistake(problem)

    def copy(self, count: Count, file: str = "") -> None:
        item = self.browser.current
        if item is None:
            raise Mistake("there is no event here")
        self._copy(self.browser.line(item).text, "the line", file)

    def copy_value(self, count: Count, file: str = "") -> None:
        from .menu import Choice

        values = _values(self._row())
        if not values:
            raise Mistake("this event has no value")
        if len(values) == 1:
            self._copy(values[0][1], values[0][0], file)
            return
        choices = [Choice(f"{name} = {value}", (name, value), "") for name, value in values]
        self.app.prompts.choose(
            "copy the value of", choices, lambda chosen: self._copy(chosen[1], chosen[0], file)
        )

    def _copy(self, text: str, what: str, file: str) -> None:
        try:
            self.app.say(self.app.outside.copy(text, what, file))
        except FileExistsError:
            raise Mistake(f"{file} is there already") from None

    # ---- everything else ----

    def switch(self, letter: str) -> Task[None] | None:
        found = next((switch for switch in keys.SWITCHES if switch.letter == letter), None)
        if found is None:
            letters = " ".join(f"-{switch.letter}" for switch in keys.SWITCHES)
            raise Mistake(f"there is no switch -{letter}; there are: {letters}")
        return self.set(found.name)

    def set(self, name: str) -> Task[None] | None:
        """Turns a switch."""
        app, look = self.app, self.app.look
        change: dict[str, Any] = {}
        match name:
            case "case":
                app.searching.next_case()
                return None
            case "wrap":
                self.browser.wrap = not self.browser.wrap
                app.say("long lines are wrapped" if self.browser.wrap else "long lines are cut")
                return self.browser.settle()
            case "minimap" | "stack":
                app.say(f"{name}: {'on' if app.toggle(name) else 'off'}")
                return self.browser.settle()
            case "times":
                change["time"] = TIMES[(TIMES.index(look.time) + 1) % len(TIMES)]
                shown = {
                    "clock": "of the day",
                    "date": "with the date",
                    "start": "since the start",
                    "off": "not shown",
                }
                app.say(f"times: {shown[change['time']]}")
            case "numbers":
                change["ids"] = not look.ids
            case "thread" | "process":
                change[name] = not app.is_shown(name)
            case _:
                change[name] = not getattr(look, name)
        if "time" not in change:
            (is_on,) = change.values()
            app.say(f"{name}: {'on' if is_on else 'off'}")
        app.change_look(dataclasses.replace(look, **change))
        return self.browser.settle()

    def command(self, count: Count) -> None:
        self.app.prompts.command()

    def redraw(self, count: Count) -> Task[None]:
        self.app.forget()
        return self.browser.switch(self.browser.place())

    def help(self, count: Count) -> None:
        self.app.prompts.help()

    def quit(self, count: Count) -> None:
        self.app.quit()

    def open(self, path: str) -> Task[None]:
        """Another database. Where it cannot be read, this one stays."""
        from ..database import Database

        yield lambda _: Database(path).close()
        self.app.open(path)

    def show_run(self, run: int | None) -> Task[None]:
        self._remember()
        yield from self.browser.switch(Place(View(run, self.browser.view.filter), None))


def _nothing() -> Task[None]:
    return
    yield


def _values(row: Row) -> list[tuple[str, str]]:
    """Names and values of an event."""
    from ..render import arguments

    return [(each["name"], each["value"]) for each in arguments(row[13])]
