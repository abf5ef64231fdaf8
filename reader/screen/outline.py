"""The outline that the reader opens with: the program's calls down to the level that fits on the
screen, each as one line. A question (pages.py); it never reads more events than a few screens have.
"""

from __future__ import annotations

import itertools
import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from ..stretches import MINE
from . import pages
from .view import Folds, View, has_own

if TYPE_CHECKING:
    from ..database import Database
    from ..rows import Row, Run

_MAIN = ("call", b"__main__", b"<module>")
_LEAST = 200  # events that are asked for
_PATIENCE = 0.06  # s, until no further level is tried
_SPARSE = 4  # the part of the screen that an outline fills, at least


class FirstPage(NamedTuple):
    """The first events of a view, and whether there are no more. cursor: the id of the event to
    begin with, if it is not the first."""

    view: View
    rows: list[Row]
    ended: bool
    cursor: int | None = None


def open_view(database: Database, view: View, runs: list[Run], lines: int) -> FirstPage:
    """The view of a run that the reader opens with: of own code, if any is known; else the cursor
    is on the main module, which mostly stands behind imports."""
    if os.environ.get("PYTRACE_VIEW") == "all":
        return FirstPage(view, *pages.after(database, view.lines(runs), None, max(_LEAST, 2 * lines)))
    if has_own(database, view.run):
        return outline(database, replace(view, scope=MINE), runs, lines)
    page = outline(database, view, runs, lines)
    main = (row[0] for row in page.rows if row[6:9] == _MAIN)
    return page._replace(cursor=next(main, None))


def outline(database: Database, view: View, runs: list[Run], lines: int) -> FirstPage:
    """The view folded at the deepest level that fits into so many lines; not folded if all events
    fit, and under a filter. An outline of very few lines shows one level more, and of that what
    fits."""
    count = max(_LEAST, 2 * lines)
    if view.filter is not None:
        return FirstPage(view, *pages.after(database, view.lines(runs), None, count))
    until = time.monotonic() + _PATIENCE
    best: FirstPage | None = None
    filled = 0
    for level in itertools.count():
        folded = replace(view, folds=Folds(level))
        page = FirstPage(folded, *pages.after(database, folded.lines(runs), None, count, _PATIENCE))
        items = folded.items(page.rows)
        is_late = not page.ended and len(page.rows) < count
        if not page.ended or len(items) > lines:
            return best if best and (is_late or filled >= lines // _SPARSE) else page
        if not any(item.closed for item in items):
            return page._replace(view=replace(view, folds=Folds()))
        best, filled = page, len(items)
        if time.monotonic() > until:
            break
    return page
