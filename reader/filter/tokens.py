"""A filter's text as tokens, in an order that Python's grammar takes; mistakes are explained.

The filter language is a small part of Python. Text outside of it is refused here, because the text
still shows what was meant. So Python's parser gets only texts that it accepts, whatever its version
and however deep or long the text.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple, NoReturn

from .constants import number, string
from .tree import FIELDS, KINDS, FilterError, Literals, literal, short

LENGTH_MAX = 500_000  # characters: a second or two of work
DEPTH_MAX = 100  # brackets and `not`s inside each other

_TOKENS = re.compile(
    r"""
    (?P<blank>   \s+ | \#[^\n]* )
  | (?P<string>  (?P<prefix>[rRuUbBfFtT]{0,2})
                 (?P<quote>\"\"\"|'''|["'])
                 (?P<body>[^\\"']*(?:(?:\\.|(?!(?P=quote))["'])[^\\"']*)*)
                 (?P<closed>(?P=quote))? )
  | (?P<number>  0[xX][0-9a-fA-F_]+ | 0[oO][0-7_]+ | 0[bB][01_]+
               | (?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9][0-9_]*)(?:[eE][+-]?[0-9_]+)? )
  | (?P<name>    [^\W\d]\w* )
  | (?P<symbol>  <> | [=!<>]= | && | \|\| | :=|\*\*|//|<<|>>|->|=>|=~|!~ | . )
    """,
    re.VERBOSE | re.DOTALL,
)

Kind = Literal["field", "constant", "symbol"]


class Token(NamedTuple):
    """`text[start:end]` of a filter."""

    kind: Kind
    text: str  # of a symbol, its name in Python; else as written
    start: int
    end: int
    value: Literals = None  # of a constant


_COMPARISONS = {"==", "!=", "<", "<=", ">", ">="}
_CLOSING = {"(": ")", "[": "]"}
_CONSTANTS = {"None": None, "True": True, "False": False}

# by the sign of another language: the one to write here
_WILDCARDS = "==, with % and _ as wildcards"
_OPERATORS = {
    "=": "==", "===": "==", "=~": "==", "~": "==", "<>": "!=", "!~": "!=", "=>": ">=",
    "&&": "and", "&": "and", "||": "or", "|": "or", "is": "== (or != for `is not`)",
    "like": "==, which is LIKE", "ilike": "==, which is LIKE", "glob": _WILDCARDS, "regexp": _WILDCARDS,
    "matches": _WILDCARDS, "contains": "==, with % around it", "between": "a chain, such as 1 < depth < 5",
}  # fmt: skip
_WORDS = {
    "null": "None", "nil": "None", "true": "True", "false": "False", "none": "None", "and": "and", "or": "or",
    "not": "not", "in": "in",
}  # fmt: skip
_OTHER_FIELDS = {
    "function": "func", "name": "func", "method": "func", "qualname": "func", "args": "arg",
    "argument": "arg", "arguments": "arg", "thread_id": "tid", "threadid": "tid", "process": "pid",
    "filename": "file", "path": "file", "elapsed": "duration", "event": "kind", "lineno": "line",
    "result": "value", "timestamp": "time", "level": "depth",
}  # fmt: skip
_OTHER_QUOTES = "\u2018\u2019“”„«»`\u00b4"
# Python that a filter does not have, by its word or symbol
_UNSUPPORTED = {
    **dict.fromkeys(("+", "-", "*", "/", "//", "%", "**", "@", "<<", ">>", "^"), "cannot calculate"),
    **dict.fromkeys(("if", "else"), "has no conditional expressions"),
    **dict.fromkeys(("for", "async"), "has no comprehensions"),
    "lambda": "cannot define functions",
    "await": "cannot wait for anything",
    "yield": "cannot yield",
    ":=": "cannot assign",
    "{": "has no sets and dictionaries",
    ".": "cannot look into attributes",
}
_CONDITION = "a condition is FIELD OPERATOR VALUE, such as func == 'pay'; and, or, not and ( ) join them"
_FIELD_NAMES = f"fields: {' '.join(FIELDS)}"


class _Bracket:
    def __init__(self, token: Token | None, is_list: bool) -> None:
        self.token = token  # the opening bracket; None: the whole text
        self.is_list = is_list  # whether it follows `in`
        self.nots = 0  # the number of `not`s around the present operand


def tokens(text: str) -> list[Token]:
    """The tokens of a filter, without blanks and comments. Raises FilterError."""
    if len(text) > LENGTH_MAX:
        raise FilterError(
            text, LENGTH_MAX, LENGTH_MAX + 1, f"The filter is too long: more than {LENGTH_MAX:,} characters."
        )
    return _Reader(text).tokens()


class _Reader:
    """Reads the text once. Each place expects either an operand or an operator."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.matches = [match for match in _TOKENS.finditer(text) if not match["blank"]]
        self.at = 0  # which of them
        self.found: list[Token] = []
        self.brackets = [_Bracket(None, False)]
        self.depth = 0

    def tokens(self) -> list[Token]:
        operand = True
        while self.at < len(self.matches):
            match = self.matches[self.at]
            operand = self._operand(match) if operand else self._operator(match)
            self.at += 1
        self._end(operand)
        return self.found

    # ---- where an operand is expected: each returns whether one still is ----

    def _operand(self, match: re.Match[str]) -> bool:
        word = match.group()
        if match["string"]:
            self._add("constant", match, string(self.text, match))
        elif match["number"]:
            self._add("constant", match, number(self.text, match, match))
        elif match["name"]:
            return self._name(match)
        elif word in _CLOSING:
            self._open(match)
            return True
        elif word in (")", "]") and self._may_close_empty():
            self._close(match)
        elif word in "+-" and (digits := self._next()) and digits["number"]:
            value = number(self.text, digits, match)
            self.at += 1
            self.found.append(
                Token("constant", word, match.start(), digits.end(), -value if word == "-" else value)
            )
        else:
            self._no_operand(match)
        return False

    def _name(self, match: re.Match[str]) -> bool:
        word = match.group()
        after = self._next()
        if word == "not" and not self._after_comparison():
            self._add("symbol", match)
            self.brackets[-1].nots += 1
            self._deeper(match)
            return True
        if word in ("and", "or", "not", "in", "is"):
            self._no_operand(match)
        if word in _UNSUPPORTED:
            self._unsupported(match)
        if word in FIELDS or word in _CONSTANTS:
            if word in FIELDS:
                self._add("field", match)
            else:
                self._add("constant", match, _CONSTANTS[word])
        elif after and after.group() == ".":
            self._unsupported(after, match)
        elif after and after.group() == "(" and word.lower() not in _WORDS:
            self._call(match, after)
        elif after and after["string"] and after.start() == match.end():
            self._fail(match, f"A filter has no {word}'…' strings.", "write a plain one: '…'")
        else:
            self._unknown(match)
        return False

    def _unknown(self, match: re.Match[str]) -> NoReturn:
        word = match.group()
        if (meant := _WORDS.get(word.lower())) is not None and word != meant:
            self._fail(match, f"{word} is not known here.", f"write {meant}")
        if word.lower() in _OPERATORS:
            self._fail(match, f"{word} cannot stand here.", _CONDITION)
        hints = []
        if self._after_comparison() or self.brackets[-1].is_list:
            hints.append(f"a text stands in quotes: {literal(short(word))}")
        if meant := _OTHER_FIELDS.get(word.lower()):
            hints.append(f"did you mean {meant}?")
        elif word.lower() in KINDS:
            hints.append(f"did you mean kind == {literal(word.lower())}?")
        else:
            from difflib import get_close_matches

            argument = self._as_argument(word)
            likeness = 0.75 if argument else 0.6
            nearest = get_close_matches(word.lower()[:20], FIELDS, 1, likeness)
            if nearest or argument:
                hints.append(f"did you mean {nearest[0] if nearest else argument}?")
        problem = f"There is no field {short(word)}."
        self._fail(match, problem, "; ".join(hints) if hints else _FIELD_NAMES)

    def _as_argument(self, word: str) -> str:
        """The condition that an argument of this name is compared with the value that follows; "":
        it is not compared."""
        following = self.matches[self.at + 1 : self.at + 3]
        if len(following) < 2 or following[0].group() not in ("=", "==", "!="):
            return ""
        value, written = following[1], following[1].group()
        if value["name"] and written not in _CONSTANTS:
            written = literal(written)
        elif not (value["closed"] or value["number"] or value["name"]):
            return ""
        sign = "!=" if following[0].group() == "!=" else "=="
        return f"arg == {literal(short(word))} and value {sign} {short(written)}"

    def _no_operand(self, match: re.Match[str]) -> NoReturn:
        """Fails at text that can be neither a field nor a value."""
        word = match.group()
        self._common_mistakes(match)
        if word in _OPERATORS and not self.found:
            self._fail(match, f"{word} cannot stand here.", _CONDITION)
        if word == "!":
            self._fail(match, "! is not known here.", "write not, or != for a comparison")
        if word in ("*", "**"):
            self._fail(match, f"A filter has no {word}.", "wildcards stand inside of quotes: func == 'pay%'")
        if word in _UNSUPPORTED:
            self._unsupported(match)
        if not self.found:
            self._fail(match, f"A filter cannot begin with {short(word)}.", _CONDITION)
        self._fail(match, f"{short(word)} cannot follow {short(self.found[-1].text)}.", self._expected())

    # ---- where an operator is expected ----

    def _operator(self, match: re.Match[str]) -> bool:
        word = match.group()
        after = self._next()
        if word in _COMPARISONS:
            if after and after.group() == "=" and after.start() == match.end():  # === and <==
                self._fail(match, f"{word}= is not known here.", f"write {word}", after.end())
            self._add("symbol", match)
        elif word in ("and", "or"):
            self._leave_nots()
            self._add("symbol", match)
        elif word == "in":
            self._add("symbol", match)
        elif word == "not" and after and after.group() == "in":
            self.at += 1
            self.found.append(Token("symbol", "not in", match.start(), after.end()))
        elif word in (")", "]"):
            self._close(match)
            return False
        elif word == "," and self.brackets[-1].token:
            self._leave_nots()
            self._add("symbol", match)
        else:
            self._no_operator(match)
        return True

    def _no_operator(self, match: re.Match[str]) -> NoReturn:
        """Fails at text that cannot join its two neighbours."""
        word = match.group()
        self._common_mistakes(match)
        before = self.found[-1]
        adjacent = match.start() == before.end
        if word == "(" and before.kind == "field":
            self._call(self.matches[self.at - 1], match)
        if word == "[":
            self._fail(
                match,
                "A filter cannot look into values.",
                "value is compared as it is shown: value == '[1, %'",
            )
        if before.kind == "constant" and type(before.value) in (int, float):
            if match["name"] and adjacent and word not in ("if", "else", "is"):
                whole = self.text[before.start : match.end()]
                hint = f"a number with its unit stands in quotes: {literal(short(whole))}"
                self._fail(match, f"{short(whole)} is no number.", hint, start=before.start)
            if word in (":", "/") or (word == "-" and adjacent):
                hint = "a time stands in quotes: time >= '2012/08/15 01:23:45'"
                self._fail(match, f"{short(before.text)}{word} is no number.", hint, start=before.start)
        if word in _UNSUPPORTED:
            self._unsupported(match)
        meant = _WORDS.get(word.lower()) if word.lower() in ("and", "or", "in", "not") else None
        meant = meant if meant and word != meant else _OPERATORS.get(word.lower())
        if meant:
            self._fail(match, f"{short(word)} is not known here.", f"write {meant}")
        if word == "!":
            self._fail(match, "! is not known here.", "write != or not")
        if word == ",":
            self._fail(match, "A comma cannot join conditions.", "write and, or or")
        if match["string"] and before.kind == "constant" and isinstance(before.value, str):
            hint = "expected a comma, or an operator"
            self._fail(match, "Two texts stand beside each other.", hint)
        self._misspelt(match)
        closed = before.text in (")", "]") or (len(self.found) >= 2 and self.found[-2].text in _COMPARISONS)
        self._fail(
            match,
            f"{short(word)} cannot follow {short(before.text)}.",
            "expected and, or or" if closed else "expected an operator: == != < <= > >= in, and, or",
        )

    def _misspelt(self, match: re.Match[str]) -> None:
        from difflib import get_close_matches

        word = match.group()[:20].lower()
        if match["name"] and (nearest := get_close_matches(word, ("and", "or", "in", "not in"), 1)):
            self._fail(match, f"{short(match.group())} is not known here.", f"did you mean {nearest[0]}?")

    # ---- both ----

    def _common_mistakes(self, match: re.Match[str]) -> None:
        word = match.group()
        if word in _OTHER_QUOTES:
            hint = "texts stand in straight quotes: 'pay'"
            self._fail(match, "This is no quote that a filter knows.", hint)
        if word == ";":
            self._fail(match, "A filter is one expression.", "write and, or or")
        if word in (")", "]"):
            bracket = self.brackets[-1].token
            if not bracket:
                self._fail(match, f"There is no bracket that this {word} closes.")
            if _CLOSING[bracket.text] != word:
                self._fail(
                    match, f"{word} cannot close {bracket.text}.", f"expected {_CLOSING[bracket.text]}"
                )

    def _unsupported(self, match: re.Match[str], first: re.Match[str] | None = None) -> NoReturn:
        what = _UNSUPPORTED[match.group()]
        self._fail(match, f"A filter {what}.", _CONDITION, start=(first or match).start())

    def _call(self, name: re.Match[str], bracket: re.Match[str]) -> NoReturn:
        word = name.group()
        hint = "func == 'pay' finds the calls of a function pay"
        if word not in FIELDS:
            hint = f"func == {literal(short(word))} finds the calls of {short(word)}"
        if word in ("like", "re", "match", "search", "startswith", "endswith", "contains"):
            hint = "== knows wildcards: func == 'pay%'"
        self._fail(name, "A filter cannot call functions.", hint, bracket.end())

    def _end(self, operand: bool) -> None:
        """Fails if something is missing at the end of the text."""
        last = self.found[-1] if self.found else None
        bracket = self.brackets[-1].token
        if bracket and (not operand or last is bracket or (last and last.text == ",")):
            hint = f"expected {_CLOSING[bracket.text]}"
            problem = f"This {bracket.text} is never closed."
            raise FilterError(self.text, bracket.start, bracket.end, problem, hint)
        if last and operand:
            problem = f"Something is missing behind {last.text}."
            raise FilterError(self.text, last.start, last.end, problem, self._expected())

    def _expected(self) -> str:
        """The kind of operand that is expected."""
        if self.found and self.found[-1].text in ("in", "not in"):
            return "expected values, such as ('a', 'b')"
        return "expected a value" if self._after_comparison() else "expected a condition"

    def _next(self) -> re.Match[str] | None:
        return self.matches[self.at + 1] if self.at + 1 < len(self.matches) else None

    def _after_comparison(self) -> bool:
        return bool(self.found) and self.found[-1].text in {*_COMPARISONS, "in", "not in"}

    def _add(self, kind: Kind, match: re.Match[str], value: Literals = None) -> None:
        self.found.append(Token(kind, match.group(), match.start(), match.end(), value))

    def _open(self, match: re.Match[str]) -> None:
        is_list = bool(self.found) and self.found[-1].text in ("in", "not in")
        self._add("symbol", match)
        self.brackets.append(_Bracket(self.found[-1], is_list))
        self._deeper(match)

    def _may_close_empty(self) -> bool:
        """True for `in ()`, and for a comma after the last element of a list."""
        bracket = self.brackets[-1]
        if not bracket.token:
            return False
        return self.found[-1].text == "," or (bracket.is_list and self.found[-1] is bracket.token)

    def _close(self, match: re.Match[str]) -> None:
        self._common_mistakes(match)
        self._leave_nots()
        self.brackets.pop()
        self.depth -= 1
        self._add("symbol", match)

    def _leave_nots(self) -> None:
        self.depth -= self.brackets[-1].nots
        self.brackets[-1].nots = 0

    def _deeper(self, match: re.Match[str]) -> None:
        self.depth += 1
        if self.depth > DEPTH_MAX:
            self._fail(match, f"The filter is nested too deep: more than {DEPTH_MAX} levels.")

    def _fail(
        self, match: re.Match[str], problem: str, hint: str = "", end: int = 0, start: int | None = None
    ) -> NoReturn:
        first = match.start() if start is None else start
        raise FilterError(self.text, first, max(end, match.end()), problem, hint)
