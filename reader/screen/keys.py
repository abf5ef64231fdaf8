"""The table of commands and their keys: what the app looks keys up in, and what help is made from.

Names of keys are urwid's. A command's name, with _ for -, is a method of Actions; most can be typed
behind `:`, too. N: the number that was typed before the key.
"""

from __future__ import annotations

from typing import NamedTuple


class Command(NamedTuple):
    """Something that a key does."""

    name: str
    keys: tuple[str, ...]
    help: str


class Switch(NamedTuple):
    """What `-` and a letter switch."""

    letter: str
    name: str
    help: str


GROUPS: tuple[tuple[str, tuple[Command, ...]], ...] = (
    (
        "Moving",
        (
            Command("forward-line", ("j", "e", "down", "ctrl e", "ctrl n"), "a line, or N lines, forward"),
            Command("backward-line", ("k", "y", "up", "ctrl y", "ctrl k", "ctrl p"), "… backward"),
            Command(
                "forward-window", (" ", "f", "page down", "ctrl f", "ctrl v"), "a screen, or N lines, forward"
            ),
            Command("backward-window", ("b", "page up", "ctrl b", "meta v"), "… backward"),
            Command("forward-half", ("d", "ctrl d"), "half a screen forward; N sets how many lines"),
            Command("backward-half", ("u", "ctrl u"), "… backward"),
            Command("first", ("g", "<", "home", "meta <"), "to the first event, or to event N"),
            Command("last", ("G", ">", "end", "meta >"), "to the last event, or to event N"),
            Command("percent", ("p",), "to N per cent of the events; N% does the same"),
            Command(
                "time",
                ("@",),
                "to a time: 09:52:51, '2026-11-21 09:52', +1.5s from the start, -2s from the end",
            ),
            Command("cursor-down", ("J", "shift down"), "the cursor down, on the same screen"),
            Command("cursor-up", ("K", "shift up"), "the cursor up"),
            Command("right", ("right", "meta )"), "half a screen, or N columns, to the right"),
            Command("left", ("left", "meta ("), "… to the left"),
        ),
    ),
    (
        "Jumping",
        (
            Command("partner", ("%",), "from a call to its return, from a return to its call"),
            Command("caller", ("U",), "up: to the call that this one was made in"),
            Command("first-callee", ("D",), "down: to the first call that this one made"),
            Command("last-callee", ("$",), "to the last call that this one made"),
            Command("next-sibling", ("W",), "over: to the next call on the same level"),
            Command("previous-sibling", ("B",), "to the one before on the same level"),
            Command("next-function", ("c",), "to the next event of this function"),
            Command("previous-function", ("C",), "to the one before"),
            Command("next-thread", ("t",), "to the next event of this thread"),
            Command("previous-thread", ("T",), "to the one before"),
            Command("next-value", ("a",), "to the next event with this argument's value"),
            Command("previous-value", ("A",), "to the one before"),
            Command("next-exception", ("x",), "to the next exception"),
            Command("previous-exception", ("X",), "to the one before"),
            Command("next-slow", ("l",), "to the next slow call; N: of N milliseconds or more"),
            Command("previous-slow", ("L",), "to the one before"),
            Command("next-loss", ("i",), "to the next place where events were lost"),
            Command("previous-loss", ("I",), "to the one before"),
            Command("back", ("backspace", "meta left"), "back: before the last jump, filter or run"),
            Command("forward", ("\\", "meta right"), "forward again"),
            Command("mark", ("m",), "with a letter: marks this place"),
            Command(
                "to-mark",
                ("'",),
                "with a letter: to that mark; '' to where the last jump began, '^ '$ to the ends",
            ),
        ),
    ),
    (
        "Searching",
        (
            Command("search", ("/",), "for a regular expression, forward; without capitals it ignores case"),
            Command("search-backward", ("?",), "… backward"),
            Command("next-hit", ("n",), "to the next hit, or the N-th"),
            Command("previous-hit", ("N",), "to the one before"),
            Command("highlight", ("meta u",), "hits are shown, or not"),
        ),
    ),
    (
        "Filtering and folding",
        (
            Command("filter", ("&", "r"), "only events that meet a condition; an empty one shows all"),
            Command("filter-this", ("*",), "makes a filter of what is under the cursor"),
            Command("fold", ("enter",), "a call and what is in it becomes one line, or is shown again"),
            Command("close-level", (",",), "shows a level less; N: N levels"),
            Command("open-level", (".",), "shows a level more; N: N levels"),
        ),
    ),
    (
        "While the program runs",
        (
            Command("follow", ("F",), "shows new events as they come; any key that moves ends it"),
            Command("follow-until", ("meta F",), "follows until the search finds something"),
        ),
    ),
    (
        "Looking closer",
        (
            Command("detail", ("tab",), "everything about the event under the cursor, in a pane"),
            Command("detail-down", ("meta j", "meta down"), "scrolls the pane"),
            Command("detail-up", ("meta k", "meta up"), "… back"),
            Command("where", ("=", "ctrl g"), "where we are"),
            Command("edit", ("v",), "opens the source in $VISUAL or $EDITOR"),
            Command("copy", ("Y",), "copies the line to the clipboard; :copy FILE writes it to a file"),
            Command("copy-value", ('"',), "copies the value; :copy-value FILE"),
        ),
    ),
    (
        "Everything else",
        (
            Command("switch", ("-",), "with a letter: one of the switches below"),
            Command("command", (":",), "a command by its name, see below"),
            Command("redraw", ("ctrl l", "ctrl r", "R"), "reads and draws everything anew"),
            Command("help", ("h", "H"), "this page"),
            Command("quit", ("q", "Q", "ZZ"), "ends the reader; the program goes on"),
        ),
    ),
)

SWITCHES = (
    Switch("i", "case", "searches: smart case, or never ignoring it, or always"),
    Switch("S", "wrap", "long lines: cut, or wrapped"),
    Switch("N", "numbers", "the events' ids"),
    Switch("t", "times", "times: of the day, with the date, since the start, none"),
    Switch("d", "duration", "durations"),
    Switch("T", "thread", "threads"),
    Switch("p", "process", "processes"),
    Switch("f", "file", "the functions' files and lines"),
    Switch("a", "sort", "arguments in the order of their names"),
    Switch("v", "values", "arguments at all"),
    Switch("m", "minimap", "the line that shows the whole run"),
    Switch("k", "stack", "the calls above the first line"),
)

COMMANDS = tuple(command for _, commands in GROUPS for command in commands)
BY_KEY = {key: command for command in COMMANDS for key in command.keys}
TYPED = tuple(each for each in COMMANDS if each.name not in ("mark", "to-mark", "switch", "command"))

PREFIXES = ("m", "'", "-", "Z")  # wait for one more key

_SHOWN = {
    " ": "space", "down": "↓", "up": "↑", "left": "←", "right": "→", "enter": "Enter", "tab": "Tab",
    "backspace": "Backspace", "page down": "PgDn", "page up": "PgUp", "home": "Home", "end": "End",
}  # fmt: skip


def shown(key: str) -> str:
    """A key as people write it: `^F`, `ESC-v`, `PgDn`."""
    if key.startswith("ctrl "):
        return "^" + key[5:].upper()
    if key.startswith("meta "):
        return "ESC-" + shown(key[5:])
    if key.startswith("shift "):
        return "shift-" + shown(key[6:])
    return _SHOWN.get(key, key)
