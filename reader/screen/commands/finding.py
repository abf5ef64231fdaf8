"""Commands that search, filter and fold."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from ...rows import Row, level_of
from ...stretches import ALL, MINE, NEAR, is_hidden
from .. import navigation, pages
from ..bookmarks import Place
from ..effects import (
    Ask,
    Choice,
    Choose,
    CommandError,
    Effect,
    InBackground,
    RefreshPrompt,
    Result,
    RunTask,
    Say,
    TakeBack,
    Task,
)
from ..outline import outline
from ..session import Session
from ..view import ENTERS, Folds, Position, View, has_own, line_of, placed, reopened, revealing, span
from .command import Command, Count, Group, TypedCommand, current_row, number, task

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...database import Database
    from ...filter.tree import Filter
    from ...query import Query
    from ...suggestions.names import Names

_WHILE_TYPING = 0.5  # s that a search may take
_TYPED = 200  # characters; longer expressions are searched for when they are complete
_CASES = {None: "ignore case where no capital is typed", False: "heed case", True: "ignore case"}
_NO_PATTERN = "search for something first: / and a regular expression"


# ---- searching ----------------------------------------------------------------------------


def search(session: Session, count: Count) -> Ask:
    return _ask_pattern(session, False, count or 1)


def search_backward(session: Session, count: Count) -> Ask:
    return _ask_pattern(session, True, count or 1)


def _ask_pattern(session: Session, backwards: bool, count: int) -> Ask:
    """A prompt for a regular expression; the first hit is shown while it is typed."""
    from ..prompt_completion import check_pattern

    before, origin = session.search.pattern, session.browser.place()

    def left() -> Result:
        session.search.pattern = before
        return TakeBack("typing"), RunTask(session.browser.return_to(origin))

    def done(text: str) -> Result:
        return TakeBack("typing"), RunTask(_search(session, text, backwards, count, origin))

    return Ask(
        "?" if backwards else "/",
        done,
        history="search",
        left=left,
        changed=partial(_typed, session, origin, backwards),
        check=check_pattern,
    )


def _typed(session: Session, origin: Place, backwards: bool, text: str) -> Result:
    from ..search import BadPattern, Pattern, TimeUp, TooSlow, find

    taken_back = TakeBack("typing")
    if len(text) > _TYPED:
        return taken_back  # pasted, key by key
    try:
        session.search.pattern = pattern = Pattern(text, session.search.ignore_case) if text else None
    except BadPattern:
        return taken_back  # it is not finished
    if pattern is None:
        return taken_back
    query, (show, shown), start = session.browser.events(), session.searched(), origin.position
    if start and not backwards:
        start = (start[0], start[1] - 1)  # the present event may be a hit, too

    def question(database: Database) -> Row | None:
        try:
            return find(database, query, pattern, show, start, backwards, shown=shown, seconds=_WHILE_TYPING)
        except (TimeUp, TooSlow):
            return None  # Enter searches on

    def then(row: Row | None) -> Result:
        return None if row is None else RunTask(session.browser.show((row[2], row[0])))

    return InBackground("typing", question, then)


def _search(session: Session, text: str, backwards: bool, count: int, origin: Place) -> Task[None]:
    from ..search import Pattern

    if text:
        session.search.pattern = Pattern(text, session.search.ignore_case)
    session.search.backwards, session.search.highlight = backwards, True
    yield from session.browser.return_to(origin)
    yield from _next_hit(session, backwards, count)


def next_hit(session: Session, count: Count) -> RunTask:
    return RunTask(_next_hit(session, session.search.backwards, count or 1))


def previous_hit(session: Session, count: Count) -> RunTask:
    return RunTask(_next_hit(session, not session.search.backwards, count or 1))


def _next_hit(session: Session, backwards: bool, count: int) -> Task[None]:
    """Goes to the next hit; after the last one the search begins again at the other end."""
    from ..search import find

    pattern, browser = session.search.pattern, session.browser
    if pattern is None:
        raise CommandError(_NO_PATTERN)
    item = browser.current
    start = item.position if item else None
    events = browser.events()
    if session.is_live():  # new events may come faster than they are searched
        run = View(browser.view.run).events(session.runs)
        newest, _ = yield lambda database: pages.before(database, run, None, 1)
        events = events.also("time <= ?", newest[0][2]) if newest else events
    show, shown = session.searched()
    search = partial(find, query=events, pattern=pattern, show=show, backwards=backwards, shown=shown)
    again = False
    row: Row | None = None
    for _ in range(min(count, 10_000)):
        row = yield partial(search, start=start)
        if row is None and start is not None:
            again = True
            row = yield partial(search, query=_up_to(events, start, backwards), start=None)
        if row is None:
            yield Say(f"not found: {pattern.text}{(yield from _elsewhere(session, search))}", "error")
            return
        start = (row[2], row[0])
    if row is not None:
        session.search.found_at.add(row[2])
        yield from browser.go(row)
    if again:
        yield Say(f"the search began again at the {'end' if backwards else 'start'}")


def _elsewhere(session: Session, search: Callable[..., Row | None]) -> Task[str]:
    """Tells of hits in code that is not shown, as far as a short search finds them."""
    from ..search import TimeUp, TooSlow

    browser = session.browser
    if browser.view.scope is ALL:
        return ""
    every, start = browser.every(), browser.place().position

    def question(database: Database) -> bool:
        try:
            for begin in (start, None):
                if search(database, query=every, start=begin, seconds=_WHILE_TYPING):
                    return True
        except (TimeUp, TooSlow):
            pass
        return False

    found = yield question
    return " in your own code; there is a hit in library code: M shows all" if found else ""


def _up_to(query: Query, position: Position, backwards: bool) -> Query:
    """The events that have not been searched yet, from the other end."""
    return query.also("time >= ?" if backwards else "time <= ?", position[0])


def highlight(session: Session, count: Count) -> Say:
    session.search.highlight = not session.search.highlight
    return Say("hits are shown" if session.search.highlight else "hits are not shown")


def next_case(session: Session) -> Say:
    """Turns to the next mode: smart case, case matters, case is ignored."""
    found, order = session.search, list(_CASES)
    found.ignore_case = order[(order.index(found.ignore_case) + 1) % len(order)]
    if found.pattern is not None:
        from ..search import Pattern

        found.pattern = Pattern(found.pattern.text, found.ignore_case)
    return Say(f"searches {_CASES[found.ignore_case]}")


# ---- filtering ----------------------------------------------------------------------------


def filter(session: Session, count: Count) -> Result:
    return _ask_filter(session, _present_filter(session))


def _present_filter(session: Session) -> str:
    """The filter in force, in a form to edit."""
    from ..prompt_completion import editable

    tree = session.browser.view.filter
    return editable(tree) if tree else ""


def _ask_filter(session: Session, text: str) -> Result:
    """A prompt with completion, and with its mistakes shown while it is typed."""
    from ...suggestions.names import Names
    from ..prompt_completion import FilterCompletion

    completion = FilterCompletion(session.names)
    runs = [run.id for run in session.runs_shown()]

    def loaded(names: Names) -> Effect:
        session.names = completion.names = names
        return RefreshPrompt()

    ask = Ask(
        "filter: ",
        partial(set_filter, session),
        text=text,
        history="filter",
        complete=completion.complete,
        check=completion.check,
    )
    return ask, InBackground("names", lambda database: Names.load(database, runs), loaded)


@task
def set_filter(session: Session, wanted: str) -> Task[None]:
    from ...filter.parser import parse
    from ...suggestions.words import bare_word

    word = bare_word(wanted)
    if word:
        nothing = f"{word} is no function, argument or value that was recorded"
        yield from _offer(session, word, "filters with this word", nothing)
        return
    tree = parse(wanted) if wanted.strip() else None
    session.browser.remember()
    yield from session.browser.change(session.browser.view.filtered(tree))
    if tree is not None and not session.browser.items:
        title = "no event meets the filter; these find some (Esc: leave it so)"
        yield from _offer(session, tree, title, "no event meets the filter; Backspace goes back")


def _offer(session: Session, wanted: Filter | str, title: str, nothing: str) -> Task[None]:
    """Offers filters that find something: like one that finds nothing, or with a word. nothing: the
    message if there is none."""
    from ..prompt_completion import suggest

    runs = session.runs_shown()
    found = yield lambda database: suggest(database, wanted, runs)
    if not found:
        yield Say(nothing, "error")
        return
    choices = [Choice(each.text, each.text, _counted(each.events, each.all)) for each in found]
    yield Choose(title, choices, partial(set_filter, session))


def _counted(events: int, is_all: bool) -> str:
    return "1 event" if (events, is_all) == (1, True) else f"{events:,}{'' if is_all else ' or more'} events"


def filter_this(session: Session, count: Count) -> Choose:
    from ..prompt_completion import from_event

    offered = from_event(current_row(session), _present_filter(session))
    choices = [Choice(label, wanted) for label, wanted in offered]
    return Choose("a filter for", choices, partial(_ask_filter, session))


def more_context(session: Session, count: Count) -> Result:
    return _context(session, count or 1)


def less_context(session: Session, count: Count) -> Result:
    return _context(session, -(count or 1))


def _context(session: Session, more: int) -> Result:
    """More events are shown on each side of each match, or fewer."""
    browser = session.browser
    if browser.view.filter is None:
        raise CommandError("events around those that a filter finds: & sets a filter first")
    beside = browser.beside
    beside.show_near(beside.near + more)
    events = "event" if beside.near == 1 else "events"
    said = f"{beside.near} {events} on each side of each that the filter finds"
    return Say(said), RunTask(browser.rearrange())


# ---- folding ------------------------------------------------------------------------------


@task
def fold(session: Session, count: Count) -> Task[None]:
    """Closes the call at the cursor or around it, or opens a closed one."""
    browser = session.browser
    item = browser.current
    if item is None:
        raise CommandError("there is no event here")
    row, view, folds = item.row, browser.view, browser.view.folding
    if item.stretch is not None or (row[0] in view.stretches and view.filter is None):
        yield from browser.toggle_stretch(row)
        return
    if item.wait is not None or row[0] in view.waits:
        yield from browser.toggle_wait(row)
        return
    if row[6] not in ENTERS:
        row = yield lambda database: navigation.own(database, item.row)
        if row is None:
            raise CommandError("this event is in no recorded call")
    row = yield lambda database: placed(database, row, view.scope)
    around = yield lambda database: span(database, row)
    changed = folds.open(around) if folds.is_closed(row) else folds.close(around)
    shown = item.row if item.entry else row  # the filter may hide the call
    at = browser.row() if shown is item.row else None
    yield from browser.switch(Place(browser.view.folded(changed), (shown[2], shown[0]), at))


def close_level(session: Session, count: Count) -> Result:
    level = session.browser.view.folding.level
    if count is None:
        deepest = max((level_of(item.row) for item in session.browser.shown()), default=0)
        count = max((deepest if level is None else level) - 1, 0) + 1
    return show_levels(session, count)


@task
def open_level(session: Session, count: Count) -> Task[None]:
    level, run = session.browser.view.folding.level, session.browser.view.run
    if count is None and level is None:
        raise CommandError("all levels are shown")
    count = count or (level or 0) + 2
    deepest = yield lambda database: navigation.deepest(database, run)
    if count <= deepest:
        yield from _levels(session, count)
        return
    yield Say("all levels are shown")
    yield from session.browser.change(session.browser.view.folded(Folds()))


# ---- own code -----------------------------------------------------------------------------

_SCOPES = {
    MINE: "your own code: Enter opens a stretch of library code, M shows what your code calls",
    NEAR: "your own code, and the library functions that it calls: M shows all",
    ALL: "all code: M shows your own",
}


@task
def next_scope(session: Session, count: Count) -> Task[None]:
    """Goes round own code, that and what it calls, all."""
    browser, view = session.browser, session.browser.view
    if not (yield lambda database: has_own(database, view.run)):
        which = "the newest" if view.run is None else "this"
        raise CommandError(f"nothing of your own code is known in {which} recording: all is shown")
    scopes = list(_SCOPES)
    scope = scopes[(scopes.index(view.scope) + 1) % len(scopes)]
    yield Say(_SCOPES[scope])
    folds = Folds(closed=view.folds.closed)
    changed = replace(view, scope=scope, stretches={}, folds=folds, found_folds=Folds())
    if view.folds.level is not None and view.filter is None:  # it counts other calls
        runs, lines = session.runs, browser.outline_lines
        page = yield lambda database: outline(database, replace(changed, folds=Folds()), runs, lines)
        changed = replace(changed, folds=replace(page.view.folds, closed=view.folds.closed))
    item, row = browser.current, browser.row()
    position = item.position if item else None
    if item is not None and view.filter is None:
        here, opened = item.row, view.folds.opened
        changed = yield lambda database: reopened(database, changed, opened)
        # a wider scope shows the line, too; only its level might be another one
        is_wider = scope is ALL or (view.scope is MINE and scope is NEAR and not is_hidden(here))
        line = here
        if not (is_wider and changed.folds.is_open):
            line = yield lambda database: line_of(database, changed, here)
        position = line[2], line[0]
        folds = yield lambda database: revealing(database, changed.folds, line, scope)
        changed = replace(changed, folds=folds)
    yield from browser.switch(Place(changed, position, row))


# ---- layers -------------------------------------------------------------------------------


@task
def layers(session: Session, count: Count) -> Task[None]:
    """Offers the layers of what is shown; the chosen one is hidden, or shown again."""
    view = session.browser.view
    recorded = yield lambda database: navigation.layers(database, view.run)
    if len(recorded) < 2 and not view.without:
        raise CommandError("all is Python here; --c-calls, --native and --kernel record other layers, too")
    choices = [
        Choice(name, name, "hidden; Enter shows it" if name in view.without else "shown; Enter hides it")
        for name in recorded
    ]
    yield Choose("layers", choices, partial(_switch_layer, session))


@task
def _switch_layer(session: Session, layer: str) -> Task[None]:
    browser, view = session.browser, session.browser.view
    is_hidden = layer in view.without
    yield Say(f"layer {layer}: {'shown' if is_hidden else 'hidden; S shows it again'}")
    yield from browser.change(replace(view, without=view.without ^ {layer}))


@task
def show_levels(session: Session, count: int) -> Task[None]:
    yield from _levels(session, count)


def _levels(session: Session, count: int) -> Task[None]:
    """So many levels are shown; the calls on the last one are closed."""
    levels = max(count, 1)
    shown = "1 level is shown" if levels == 1 else f"{levels} levels are shown"
    yield Say(shown if session.browser.view.filter is None else f"{shown}, and no deeper matches")
    folds = Folds().at_level(levels - 1)
    yield from session.browser.change(session.browser.view.folded(folds))


# ---- the tables ---------------------------------------------------------------------------

SEARCHING = Group(
    "Searching",
    (
        Command(
            "search", ("/",), "for a regular expression, forward; without capitals it ignores case", search
        ),
        Command("search-backward", ("?",), "… backward", search_backward),
        Command("next-hit", ("n",), "to the next hit, or the N-th", next_hit),
        Command("previous-hit", ("N",), "to the one before", previous_hit),
        Command("highlight", ("meta u",), "hits are shown, or not", highlight, stays=True),
    ),
)
FOLD = Command("fold", ("enter",), "a call and what is in it becomes one line, or is shown again", fold)
FILTERING = Group(
    "Filtering and folding",
    (
        Command("filter", ("&", "r"), "only events that meet a condition; an empty one shows all", filter),
        Command("filter-this", ("*",), "makes a filter of what is under the cursor", filter_this),
        FOLD,
        Command(
            "more-context",
            ("+",),
            "shows an event more, or N, on each side of what a filter finds",
            more_context,
        ),
        Command("less-context", ("_",), "… fewer", less_context),
        Command(
            "scope", ("M",), "your own code; with the library functions that it calls; all code", next_scope
        ),
        Command("layers", ("S",), "hides a layer, or shows it: Python, Cython, C, native, kernel", layers),
        Command("close-level", (",",), "shows a level less; N: N levels", close_level),
        Command("open-level", (".",), "shows a level more; N: N levels", open_level),
    ),
)
FILTER = TypedCommand("filter", "F", set_filter, "sets a filter")
LEVEL = TypedCommand(
    "level",
    "N",
    lambda session, typed: show_levels(session, number(typed, "levels")),
    "shows N levels of calls",
)
