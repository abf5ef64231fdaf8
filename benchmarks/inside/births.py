"""Starts and ends something many times, and says how long each took.

`births.py KIND COUNT RESULT`: KIND is a key of KINDS below. Every child, thread or process, calls
one function. RESULT gets JSON: a list of seconds, and the seconds of processor time that one takes
on average, its child included.
"""

import json
import multiprocessing
import os
import resource
import subprocess
import sys
import threading
from collections.abc import Callable
from time import perf_counter


def step() -> None:
    pass


def thread() -> None:
    started = threading.Thread(target=step)
    started.start()
    started.join()


def fork() -> None:
    child = os.fork()
    if not child:
        step()
        os._exit(0)
    os.waitpid(child, 0)


def python() -> None:
    subprocess.run([sys.executable, "-c", "pass"], check=True)


def spawn() -> None:
    process = multiprocessing.get_context("spawn").Process(target=step)
    process.start()
    process.join()


KINDS: dict[str, Callable[[], None]] = {"thread": thread, "fork": fork, "python": python, "spawn": spawn}


def used() -> float:
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def main() -> None:
    act, count = KINDS[sys.argv[1]], int(sys.argv[2])
    times, before = [], used()
    for _ in range(count):
        start = perf_counter()
        act()
        times.append(perf_counter() - start)
    with open(sys.argv[3], "w") as result:
        json.dump({"times": times, "processor": (used() - before) / count}, result)


if __name__ == "__main__":
    main()
