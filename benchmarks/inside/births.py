"""Starts and ends something many times, and says how long each took.

`births.py KIND COUNT RESULT`: KIND is a key of KINDS below. Every child, thread or process, calls one
function. RESULT gets JSON: a list of seconds.
"""

import json
import multiprocessing
import os
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


def main() -> None:
    act = KINDS[sys.argv[1]]
    times = []
    for _ in range(int(sys.argv[2])):
        start = perf_counter()
        act()
        times.append(perf_counter() - start)
    with open(sys.argv[3], "w") as result:
        json.dump(times, result)


if __name__ == "__main__":
    main()
