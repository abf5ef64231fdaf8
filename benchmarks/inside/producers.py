"""Makes events flat out in several threads or processes, and says exactly how many it made.

`producers.py HOW COUNT TIMES RESULT`: HOW is `threads` or `processes`; COUNT of them share TIMES
calls of `fib(18)`. Only this file is meant to be recorded. RESULT gets JSON: seconds from the first
start to the last end, seconds of processor time of all of them, and the number of events that a
recording of this file has, stored and lost together.
"""

import json
import os
import resource
import sys
import threading
from collections.abc import Callable
from time import perf_counter

N = 18
FIB_CALLS = 8361  # that fib(18) makes, its own included


def fib(n: int) -> int:
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def work(times: int) -> None:
    for _ in range(times):
        fib(N)


def threads(shares: list[int]) -> None:
    started = []
    for share in shares:
        thread = threading.Thread(target=work, args=(share,))
        thread.start()
        started.append(thread)
    for thread in started:
        thread.join()


def processes(shares: list[int]) -> None:
    for share in shares:
        if not os.fork():
            work(share)
            os._exit(0)
    for _ in shares:
        os.wait()


def used() -> float:
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def main() -> None:
    hows: dict[str, Callable[[list[int]], None]] = {"threads": threads, "processes": processes}
    how, count, times = hows[sys.argv[1]], int(sys.argv[2]), int(sys.argv[3])
    shares = [times // count] * count
    before, start = used(), perf_counter()
    how(shares)
    seconds, processor = perf_counter() - start, used() - before
    calls = sum(shares) * FIB_CALLS + count + 5  # work; the module, main, how, used twice
    with open(sys.argv[4], "w") as result:
        json.dump({"seconds": seconds, "processor": processor, "events": calls * 2}, result)


main()
