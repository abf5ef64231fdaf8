"""Thousands of keys by chance against a recording that grows and is evicted: no exception, and what
is on the screen is always what is drawn anew.

$PYTRACE_WALK: so many rounds instead of one, in which the screen must not stand still either: for a
machine that does nothing else. A walk that failed is told by its seed.
"""

from __future__ import annotations

import os
from pathlib import Path

from reader import Reads
from walk import Shop, Walk

ROUNDS = int(os.environ.get("PYTRACE_WALK", "0"))
FIRST = int(os.environ.get("PYTRACE_WALK_SEED", "1"))


def test_random_walk(reads: Reads, tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    try:
        shop.step(200)
        shop.pause()
        reader = reads(shop.database, EDITOR="true").settled()
        for seed in range(FIRST, FIRST + max(ROUNDS, 1)):
            walk = Walk(reader, seed)
            try:
                shop.go()
                walk.steps(60)
                shop.pause()
                walk.catch_up(shop.events())
                walk.compare()
                for _ in range(3):
                    walk.steps(12)
                    walk.compare()
            except AssertionError as error:
                raise AssertionError(walk.story([])) from error
            assert not ROUNDS or walk.slow == [], f"seed {seed}"
        assert shop.end() == 0
        reader.press("esc", "esc", "esc").settled()
        reader.quit()
    finally:
        shop.close()
