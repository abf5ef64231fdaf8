"""Draws a walk: the panes under their titles, the status line, a line for messages. It depends on
the walk alone."""

from __future__ import annotations

import os

from ...render import duration
from ...screen.lines import clock, joined
from ...screen.paint import Rows
from ...screen.text import Line, Markup, chop, fold, part, shown
from ..state import Frame
from . import variables_pane
from .walk import Walk

_ROOMY = 60  # columns: the status has room for two times
_LONGEST = 400  # characters of a value in the status line
_SIGNS = {"▶": ">", "●": "*", "─": "-", "│": "|"}
_WORDS = {"return": "returns", "yield": "yields", "exception": "ends with", "raise": "raises"}


def compose(walk: Walk, height: int) -> Rows:
    """The screen's rows; there are fewer if a prompt takes some."""
    parts = walk.parts
    rows = Rows(parts.width)
    if parts.is_too_small:
        rows.line(Line("too small a screen"))
        return rows
    prompted = height < parts.height
    message = walk.message or Line(walk.typed)
    told = [] if prompted or parts.height < 5 else fold(message, parts.width)[: parts.most_message_rows]
    if walk.scene is None:
        rows.line(Line(f"-- {nothing(walk)} --"))
    elif parts.beside:
        left, right = _pane(walk, "source"), _pane(walk, "variables")
        rows.side_by_side(left, Markup([("dim", _sign(walk, "│"))], 1), right)
    else:
        for pane in ("source", "variables"):
            _add(rows, _pane(walk, pane))
    if walk.scene is not None:
        _add(rows, _pane(walk, "stack"))
    rows.fill(max(height - 1 - len(told), 0))
    if walk.message is not None and parts.height < 5:
        rows.line(walk.message)
    else:
        rows.line(status(walk), "bar")
    for row in told:
        rows.add(row)
    return rows


def nothing(walk: Walk) -> str:
    """Why there is no moment to show."""
    if walk.is_live():
        return "the program has begun; there are no events yet: n looks again"
    return "nothing was recorded in this run"


def _add(rows: Rows, pane: Rows) -> None:
    rows.texts += pane.texts
    rows.attributes += pane.attributes


def _sign(walk: Walk, sign: str) -> str:
    return _SIGNS[sign] if walk.display.ascii else sign


def _pane(walk: Walk, pane: str) -> Rows:
    rows, height = Rows(walk.parts.columns[pane]), walk.parts.rows[pane]
    if height:
        {"source": _source, "variables": _variables, "stack": _stack}[pane](walk, rows, height - 1)
        rows.fill(height)
    return rows


def _title(walk: Walk, rows: Rows, pane: str, text: str) -> None:
    """The pane's first row; of the pane with the focus it stands out."""
    text = f" {text} "
    line = Line(text + _sign(walk, "─") * max(rows.width - len(text), 0))
    if walk.focus == pane:
        line = line._replace(spans=((0, len(text), "title"),))
        rows.line(line, "bar")
    else:
        rows.line(line._replace(spans=((0, len(line.text), "dim"),)))


# ---- source -------------------------------------------------------------------------------


def _source(walk: Walk, rows: Rows, height: int) -> None:
    scene, (source, colours) = walk.scene, walk.source
    assert scene is not None
    display = walk.display
    name = f"{display.shown(os.path.basename(walk.file) or walk.file or 'no file')}:{walk.line}"
    if walk.other is None and scene.frame is not None:
        name += f"  {display.shown(scene.frame.entered.func)}"
    _title(walk, rows, "source", name)
    lines, here = source.lines, 0 if walk.other else scene.line
    notes = [source.note] if source.note else []
    if not scene.has_lines:
        notes.append("no lines were recorded: pytrace --lines does; these are calls and their ends")
    for note in notes[: max(height - 1, 0)]:
        rows.line(Line(display.shown(note), ((0, len(note), "note"),)))
    height -= len(notes)
    if not lines:
        return
    at = min(max(walk.line, 1), len(lines))
    first = max(min(at - height // 2, len(lines) - height + 1), 1)
    walk.tops["source"] = first - len(notes)
    digits = len(str(lines[-1][0]))
    stops = walk.lines_with_breakpoints()
    for number, text in lines[first - 1 : first - 1 + max(height, 0)]:
        sign = _sign(walk, "▶") if number == here else " "
        gutter = f"{_sign(walk, '●') if number in stops else ' '}{sign}{number:>{digits}} "
        safe = display.shown(text)
        line = colours.line(number, safe) if safe == text else Line(safe)
        moved = part(line, 0, len(safe), gutter)
        spans = ((0, 1, "exception"), (1, len(gutter), "key" if number == here else "dim"), *moved.spans)
        is_cursor = number == at and number != here
        rows.line(Line(moved.text, spans), "cursor" if number == here else "bar" if is_cursor else "")


# ---- variables ----------------------------------------------------------------------------


def _variables(walk: Walk, rows: Rows, height: int) -> None:
    values = walk.values
    _title(walk, rows, "variables", "variables")
    values.top = max(min(values.top, values.at, len(values.rows) - height), values.at - height + 1, 0)
    for place, row in enumerate(values.rows[values.top : values.top + height], values.top):
        is_cursor = place == values.at and walk.focus == "variables"
        rows.line(variables_pane.line(values, row, walk.display), "cursor" if is_cursor else "")
    if not any(row.variable for row in values.rows):
        for markup in fold(Line(no_variables(walk)), rows.width, at_words=True):
            rows.add(markup)


def no_variables(walk: Walk) -> str:
    """Why there are no variables."""
    scene = walk.scene
    if scene is None or scene.frame is None:
        return "-- it is in no function --"
    if not scene.frame.entered.enters:
        return "-- not known: the beginning of this call was removed, or lost --"
    if not scene.has_lines:
        return "-- without arguments; pytrace --lines records variables --"
    return "-- no variables yet --" if scene.frame.at.kind == "line" else "-- no arguments --"


# ---- stack --------------------------------------------------------------------------------


def _stack(walk: Walk, rows: Rows, height: int) -> None:
    scene = walk.scene
    assert scene is not None
    unknown = scene.stack[0].depth + 1 - len(scene.stack) if scene.stack else 0
    more = f", and {unknown:,} that are not known" if unknown > 0 else ""
    _title(walk, rows, "stack", f"stack ({len(scene.stack):,}{more})")
    walk.tops["stack"] = top = max(min(scene.chosen - height // 2, len(scene.stack) - height), 0)
    for place, frame in enumerate(scene.stack[top : top + height], top):
        on = "" if place != scene.chosen else "cursor" if walk.focus == "stack" else "bar"
        rows.line(_frame(walk, frame, place == scene.chosen), on)


def _frame(walk: Walk, frame: Frame, is_chosen: bool) -> Line:
    display, entered = walk.display, frame.entered
    sign = _sign(walk, "▶") if is_chosen else " "
    name = ".".join(filter(None, [entered.module, entered.func]))
    task = [("dim", f"  {display.shown(entered.task)}")] if entered.task else []
    where = f"  {display.shown(os.path.basename(entered.file))}:{frame.line}"
    return joined([("key", f"{sign} "), ("own", display.shown(name)), ("dim", where), *task])


# ---- status -------------------------------------------------------------------------------


def status(walk: Walk) -> Line:
    """The time, which time this is that the line runs, what happened, in which thread."""
    scene, display = walk.scene, walk.display
    if scene is None:
        return Line(display.shown(os.path.basename(walk.path)))
    moment = scene.moment
    pieces: list[tuple[str, str]] = [("title", clock(moment.time))]
    if walk.parts.width >= _ROOMY:
        pieces.append(("", since(moment.time - scene.run.started)))
    if walk.work is not None:
        share = f" {walk.work.opened * 100 // walk.work.segments}%" if walk.work.segments else ""
        pieces.append(("note", f"looking{share}: Esc stops"))
    pieces.append(_event(walk))
    if walk.times is not None:
        pieces.append(("", f"{ordinal(walk.times[0])} of {walk.times[1]:,}"))
    pieces.append(("", display.shown(moment.thread or f"thread {moment.tid}")))
    if moment.task:
        pieces.append(("", display.shown(moment.task)))
    if walk.across:
        pieces.append(("note", "all threads"))
    if walk.is_live():
        pieces.append(("key", "LIVE"))
    spaced = [piece for style, text in pieces for piece in ((style, text), ("", "  "))]
    return joined(spaced[:-1])


def _event(walk: Walk) -> tuple[str, str]:
    """The kind of the event, with the value that it tells."""
    scene = walk.scene
    assert scene is not None
    moment, outcome = scene.moment, scene.outcome
    if moment.kind == "lost":
        told = walk.lost_here
        return "lost", f"{told} events were lost here" if told else "events were lost here"
    if moment.kind in _WORDS and outcome is not None:
        value = shown(outcome.value[:_LONGEST], walk.display.ascii)
        room = max(walk.parts.width // 3, 10)
        cut = "".join(text for _, text in chop(Line(value), 0, room).runs)
        return moment.kind, f"{_WORDS[moment.kind]} {cut.strip()}"
    return moment.kind if moment.kind in ("exception", "raise") else "", moment.kind


def since(ns: int) -> str:
    """A time since the run's start."""
    if abs(ns) < 60_000_000_000:
        return f"{'-' if ns < 0 else '+'}{abs(ns) / 1e9:.6f}s"
    return f"{'-' if ns < 0 else '+'}{duration(abs(ns))}"


def ordinal(number: int) -> str:
    """1st, 2nd, 1,003rd."""
    last = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number:,}{last}"
