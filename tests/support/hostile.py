"""A recording whose names and values would move a terminal's cursor, recolour it, or turn its text
around."""

from __future__ import annotations

from pathlib import Path

from handmade import Handmade, event

CONTROLS = "".join(map(chr, [*range(32), *range(127, 160)]))
VALUES = (
    "\x1b[31mred\x1b[0m",
    "\x1b]0;title\x07\x1b]52;c;aGk=\x07",
    "\x1b[2J\x1b[H\x1b[?1049l\x1bc",
    "\x9b31mC1\x9d0;x\x9c",
    CONTROLS,
    "line\nline\r\nline\tline",
    "\u202eturned\u202c \u2066isolated\u2069 \u200f\u061c",
    "日本語テキスト" * 20,
    "e\u0301te\u0301 o\u0308 \u0301alone" * 5,
    "\u0301" * 30,
    "\U0001f469\u200d\U0001f469\u200d\U0001f467 \U0001f1e9\U0001f1ea \u2764\ufe0f",
    "\ud800 lone \udfff",
    "\u2028 \u2029 \x85 \x00",
    "\ufeff\ufffe\uffff\U000e0001\u00ad\u200b",
    "wide\uff5c" * 40 + "end",
    "a" * 200,
)


def write(path: Path) -> None:
    """A call for each of VALUES, each with its return, in a run, thread, file and functions of such
    names."""
    with Handmade(path) as made:
        run = made.run("app.py \x1b[31m\u202e --wide 日本", directory="/home/\x1b[2J")
        made("UPDATE thread SET name = ?", ["thr\x1b[5mead\u202e"])
        made.code(run, 1, "show", ["text"], module="app", file="/home/\x1b]0;x\x07.py")
        made.code(run, 2, "fun\x1b[7mc\u202etion", ["a\x1brg", "日本"], module="mod\nule", file="\u2028")
        records = []
        for number, text in enumerate(VALUES):
            records += [
                event("call", 1 + number % 2, text, number, time=100),
                event("return", 1 + number % 2, [text], time=100, elapsed=100),
            ]
        records.append(event("raise", 2, ValueError(VALUES[0]), line=3, time=5))
        records.append(event("log", 2, VALUES[0], VALUES[6], line=3, time=5, names=["na\x1b[1mme"]))
        made.segment(run, records)
