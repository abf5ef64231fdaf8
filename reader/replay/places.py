"""The places of breakpoints: a line, a file with a line, or a function, and their predicates."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import NamedTuple

from ...messages import printable
from ..filter.tree import like, short
from ..rows import text as decoded
from .history import History, quoted

_NAMED = 5  # files, functions or lines in a message
_AROUND = 30  # lines around a missing one, among which others are looked for
_PATTERN_MOST = 200  # functions that are named one by one
_LENGTH_MAX = 4000  # characters of a place with its condition
_FORMS = "a breakpoint is 12, order.py:12 or pay, with a condition if you like: 12 total > 100"


class BreakpointError(Exception):
    """A mistake in a breakpoint, at `text[position]`; the message says what to type."""

    def __init__(self, message: str, position: int = 0) -> None:
        super().__init__(message)
        self.message, self.position = message, position


class _Code(NamedTuple):
    module: str
    func: str
    file: str
    line: int


Found = tuple["tuple[str, int] | str", str, str, int]


def place_of(text: str, history: History, file: str, line: int | None) -> Found:
    """The place, its predicate, the condition behind it, and where in the text that begins. Raises
    BreakpointError."""
    if len(text) > _LENGTH_MAX:
        raise BreakpointError(f"a breakpoint has at most {_LENGTH_MAX:,} characters", _LENGTH_MAX)
    start = len(text) - len(text.lstrip())
    word = re.match(r"\S*", text[start:])
    assert word is not None
    if not word[0] or word[0] == "if":
        if not file or line is None:
            raise BreakpointError(f"there is no line here: {_FORMS}")
        return (*_line(history, file, line), text[start:], start)
    end = start + word.end()
    if word[0].isascii() and word[0].isdigit():
        if not file:
            raise BreakpointError(
                f"there is no file here: type its name, too, as in order.py:{short(word[0])}"
            )
        return (*_line(history, file, _number(word[0], start)), text[end:], end)
    for match in re.finditer(r":(\d+)(?=\s|$)", text, re.ASCII):
        name = text[start : match.start()]
        if match.end() == end or name in _files(history):
            found = _line(history, _file(history, name, start), _number(match[1], match.start(1)))
            return (*found, text[match.end() :], match.end())
    if word[0][0] in "0123456789+-" or ("/" in word[0] and ":" in word[0]):
        raise BreakpointError(f"{printable(short(word[0]))} is no line: {_FORMS}", start)
    return (word[0], _function(history, word[0], start), text[end:], end)


def line_predicate(file: str, line: int) -> str:
    """The runs of a line, for `event MATCH`."""
    return f'(and (= kind "line") (= line {line}) (= trailing 0) (= file {quoted(file)}))'


def _number(digits: str, start: int) -> int:
    if len(digits) > 9 or not int(digits):
        raise BreakpointError(f"there is no line {short(digits)}", start)
    return int(digits)


# ---- files and lines ----


def _codes(history: History) -> list[_Code]:
    rows = history.database.query(
        "bbbi",
        "SELECT DISTINCT CAST(module AS BLOB), CAST(func AS BLOB), CAST(file AS BLOB), line FROM code"
        " WHERE run = ? ORDER BY number",
        (history.run,),
    )
    return [_Code(decoded(module), decoded(func), decoded(file), line) for module, func, file, line in rows]


def _files(history: History) -> list[str]:
    return list(dict.fromkeys(code.file for code in _codes(history)))


def _file(history: History, name: str, start: int) -> str:
    """The recorded file of a name, or of the end of one."""
    files = _files(history)
    if name in files:
        return name
    tail = "/" + name.removeprefix("./").lstrip("/")
    found = [file for file in files if file.endswith(tail)]
    if len(found) == 1:
        return found[0]
    if found:
        raise BreakpointError(
            f"there are several {printable(name)}: {_listed(found)}; type more of the name", start
        )
    ends = {file.rsplit("/", 1)[-1]: file for file in reversed(files)}
    near = get_close_matches(name.rsplit("/", 1)[-1][:100], ends, _NAMED, 0.5)
    hint = f"did you mean {_listed(near)}?" if near else f"there are {_listed(list(ends)[::-1])}"
    raise BreakpointError(f"no code of {printable(short(name))} was recorded; {hint}", start)


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(printable(name) for name in names[:_NAMED]) + more


def _line(history: History, file: str, line: int) -> tuple[tuple[str, int], str]:
    """The predicate of a line: of its runs, or of the calls of the function that begins there."""
    predicate = line_predicate(file, line)
    if history.has_any(predicate):
        return (file, line), predicate
    if any(code.file == file and code.line == line for code in _codes(history)):
        return (file, line), f'(and (= kind "call") (= line {line}) (= file {quoted(file)}))'
    shown = printable(file.rsplit("/", 1)[-1])
    near = history.lines_near(file, line, _AROUND)
    near = sorted(sorted(near, key=lambda each: abs(each - line))[:_NAMED])
    if near:
        numbers = ", ".join(map(str, near))
        raise BreakpointError(f"line {line} of {shown} never ran; the nearest lines that did: {numbers}")
    starts = sorted(
        {(abs(code.line - line), code.line, code.func) for code in _codes(history) if code.file == file}
    )
    functions = ", ".join(f"{func} at {first}" for _, first, func in starts[:_NAMED])
    if not history.has_lines():
        raise BreakpointError(
            f"no lines were recorded (pytrace --lines records them), only calls; of {shown}: {functions}"
        )
    raise BreakpointError(f"line {line} of {shown} never ran, nor one near it; its functions: {functions}")


# ---- functions ----


def _function(history: History, name: str, start: int) -> str:
    """The predicate of the calls of all functions of a name."""
    codes = _codes(history)
    found = [code for code in codes if _is_named(code, name)]
    if not found:
        names = {code.func: 0 for code in codes if code.func} | {
            code.func.rsplit(".", 1)[-1]: 0 for code in codes
        }
        near = get_close_matches(name.strip("%")[:100], names, _NAMED, 0.5)
        hint = f"did you mean {_listed(near)}?" if near else "a pattern has %, as in pay% or Order.%"
        raise BreakpointError(f"no function {printable(short(name))} was recorded; {hint}", start)
    if len(found) > _PATTERN_MOST:
        return f'(and (= kind "call") (like func {quoted(name)}))'
    each = dict.fromkeys(map(_is_code, found))
    return f'(and (= kind "call") (or {" ".join(each)}))'


def _is_code(code: _Code) -> str:
    qualname, module, file = quoted(code.func), quoted(code.module), quoted(code.file)
    return f"(and (= qualname {qualname}) (= module {module}) (= file {file}))"


def _is_named(code: _Code, name: str) -> bool:
    names = (code.func, code.func.rsplit(".", 1)[-1], f"{code.module}.{code.func}")
    if "%" not in name:
        return name in names
    return any(like(name, each) for each in names)
