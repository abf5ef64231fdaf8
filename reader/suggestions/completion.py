"""Completion of a filter: candidates for the place where somebody is typing.

The screen calls it at each key press in a filter; nothing here reads the database. The text need
not be a whole filter: it is cut into words, strings and signs. Those before the cursor tell what
can follow.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from ..filter.tree import FIELDS
from .vocabulary import Vocabulary

if TYPE_CHECKING:
    from .names import Names

LIMIT = 50  # candidates
_FUNCTIONS_MAX = 10  # of those offered before any field is typed


class Candidate(NamedTuple):
    """`text` replaces the typed part. `kind` is field, operator, word, function, module, file,
    argument, type, thread, kind, number, time, duration or value. `hint` tells more; it may be
    empty."""

    text: str
    kind: str
    hint: str = ""


class Completions(NamedTuple):
    """Candidates, best first, for the part [start, end) of the text."""

    start: int
    end: int
    candidates: list[Candidate]


HINTS = {
    "func": "function: qualified name or its last part",
    "module": "module of the function",
    "arg": "name of an argument",
    "value": "value of an argument",
    "type": "type of an argument",
    "kind": "what happened: call, return, exception …",
    "time": "date, time of day, or '+1.5s' after the start",
    "duration": "since the call: '1.5ms', '2s'",
    "depth": "calls around it",
    "thread": "name of the thread",
    "task": "name of the task of asyncio or trio",
    "tid": "number of the thread",
    "pid": "number of the process",
    "file": "file of the function",
    "line": "line of the function",
    "run": "number of the recording",
    "layer": "what the function is: python, cython, c, native or kernel",
    "cpu": "number of the processor",
    "mine": "own code, neither Python's nor installed: True or False",
}
_OPERATORS = {
    "==": "is, or fits the pattern",
    "!=": "is not",
    "<": "less",
    "<=": "at most",
    ">": "more",
    ">=": "at least",
    "in": "one of (…)",
    "not in": "none of (…)",
}
_TEXT_OPERATORS = ("==", "!=", "in", "not in")
_DURATIONS = ("1ms", "10ms", "100ms", "1s", "100us")
_KINDS = {
    "call": "a function is called",
    "return": "it returns",
    "exception": "an exception leaves it",
    "yield": "a generator or coroutine pauses",
    "resume": "it goes on",
    "throw": "an exception is thrown into it",
    "raise": "an exception starts or arrives",
    "log": "pytracer.log()",
    "lost": "events that were not recorded",
    "line": "a line of the function comes next",
    "event": "something happened at a moment, as in the kernel",
}
_LAYERS = {
    "python": "Python",
    "cython": "compiled by Cython",
    "c": "a C function, called by Python",
    "native": "machine code in a library",
    "kernel": "system calls, events of the kernel",
}
_VOCABULARY_KINDS = {
    "func": "function", "module": "module", "file": "file", "arg": "argument", "type": "type",
    "thread": "thread",
}  # fmt: skip

_TOKEN = re.compile(
    r"""(?P<string>[rRuU]?(?P<quote>['"])(?:\\.|(?!(?P=quote)).)*(?P<closed>(?P=quote))?)
    |(?P<word>[^\W\d][\w.]*)
    |(?P<number>-?\d[\w.]*)
    |(?P<operator>[=!<>]+)
    |(?P<mark>[(),\[\]])""",
    re.VERBOSE | re.DOTALL,
)
_NAME_LETTERS = re.compile(r"[\w.<>%]*")


def complete(names: Names, text: str, cursor: int) -> Completions:
    """Completions for the word at the cursor (0 to the text's length)."""
    before: list[re.Match[str]] = []
    unfinished = False  # a string has no end: nobody knows where strings end
    here: re.Match[str] | None = None
    for token in _TOKEN.finditer(text):
        unfinished = token["string"] is not None and token["closed"] is None
        if token.end() < cursor or (token.end() == cursor and _is_done(token)):
            before.append(token)
        elif token.start() < cursor and here is None:
            here = token
    place = _Place.after(before)
    if here is None:
        found = place.candidates(names, "", "'")
        if before and before[-1].end() == cursor and before[-1][0] not in "([":
            found = [one if one.text in (",", ")") else one._replace(text=f" {one.text}") for one in found]
        return Completions(cursor, cursor, found)
    start, end, typed, quote = here.start(), here.end(), text[here.start() : cursor], "'"
    if here["string"] is not None:
        quote = here["quote"]
        typed = _content(text[here.start("quote") + 1 : cursor])
        if unfinished:
            end = cursor + len(_NAME_LETTERS.match(text, cursor)[0])  # type: ignore[index]
            end += text.startswith(quote, end)
    found = place.candidates(names, typed, quote, in_string=here["string"] is not None)
    return Completions(start, end, [candidate for candidate in found if candidate.text != text[start:end]])


def literal(pattern: str, quote: str = "'") -> str:
    """A Python string literal that is always printable."""
    inside = "".join(
        f"\\{c}" if c in (quote, "\\") else c if c.isprintable() else c.encode("unicode_escape").decode()
        for c in pattern
    )
    return f"{quote}{inside}{quote}"


def pattern_of(name: str) -> str:
    """The LIKE pattern that a name matches. `_` stays, as it matches itself. Lone surrogates and
    NUL are escapes in the columns, too."""
    name = re.sub("[\0\ud800-\udfff]", lambda found: found[0].encode("unicode_escape").decode(), name)
    return name.replace("\\", "\\\\").replace("%", "\\%")


def _is_done(token: re.Match[str]) -> bool:
    """Whether nothing can be added to the token."""
    return (
        token["mark"] is not None or token["operator"] in _OPERATORS or token["closed"] is not None
    )  # fmt: skip


def _content(typed: str) -> str:
    """The typed text without wildcards at its ends, and without escapes."""
    return re.sub(r"\\+(.)", r"\1", typed, flags=re.DOTALL).strip("%")


class _Place:
    """A place in a filter. `expects` names one of the methods below, for the text that can follow;
    `field` is the compared field."""

    def __init__(self) -> None:
        self.expects = "operand"
        self.field = ""
        self.open = 0  # parentheses

    @classmethod
    def after(cls, tokens: Iterable[re.Match[str]]) -> _Place:
        place = cls()
        for token in tokens:
            place._pass(token[0], token.lastgroup == "word", token["mark"] is not None)
        return place

    def _pass(self, text: str, word: bool, mark: bool) -> None:
        if mark and self.expects in ("operand", "next"):
            self.open += (text in "([") - (text in ")]")
        follows = {
            "operand": self._after_operand,
            "operator": self._after_field,
            "in": lambda text, word, mark: "bracket",
            "bracket": lambda text, word, mark: "listed" if mark else "next",
            "value": lambda text, word, mark: "value" if mark else "next",
            "listed": lambda text, word, mark: ("next" if text in ")]" else "listed") if mark else "comma",
            "comma": lambda text, word, mark: "next" if text in ")]" else "listed",
            "flipped": lambda text, word, mark: "field",
            "field": self._after_operand,
            "next": self._after_comparison,
        }
        self.expects = follows[self.expects](text, word, mark)

    def _after_operand(self, text: str, word: bool, mark: bool) -> str:
        if mark or text in ("not", "and", "or"):
            return "operand"
        if not word:
            return "flipped"  # 1 < depth
        self.field = text
        return "next" if self.expects == "field" else "operator"

    def _after_field(self, text: str, word: bool, mark: bool) -> str:
        if text in ("and", "or"):
            return "operand"
        return {"not": "in", "in": "bracket"}.get(text, "next" if mark else "value")

    def _after_comparison(self, text: str, word: bool, mark: bool) -> str:
        if text in ("and", "or"):
            return "operand"
        return "next" if word or mark else "value"  # 1 < depth < 5

    def candidates(self, names: Names, typed: str, quote: str, in_string: bool = False) -> list[Candidate]:
        if in_string and self.expects not in ("value", "listed"):
            return []
        offers: dict[str, Callable[[], list[Candidate]]] = {
            "operand": lambda: _operands(names, typed),
            "field": lambda: _chosen(typed, HINTS, "field"),
            "operator": lambda: _chosen(typed, self._operators(), "operator"),
            "flipped": lambda: _chosen(typed, _OPERATORS, "operator"),
            "in": lambda: _chosen(typed, {"in": ""}, "operator"),
            "bracket": lambda: [] if typed else [Candidate("(", "operator")],
            "comma": lambda: [] if typed else [Candidate(",", "operator"), Candidate(")", "operator")],
            "next": lambda: self._next(typed),
        }
        offer = offers.get(self.expects)
        return offer() if offer else _values(names, self.field, typed, quote, in_string)

    def _operators(self) -> dict[str, str]:
        if self.field not in FIELDS or FIELDS[self.field].ordered:
            return _OPERATORS
        return {operator: _OPERATORS[operator] for operator in _TEXT_OPERATORS}

    def _next(self, typed: str) -> list[Candidate]:
        found = _chosen(typed, {"and": "", "or": ""}, "word")
        return found if typed or not self.open else [*found, Candidate(")", "operator")]


def _operands(names: Names, typed: str) -> list[Candidate]:
    found = _chosen(typed, HINTS, "field") + _chosen(typed, {"not": "", "(": ""}, "word")
    if typed:  # perhaps the name of a function
        found += [
            Candidate(f"func == {literal(pattern_of(name))}", "function")
            for name in names.functions.complete(typed, _FUNCTIONS_MAX)
        ]
    return found


def _chosen(typed: str, words: dict[str, str], kind: str) -> list[Candidate]:
    """The words that begin with the typed text, in their order; then similar ones."""
    beginning = [word for word in words if word.startswith(typed.lower())]
    others = Vocabulary(word for word in words if word not in beginning).complete(typed, LIMIT)
    return [Candidate(word, kind, words[word]) for word in beginning + others]


def _values(names: Names, field: str, typed: str, quote: str, in_string: bool) -> list[Candidate]:
    vocabulary = names.by_field().get(field)
    if vocabulary is not None:
        return [
            Candidate(literal(pattern_of(name), quote), _VOCABULARY_KINDS[field])
            for name in vocabulary.complete(typed, LIMIT)
        ]
    if field == "kind":
        return _quoted(_chosen(typed, _KINDS, "kind"), quote)
    if field == "layer":
        return _quoted(_chosen(typed, _LAYERS, "value"), quote)
    if field == "duration":
        return _quoted(_chosen(typed, dict.fromkeys(_DURATIONS, ""), "duration"), quote)
    if field == "time":
        return _quoted(_chosen(typed, _times(names), "time"), quote)
    if in_string:
        return []
    if field == "value":
        return _chosen(typed, dict.fromkeys(("None", "True", "False"), ""), "value")
    if field == "mine":
        return _chosen(typed, dict.fromkeys(("True", "False"), ""), "value")
    known = {"tid": names.tids, "pid": names.pids, "run": names.runs}.get(field, {})
    return [
        Candidate(str(number), "number", what)
        for number, what in sorted(known.items(), reverse=field == "run")
        if str(number).startswith(typed) or (typed and typed.lower() in what.lower())
    ][:LIMIT]


def _quoted(candidates: list[Candidate], quote: str) -> list[Candidate]:
    return [candidate._replace(text=literal(candidate.text, quote)) for candidate in candidates]


def _times(names: Names) -> dict[str, str]:
    found = {"+1s": "after the start"}
    for started in list(names.started.values())[-1:]:
        moment = time.localtime(started // 1_000_000_000)
        found[time.strftime("%H:%M:%S", moment)] = "the start, any day"
        found[time.strftime("%Y/%m/%d %H:%M:%S", moment)] = "the start"
    return found
