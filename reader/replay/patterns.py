"""Patterns as filters have them: % stands for any characters, _ for any one, and letters from a to
z match in upper and lower case. A backslash makes the next character an ordinary one."""

from __future__ import annotations

import re


def is_pattern(text: str) -> bool:
    """Whether a string that a person typed has % or _, be it behind a backslash."""
    return "%" in text or "_" in text


class Pattern:
    """A pattern. Matching takes time in proportion to the text, whatever the pattern is."""

    def __init__(self, text: str) -> None:
        """Raises ValueError: it ends with a backslash that escapes nothing."""
        if (len(text) - len(text.rstrip("\\"))) % 2:
            raise ValueError(
                "the backslash at the end escapes nothing: a backslash itself is written \\\\\\\\"
            )
        self.text = text
        pieces = [""]
        self._signs: list[str | None] = []  # a regular expression for each sign; None: %
        for part in re.finditer(r"\\?(.)", text, re.DOTALL):
            sign = None if part[0] == "%" else "." if part[0] == "_" else _letter(part[1])
            self._signs.append(sign)
            if sign is None:
                pieces.append("")
            else:
                pieces[-1] += sign
        self._pieces = [re.compile(piece, re.DOTALL) for piece in pieces]
        self._single = [re.compile(sign or "", re.DOTALL) for sign in self._signs]

    def matches(self, text: str) -> bool:
        """Whether a whole text matches."""
        first, *others = self._pieces
        if not others:
            return bool(first.fullmatch(text))
        match = first.match(text)
        for piece in others[:-1]:
            if not match:
                return False
            match = piece.search(text, match.end())
        if not match:
            return False
        last = _length(others[-1])
        return len(text) - last >= match.end() and bool(others[-1].fullmatch(text, len(text) - last))

    def begins(self, prefix: str) -> bool | None:
        """Whether all texts that go on behind this prefix match; None: some do."""
        places = self._beside({0})
        for sign in prefix:
            on = {place + 1 for place in places if self._takes(place, sign)}
            stay = {place for place in places if place < len(self._signs) and self._signs[place] is None}
            places = self._beside(on | stay)
            if not places:
                return False
        if any(place < len(self._signs) and not any(self._signs[place:]) for place in places):
            return True
        return None if any(place < len(self._signs) for place in places) else False

    def _takes(self, place: int, sign: str) -> bool:
        return (
            place < len(self._signs)
            and self._signs[place] is not None
            and bool(self._single[place].fullmatch(sign))
        )

    def _beside(self, places: set[int]) -> set[int]:
        """The places with those behind each %, which may stand for nothing."""
        found = set(places)
        for place in places:
            while place < len(self._signs) and self._signs[place] is None:
                place += 1
                found.add(place)
        return found


def _letter(sign: str) -> str:
    if sign.isascii() and sign.isalpha():
        return f"[{sign.lower()}{sign.upper()}]"
    return re.escape(sign)


def _length(piece: re.Pattern[str]) -> int:
    """The number of characters that a piece takes."""
    return len(re.findall(r"\[..\]|\\.|.", piece.pattern, re.DOTALL))
