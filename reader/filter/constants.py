"""Numbers and strings of a filter, read as by Python, without its warnings.

tokens.py calls it with the match of its pattern.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .tree import FilterError, literal, short


def number(text: str, match: re.Match[str], first: re.Match[str]) -> int | float:
    word = match.group()
    try:
        return int(word, 0)
    except ValueError:
        pass
    try:
        if not word.replace("_", "").isdigit():  # 007 is no number in Python
            return float(word)
    except ValueError:
        pass
    hint = ""
    if word.isdigit():
        hint = "numbers have no zeros in front" if word[0] == "0" else "it has too many digits"
    raise FilterError(text, first.start(), match.end(), f"{short(word)} is no number.", hint)


# compiled at its first use
_ESCAPE = (
    r"\\(?:(?P<plain>[\n\\'\"abfnrtv])|(?P<octal>[0-7]{1,3})|x(?P<x>[0-9a-fA-F]{2})"
    r"|u(?P<u>[0-9a-fA-F]{4})|U(?P<U>[0-9a-fA-F]{8})|N\{(?P<N>[^}]*)\}|(?P<bad>[xuUN]))"
)
_PLAIN = {
    "\n": "", "\\": "\\", "'": "'", '"': '"', "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r",
    "t": "\t", "v": "\v",
}  # fmt: skip


def string(text: str, match: re.Match[str]) -> str:
    """The string's value in Python; unknown escapes stay as they are."""
    prefix, quote, body = match["prefix"].lower(), match["quote"], match["body"]
    if "f" in prefix or "t" in prefix:
        raise FilterError(
            text, match.start(), match.end(), f"A filter has no {prefix}-strings.", "write a plain one: '…'"
        )
    if "b" in prefix:
        raise FilterError(
            text, match.start(), match.end(), "A filter has no bytes.",
            "values are compared as they are shown: value == \"b'…'\"",
        )  # fmt: skip
    if prefix not in ("", "r", "u"):
        raise FilterError(text, match.start(), match.end(), f"A filter has no {prefix}-strings.")
    if not match["closed"] or (len(quote) == 1 and _newline(body, "r" in prefix)):
        raise FilterError(
            text, match.start("quote"), match.end("quote"), f"This {quote} is never closed.",
            f"a text ends with the same quote: {quote}pay{quote}",
        )  # fmt: skip
    value = body if prefix == "r" else "".join(_unescaped(text, match.start("body"), body))
    for character in value:
        if character == "\0" or "\ud800" <= character <= "\udfff":
            shown = "\\x00" if character == "\0" else f"\\u{ord(character):x}"
            raise FilterError(
                text, match.start(), match.end(), f"No recorded text holds the character {shown} itself.",
                f"it is shown, and found, as {shown}: write {literal(2 * shown[:1] + shown[1:])}",
            )  # fmt: skip
    return value


def _newline(body: str, raw: bool) -> bool:
    return "\n" in re.sub(r"\\.", "", body, flags=re.DOTALL)


def _unescaped(text: str, offset: int, body: str) -> Iterator[str]:
    at = 0
    for match in re.finditer(_ESCAPE, body):
        yield body[at : match.start()]
        at = match.end()
        kind, content = match.lastgroup, match[match.lastgroup or 0]
        try:
            if kind == "plain":
                yield _PLAIN[content]
            elif kind == "N":
                from unicodedata import lookup

                yield lookup(content)
            elif kind == "bad":
                raise ValueError
            else:
                yield chr(int(content, 8 if kind == "octal" else 16))
        except (ValueError, OverflowError, KeyError):
            raise FilterError(
                text, offset + match.start(), offset + match.end(),
                f"{short(match.group())} stands for no character.", "a backslash itself is written \\\\",
            ) from None  # fmt: skip
    yield body[at:]
