"""Features of recordings: the bits of `run.features`, and a name for each.

csrc/common/feature.h has the same table, and says which bits are required.
"""

from __future__ import annotations

from collections.abc import Iterable

FEATURES = {
    0: ("tasks", "events say which task of asyncio or trio they are of"),
    1: ("lines", "lines and variables"),
    2: ("layers", "C functions, native functions, the kernel"),
}
FIRST_REQUIRED = 32
BITS = 63


def names(features: int) -> list[str]:
    """The features that a recording has; `feature 5` is one that this version does not know."""
    return [
        FEATURES[bit][0] if bit in FEATURES else f"feature {bit}"
        for bit in range(BITS)
        if features >> bit & 1
    ]


def unknown(features: int) -> list[str]:
    """The features of a later version, which this version skips."""
    return names(features & ~_mask(FEATURES))


def refused(features: int) -> list[str]:
    """The features that a reader must know, and this version does not."""
    return names(features & _mask(range(FIRST_REQUIRED, BITS)) & ~_mask(FEATURES))


def _mask(bits: Iterable[int]) -> int:
    return sum(1 << bit for bit in bits)
