"""A set of names that can be searched while somebody types: by prefix, part or likeness.

completion.py and replacements.py use it for the names of functions, modules, arguments and so on. A
hundred thousand names are a few long texts, which Python's own C code searches in milliseconds.
Letter case makes no difference. No SQL in here.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from heapq import nsmallest
from itertools import islice
from typing import AnyStr

_ENOUGH = 20  # with so many good matches, no poorer ones are searched
_FUZZY_MAX = 1000  # similar names that are ranked, the shortest ones
_START = "\1"  # stands before each word of a name in the text for word starts
_SEPARATORS = "_./<:- "
_LIKE = re.compile(r"\\(.)|(.)", re.DOTALL)
_CAMEL = re.compile("([a-z0-9])([A-Z])")
# costs: of a gap before a letter that begins a word, of another gap, of a match inside a word
_AT_START, _INSIDE, _ANYWHERE = 1, 2, 3


class Vocabulary:
    """Names in the order in which they came, each once."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names: dict[str, None] = {}
        self._new: list[str] = []
        # in alphabetical order
        self._sorted: list[str] = []
        self._keys: list[str] = []
        # as lines of a text; names that came together are sorted by length, the shortest first
        self._lines: list[str] = []
        self._plain = b""
        self._marked = ""  # with a sign before each word
        self.add(names)

    def __len__(self) -> int:
        return len(self._names)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def add(self, names: Iterable[str]) -> None:
        new = [name for name in dict.fromkeys(names) if name not in self._names]
        self._names.update(dict.fromkeys(new))
        self._new += new

    def prepare(self) -> None:
        """Indexes the added names; else the first search does so."""
        if not self._new:
            return
        new = sorted(self._new, key=len)
        self._new = []
        # sorting is quick, as most names are in order
        self._sorted = sorted(self._sorted + new, key=str.lower)
        self._keys = list(map(str.lower, self._sorted))
        self._lines += new
        text = "".join(["\n" + name.replace("\n", " ") for name in new])
        self._plain += _encoded(text)
        self._marked += _marked("\n", _CAMEL.sub(rf"\1{_START}\2", text))

    # ---- completion ----

    def complete(self, typed: str, limit: int) -> list[str]:
        """At most `limit` names, best first: names that begin with the typed text, names with a
        later word that does, names that contain it, and names with the same letters in the same
        order."""
        self.prepare()
        typed = _fold(typed)
        found = dict.fromkeys(self._beginning(typed, limit))
        if typed:
            for more in (self._word_start, self._similar):
                if len(found) >= min(limit, _ENOUGH):
                    break
                found.update(dict.fromkeys(more(typed, limit)))
        return list(found)[:limit]

    def _beginning(self, typed: str, limit: int) -> list[str]:
        # without a typed text, names that begin with a letter precede <lambda> and __init__
        first = bisect_left(self._keys, typed or "a")
        found = self._sorted[first : first + limit]
        if not typed:
            return (found + self._sorted[:first])[:limit]
        last = next((i for i, name in enumerate(found) if not _fold(name).startswith(typed)), len(found))
        return found[:last]

    def _word_start(self, typed: str, limit: int) -> list[str]:
        needle = _START + _marked("", typed)
        return list(islice(self._containing(self._marked, needle, "\n"), limit))

    def _similar(self, typed: str, limit: int) -> list[str]:
        letters = "".join(rf"[^\n{re.escape(c)}]*{re.escape(c)}" for c in typed[1:])
        ranked = {
            name: _cost(match, typed)
            for name, match in self._matching(re.escape(_START + typed[0]) + letters, _FUZZY_MAX)
        }
        for name in islice(self._containing(self._plain, _encoded(typed), b"\n"), limit):
            ranked[name] = min(ranked.get(name, _ANYWHERE), _ANYWHERE)
        return nsmallest(limit, ranked, key=lambda name: (ranked[name], len(name), name))

    def _matching(self, pattern: str, limit: int) -> Iterator[tuple[str, str]]:
        """The names that a pattern finds in the text of word starts, the shortest first; each with
        the text from the match to the name's end."""
        line, at = -1, 0
        for match in re.finditer(pattern + r"[^\n]*", self._marked):
            line += self._marked.count("\n", at, match.start())
            at = match.start()
            yield self._lines[line], match.group()
            limit -= 1
            if not limit:
                break

    def _containing(self, text: AnyStr, needle: AnyStr, end: AnyStr) -> Iterator[str]:
        """The names whose line in the text contains the needle, the shortest first."""
        line, at = -1, 0
        found = text.find(needle, 1)
        while found >= 0:
            line += text.count(end, at, found)
            yield self._lines[line]
            at = text.find(end, found)
            found = text.find(needle, at + 1) if at >= 0 else -1

    # ---- correction ----

    def fits(self, pattern: str) -> bool:
        """Whether a name matches this LIKE pattern."""
        self.prepare()
        pieces = [""]
        for found in _LIKE.finditer(pattern):
            if found[2] in ("%", "_"):
                pieces.append("")
            else:
                pieces[-1] += (found[1] or found[2]).replace("\n", " ")
        names = self._containing(self._plain, _encoded(max(pieces, key=len)), b"\n")
        return any(map(like(pattern).fullmatch, names))

    def nearest(self, written: str, limit: int) -> list[tuple[int, str]]:
        """At most `limit` pairs of a distance (letters that differ) and a name, the nearest first;
        none beyond `tolerance`."""
        self.prepare()
        written = _fold(written)
        most = tolerance(written)
        # A change adds or removes at most one letter. So names with more foreign letters are left
        # out before the comparison letter by letter.
        foreign = self._plain.translate(None, _encoded(written).replace(b"\n", b""))
        counts = {letter: written.count(letter) for letter in written}
        shortest, longest = len(written) - most, len(written) + most
        found = []
        for letters, name in zip(foreign.split(b"\n")[1:], self._lines, strict=True):
            # letters are counted in bytes of UTF-8: up to four a character
            if len(letters) > most and (len(letters) > 4 * most or letters.isascii()):
                continue
            if shortest <= len(name) <= longest:
                folded = _fold(name)
                missing = sum([max(n - folded.count(letter), 0) for letter, n in counts.items()])
                if missing <= most:
                    changes = distance(written, folded, most)
                    if changes <= most:
                        found.append((changes, name))
        return nsmallest(limit, found)


class Arguments(Vocabulary):
    """Names of arguments; behind a dot, the names of attributes, of whatever argument."""

    def __init__(self, names: Iterable[str] = (), attributes: Iterable[str] = ()) -> None:
        super().__init__(names)
        self.attributes = Vocabulary(attributes)

    def prepare(self) -> None:
        super().prepare()
        self.attributes.prepare()

    def complete(self, typed: str, limit: int) -> list[str]:
        found = super().complete(typed, limit)
        argument, dot, attribute = typed.rpartition(".")
        if dot and argument:
            more = self.attributes.complete(attribute, limit - len(found))
            found += [f"{argument}.{name}" for name in more]
        return found

    def fits(self, pattern: str) -> bool:
        argument, dot, attribute = pattern.rpartition(".")
        return super().fits(pattern) or bool(
            dot and super().fits(argument) and self.attributes.fits(attribute)
        )

    def nearest(self, written: str, limit: int) -> list[tuple[int, str]]:
        found = super().nearest(written, limit)
        argument, dot, attribute = written.rpartition(".")
        if dot and argument:
            attributes = self.attributes.nearest(attribute, limit)
            for changes, name in super().nearest(argument, limit):
                found += [(changes + more, f"{name}.{other}") for more, other in attributes]
        return nsmallest(limit, found)


def like(pattern: str) -> re.Pattern[str]:
    """SQL's LIKE with \\ as its escape character, for `fullmatch`."""
    pieces = [""]
    for found in _LIKE.finditer(pattern):
        if found[2] == "%":
            pieces.append("")
        else:
            pieces[-1] += "." if found[2] == "_" else re.escape(found[1] or found[2])
    first, *others = pieces
    # Each piece matches at its first place, and is never tried elsewhere: re does not retry a
    # lookahead. (Atomic groups and possessive quantifiers do the same, but have bugs in 3.11's
    # first patch releases: python/cpython#100061, #106052.)
    middle = "".join(f"(?=(?P<p{i}>.*?{piece}))(?P=p{i})" for i, piece in enumerate(others[:-1]))
    last = f".*{others[-1]}" if others else ""
    return re.compile(f"{first}{middle}{last}", re.DOTALL | re.IGNORECASE | re.ASCII)


def tolerance(written: str) -> int:
    """The number of letters that may be wrong."""
    return (0, 0, 1, 1, 1, 2, 2, 2)[len(written)] if len(written) < 8 else 3


def distance(a: str, b: str, most: int) -> int:
    """The number of letters to insert, remove, replace or swap with the next; at most `most` +
    1."""
    far = most + 1
    if abs(len(a) - len(b)) > most:
        return far
    same = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    a, b = a[same:], b[same:]
    # Row i of the matrix, only for the places i - most … i + most of b: all others are too far. A
    # row is shifted by one against the row above.
    width = 2 * most + 1
    before, row = [far] * width, [j if 0 <= j <= len(b) else far for j in range(-most, most + 1)]
    for i, x in enumerate(a, 1):
        new = [far] * width
        for k in range(max(most - i, 0), min(len(b) - i + most + 1, width)):
            j = i + k - most
            if j == 0:
                new[k] = i
                continue
            y = b[j - 1]
            best = row[k] + (x != y)
            if k + 1 < width and row[k + 1] < best:
                best = row[k + 1] + 1
            if k and new[k - 1] < best:
                best = new[k - 1] + 1
            if i > 1 and j > 1 and before[k] < best and x == b[j - 2] and a[i - 2] == y:
                best = before[k] + 1
            new[k] = best
        before, row = row, new
        if min(row) > most and min(before) > most:
            return far
    return min(row[len(b) - len(a) + most], far)


def _fold(text: str) -> str:
    return text.lower()


def _marked(line: str, text: str) -> str:
    for separator in line + _SEPARATORS:
        text = text.replace(separator, separator + _START)
    return _fold(text)


def _encoded(text: str) -> bytes:
    return _fold(text).encode("utf-8", "surrogatepass")


def _cost(found: str, typed: str) -> int:
    """The cost of the gaps between the letters of `typed` in a name that begins with the first of
    them. Letters at the start of words are nearly as good as adjacent ones."""
    at, cost = 2, 0
    for letter in typed[1:]:
        if found.startswith(letter, at):
            at += 1
            continue
        start = found.find(_START + letter, at)
        if start >= 0:
            cost += _AT_START if start > at else 0
            at = start + 2
            continue
        at = found.find(letter, at) + 1
        if not at:
            return len(typed) * _INSIDE
        cost += _INSIDE
    return cost
