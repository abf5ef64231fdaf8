"""Filters for a bare word, such as `pay`: conditions on the fields that have it. `print` and the
screen call it. The events of each are really counted."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence

from ..filter.sql import compile
from ..filter.tree import FIELDS, Compare, Constant, Filter, unparse
from ..filter.units import RunTimes
from .completion import pattern_of
from .corrections import AT_MOST, SECONDS, Correction, Count

_FIELDS = ("func", "arg", "value")
_WORD = re.compile(r"""(?P<quote>['"]?)(?P<word>[\w.<>@-]+)(?P=quote)""")
_NO_WORDS = {*FIELDS, "and", "or", "not", "in", "None", "True", "False"}


def bare_word(text: str) -> str:
    """The word, if a text is nothing else; or ""."""
    found = _WORD.fullmatch(text.strip())
    return "" if found is None or found["word"] in _NO_WORDS else found["word"]


def offers(word: str, runs: Sequence[RunTimes], count: Count) -> list[Correction]:
    """The filters that find something: for each field, of the word itself, or of names and values
    that contain it."""
    found: list[Correction] = []
    deadline = time.monotonic() + SECONDS
    for place, field in enumerate(_FIELDS):
        now = time.monotonic()
        until = now + (deadline - now) / (len(_FIELDS) - place)
        for pattern in (pattern_of(word), f"%{pattern_of(word)}%"):
            node = Compare(field, "==", (Constant(pattern),))
            query = compile(Filter("", node), runs)
            events, is_all = count(query.where, query.parameters, AT_MOST, until)
            if events:
                found.append(Correction(unparse(node), events, is_all))
                break
    return found
