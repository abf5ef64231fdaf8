"""Calls `mark` now and then, with a text of its own each time, and prints when.

`stamps.py COUNT idle|busy`: what it does in between. Lines are the text and a time of
CLOCK_MONOTONIC in ns, taken just before the call.
"""

import random
import sys
import time


def mark(text: str) -> None:
    pass


def step(n: int) -> int:
    return n + 1


def wait(seconds: float, busy: bool) -> None:
    end = time.monotonic() + seconds
    if not busy:
        time.sleep(seconds)
    while time.monotonic() < end:
        for n in range(1000):
            step(n)


def main() -> None:
    busy = sys.argv[2] == "busy"
    for number in range(int(sys.argv[1])):
        wait(random.uniform(0.4, 0.6), busy)
        text = f"stamp-{number:05}"
        now = time.monotonic_ns()
        mark(text)
        print(text, now, flush=True)
    wait(2, busy)  # so that the last one is to be read while the program runs


main()
