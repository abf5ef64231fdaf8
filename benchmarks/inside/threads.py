"""Many threads: `threads.py HOW COUNT RESULT`.

HOW is `together` (COUNT threads that are alive at once, each of which calls a function when all are
there, and again when all have) or `after` (COUNT threads, one after the other, each calling it
once). Only this file is meant to be recorded. RESULT gets JSON: see producers.py.
"""

import json
import sys
import threading
from collections.abc import Callable
from time import perf_counter


def step() -> None:
    pass


def one() -> None:
    step()


def together(count: int) -> None:
    barrier = threading.Barrier(count)

    def among_others() -> None:
        barrier.wait()
        step()
        barrier.wait()
        step()

    started = []
    for _ in range(count):
        thread = threading.Thread(target=among_others)
        thread.start()
        started.append(thread)
    for thread in started:
        thread.join()


def after(count: int) -> None:
    for _ in range(count):
        thread = threading.Thread(target=one)
        thread.start()
        thread.join()


def main() -> None:
    hows: dict[str, tuple[Callable[[int], None], int]] = {"together": (together, 3), "after": (after, 2)}
    how, calls = hows[sys.argv[1]]
    count = int(sys.argv[2])
    start = perf_counter()
    how(count)
    seconds = perf_counter() - start
    with open(sys.argv[3], "w") as result:
        json.dump({"seconds": seconds, "events": (calls * count + 3) * 2}, result)


main()
