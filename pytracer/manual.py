"""The manual page pytrace(1), made from the table of commands. setup.py writes it into the wheel.

Lines are roff with the macros of man(7); no text of the table can be taken for a request.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .cli import COMMANDS, FILE, OPTIONS, RECORD, SECTION
from .options import CliCommand, Option, described, written

_STATUS = (
    ("0", "What was asked for was done. Of a recorded program it is the status of the program."),
    ("1", "info --doctor found a problem."),
    ("2", "A mistake in the command line, or a database that cannot be read; a message says what to do."),
    ("130", "Ctrl-C."),
    ("141", "Nobody reads the output any more."),
)
_FILES = (
    ("traces.sqlite", "What is recorded, and read, where no other database is named."),
    (FILE, f"Options of a recording, under [{SECTION}]; only that of the current folder."),
)
_SEE_ALSO = "python3(1), sqlite3(1)"


def page(version: str, date: str) -> str:
    """The page. date: YYYY-MM-DD, of this version."""
    return "\n".join(_lines(version, date)) + "\n"


def _lines(version: str, date: str) -> Iterator[str]:
    yield f'.TH PYTRACE 1 {date} "pytrace {_text(version)}" "User Commands"'
    yield from (".SH NAME", "pytrace \\- record every call of a Python program, and read what was recorded")
    yield ".SH SYNOPSIS"
    for number, (form, _) in enumerate(form for command in COMMANDS for form in command.forms):
        yield from [".br"] * bool(number)
        yield f".B {_text(form)}"
    yield ".SH DESCRIPTION"
    yield from _paragraphs(RECORD.about)
    yield ".SH OPTIONS"
    for title, group in RECORD.groups.items():
        yield f".SS {_text(title)}"
        yield from _options(group)
    yield from (".PP", *_paragraphs(RECORD.more()))
    yield ".SH COMMANDS"
    for command in COMMANDS:
        if command.name:
            yield f".SS pytrace {command.name}"
            yield from _command(command)
    yield ".SH ENVIRONMENT"
    for option in OPTIONS:
        yield from _item(", ".join(option.variables), f"As {option.flag}.")
    for title, rows in (("EXIT STATUS", _STATUS), ("FILES", _FILES)):
        yield f".SH {title}"
        for what, meaning in rows:
            yield from _item(what, meaning)
    yield from (".SH SEE ALSO", _text(_SEE_ALSO))


def _command(command: CliCommand) -> Iterator[str]:
    yield from _paragraphs(command.about)
    for argument in command.arguments:
        yield from _item(argument.metavar, argument.help)
    yield from _options(command.options)
    if more := command.more():
        yield from (".PP", *_paragraphs(more))


def _options(options: Iterable[Option]) -> Iterator[str]:
    for option in options:
        yield from _item(written(option), described(option))


def _item(what: str, meaning: str) -> Iterator[str]:
    """A term and its meaning."""
    yield from (".TP", f".B {_text(what)}", _text(meaning))


def _paragraphs(text: str) -> Iterator[str]:
    """Paragraphs after a heading; indented lines stay as they are."""
    between: list[str] = []
    for paragraph in text.split("\n\n"):
        lines = paragraph.split("\n")
        flowing = [line for line in lines if not line.startswith("  ")]
        fixed = [line for line in lines if line.startswith("  ")]
        if flowing:
            yield from (*between, *map(_text, flowing))
            between = [".PP"]
        if fixed:
            yield from (*between, ".nf", ".RS 4", *(_text(line[2:]) for line in fixed), ".RE", ".fi")
            between = [".PP"]


def _text(text: str) -> str:
    """A line with exactly this text."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")
    text = text.replace("^", "\\(ha").replace("~", "\\(ti").replace('"', "\\(dq")
    return f"\\&{text}" if text.startswith(".") else text
