"""The measured process: runs one workload some times and writes down how long each took.

Started by measure.py as `workload.py SPEC`, bare or under `pytrace`; SPEC is JSON:

    workload   fib:N, len:N, objects, or NAME=PATH of a program of pyperformance
    tracer     what to switch on inside this process (peers.py), or ""
    loops      how often the work is done in one measurement; 0: as often as takes `seconds`
    repeat     measurements; 0: as many as take `seconds`
    limit      seconds that one measurement may take: then SIGALRM ends the process; 0: no limit
    seconds, library, scratch, result: see above, peers.py, and the file for the answer
"""

import json
import os
import runpy
import signal
import sys
from collections.abc import Callable
from importlib import import_module
from time import perf_counter

Work = Callable[[int], float]


def fib(n: int) -> int:
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def lengths(n: int) -> None:
    text = "text"
    for _ in range(n):
        len(text)


def find(workload: str) -> Work:
    """A function that runs a workload so many times, and returns its seconds.

    A program of pyperformance that has several benchmarks runs one after the other.
    """
    pyperf = import_module("pyperf")
    name, _, argument = workload.partition(":")
    if name == "fib":
        pyperf.Runner().bench_func(name, fib, int(argument))
    elif name == "len":
        pyperf.Runner().bench_func(name, lengths, int(argument))
    elif name == "objects":
        pyperf.Runner().bench_func(name, import_module("objects").trade_thousand)
    else:
        path = workload.partition("=")[2]
        sys.path.insert(1, os.path.dirname(path))
        runpy.run_path(path, run_name="__main__")
    benches: list[Work] = pyperf.benches
    return lambda loops: sum([bench(loops) for bench in benches])


def calibrate(work: Work, seconds: float) -> int:
    """How many loops take about `seconds`."""
    loops = 1
    while (took := work(loops)) < seconds / 4:
        loops *= 2
    return max(1, round(loops * seconds / took))


def resident() -> int:
    """Bytes of memory held by this process, apart from pytrace's shared ring."""
    total = 0
    ring = False
    with open("/proc/self/smaps") as smaps:
        for line in smaps:
            if "-" in line.split(" ", 1)[0]:
                ring = line.split()[1].endswith("s") and "pytrace-" in line
            elif line.startswith("Rss:") and not ring:
                total += int(line.split()[1]) * 1024
    return total


def main() -> None:
    spec = json.loads(sys.argv[1])
    work = find(spec["workload"])
    if spec["tracer"]:
        import_module("peers").start(spec["tracer"], spec["library"], spec["scratch"])
    loops = spec["loops"] or calibrate(work, spec["seconds"])
    times: list[float] = []
    start = perf_counter()
    while len(times) < spec["repeat"] or (not spec["repeat"] and perf_counter() - start < spec["seconds"]):
        signal.alarm(spec["limit"])
        times.append(work(loops))
    signal.alarm(0)
    with open(spec["result"], "w") as result:
        json.dump({"loops": loops, "times": times, "resident": resident()}, result)
    if spec["tracer"]:
        os._exit(0)  # a peer's saving takes long, and is no cost while the program runs


if __name__ == "__main__":
    main()
