"""A long program to record: objects.py and ten programs of pyperformance in turn, three threads at
times.

Started by recordings.py under `pytrace`, as `longrun.py SPEC`; SPEC is JSON:

    database   the file that is recorded into
    events     how many there shall be, at least: it goes on until that many are in the database
    programs   paths of pyperformance's programs, by name
    loop       turns of one long loop in the midst of all; 0: none
    library    of native functions, for turns that call them, and the kernel, all the time; or ""

`report` is called exactly ten times, spread over the whole; nobody else is called so, or says what
it says.
"""

import ctypes
import json
import os
import random
import runpy
import sqlite3
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from threading import Thread

from pytracer import notrace

REPORTS = 10
# loops of a turn: most turns make half a million to three million events
LOOPS = {
    "objects": 10,
    "deltablue": 6,
    "richards": 1,
    "go": 1,
    "raytrace": 1,
    "chaos": 1,
    "json_dumps": 20,
    "pyflate": 1,
    "generators": 1,
    "regex_compile": 1,
    "logging": 300,
}
ARGUMENTS = {"raytrace": ["--width=40", "--height=40"]}  # its image: the default takes far longer

Turn = Callable[[], None]


def report(done: int, message: str) -> str:
    return f"{done} of {REPORTS}: {message}"


def long_loop(turns: int) -> int:
    """One call with many lines; `begun` is set at its start, `number` and `total` all the time."""
    begun = total = 0
    for number in range(turns):
        total += number
    return total + begun


@notrace
class Progress:
    """How much is in the database. (The connection is a new one each time: threads come and go.)"""

    def __init__(self, database: str, events: int) -> None:
        self.database, self.events = database, events

    def share(self) -> float:
        """1.0: there are enough."""
        connection = sqlite3.connect(self.database, timeout=60)
        try:
            ((count,),) = connection.execute("SELECT ifnull(sum(count), 0) FROM segment")
        finally:
            connection.close()
        return float(count / self.events)


@notrace
def load(programs: dict[str, str]) -> dict[str, Turn]:
    """The work of a turn of each program."""
    pyperf = import_module("pyperf")
    benches: list[Callable[[int], float]] = pyperf.benches
    turns: dict[str, Turn] = {}

    def add(name: str) -> None:
        own, loops = benches[:], LOOPS[name]
        benches.clear()

        def turn() -> None:
            for bench in own:
                bench(loops)

        turns[name] = turn

    pyperf.Runner().bench_func("objects", import_module("objects").trade_thousand)
    add("objects")
    for name, path in programs.items():
        pyperf.arguments[:] = ARGUMENTS.get(name, [])
        sys.path.insert(1, os.path.dirname(path))
        runpy.run_path(path, run_name="__main__")
        add(name)
    return turns


def mixed(path: str) -> Turn:
    """Native functions and system calls, among functions of Python and C."""
    library = ctypes.CDLL(path)

    def some(count: int) -> int:
        library.native_calls(ctypes.c_long(count))
        os.getppid()
        return len(os.listdir("/"))

    def turn() -> None:
        for count in range(20_000):
            some(count % 10)

    return turn


def groups(names: list[str]) -> Iterator[list[str]]:
    """Programs to run at the same time, without end; over time each of them comes as often as all
    others."""
    order = random.Random(1)
    while True:
        left = order.sample(names, len(names))
        while left:
            size = order.choice((1, 1, 3))
            yield left[:size]
            del left[:size]


def run(programs: list[Turn]) -> None:
    threads = [Thread(target=turn, name=f"worker-{i}") for i, turn in enumerate(programs[1:], 1)]
    for thread in threads:
        thread.start()
    programs[0]()
    for thread in threads:
        thread.join()


def main() -> None:
    spec = json.loads(sys.argv[1])
    turns = load(spec["programs"])
    if spec["library"]:
        turns["mixed"] = mixed(spec["library"])
    progress = Progress(spec["database"], spec["events"])
    reports = loops = 0
    for names in groups(list(turns)):
        share = progress.share()
        while reports < min(share, 1) * REPORTS:
            reports += 1
            report(reports, f"the needle in {share:.0%} of the haystack")
        if share >= 0.5 and not loops:
            loops = long_loop(spec["loop"])
        if share >= 1:
            return
        run([turns[name] for name in names])


if __name__ == "__main__":
    main()
