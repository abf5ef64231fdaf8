"""The status line (for layout.py), and what `=` says (for actions.py): where we are, and what is going on."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from .model import Line
from .tasks import PATIENCE

if TYPE_CHECKING:
    from .app import App

_NEAR = 0.01  # of the run: losses as near as this are told


def status_line(app: App) -> Line:
    """Database, run, time, per cent, LIVE, filter, search, losses near, and what is being worked on."""
    parts: list[tuple[str, str]] = [("title", os.path.basename(app.path) or app.path)]
    browser = app.browser
    if browser.view.run is None:
        parts.append(("", "all runs" if app.runs else "no recording yet"))
    elif len(app.runs) > 1:
        parts.append(("", f"run {browser.view.run} of {len(app.runs)}"))
    item = browser.current
    if item is not None:
        parts.append(("", _clock(item.row[2])))
        if app.following.timeline is not None and app.following.timeline.events:
            parts.append(("", f"{percent(app):.0f}%"))
    if app.following.is_on:
        parts.append(("key", "FOLLOWING UNTIL FOUND" if app.following.until_hit else "FOLLOWING"))
    elif app.following.is_live():
        parts.append(("key", "LIVE"))
    lost = losses(app)
    if lost:
        parts.append(("lost", f"{lost:,} lost near here"))
    if app.tasks.busy > PATIENCE:
        parts.append(("note", _progress(app)))
    if browser.view.filter is not None:
        parts.append(("note", f"filter: {' '.join(browser.view.filter.text.split())}"))
    if app.searching.pattern is not None:
        parts.append(("", app.searching.text()))
    if browser.view.folding.level is not None:
        parts.append(("", f"levels: {browser.view.folding.level + 1}"))
    if browser.left:
        parts.append(("", f"column {browser.left + 1}"))
    text, spans = "", []
    for style, what in parts:
        what = app.look.shown(what)
        text += "  " if text else ""
        if style:
            spans.append((len(text), len(text) + len(what), style))
        text += what
    return Line(text, tuple(spans))


def whereabouts(app: App, number: int) -> str:
    """What `=` says. number: which of the events of run and filter it is, from 1."""
    item, run = app.browser.current, app.run_here()
    if item is None or run is None:
        return f"{app.path}: nothing to show yet"
    row = item.row
    moment = time.strftime("%Y-%m-%d ", time.localtime(row[2] // 1_000_000_000)) + _clock(row[2])
    since = (row[2] - run.started) / 1e9
    told = [f"event {number:,}", moment, f"+{since:.6f}s", f"id {row[0]}"]
    if app.following.timeline is not None and app.following.timeline.events:
        told.append(f"{percent(app):.1f}% of {app.following.timeline.events:,} events")
        if app.following.timeline.lost:
            told.append(f"{app.following.timeline.lost:,} lost")
    return "  ".join([*told, f"run {run.id} in {app.path}: {run.command}"])


def percent(app: App) -> float:
    """How much of the events is before the cursor; of the last one: 100."""
    item, timeline = app.browser.current, app.following.timeline
    if item is None or timeline is None:
        return 0.0
    time = item.row[2]
    return 100.0 if time >= timeline.last else min(timeline.share(time) * 100, 99.9)


def losses(app: App) -> int:
    """Events lost near the cursor."""
    item, timeline = app.browser.current, app.following.timeline
    if item is None or timeline is None or not timeline.lost:
        return 0
    within = int((timeline.last - timeline.first) * _NEAR)
    return timeline.lost_near(item.row[2], within)


def _clock(ns: int) -> str:
    second, rest = divmod(ns, 1_000_000_000)
    return f"{time.strftime('%H:%M:%S', time.localtime(second))}.{rest // 1000:06}"


def _progress(app: App) -> str:
    opened, count = app.worker.progress
    share = f" {opened * 100 // count}%" if count else ""
    return (
        f"working{share}, {app.tasks.busy:.0f}s: any key stops it"
        if app.tasks.busy >= 1
        else f"working{share}: any key stops it"
    )
