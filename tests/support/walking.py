"""A random walk through what programs do, which counts its own calls in files that outlive it.

    python walking.py SEED FOLDER LEVEL      (the program that test_random_walks.py records)

Each process counts in a mapped file of its own, FOLDER/PID-..., whatever ends it: the calls of each
function in COUNTED, and behind them its pid, whether it ended in order, and how many threads were
at work. `counts[K] += 1` is one step: no thread and no signal handler comes between, because the
interpreter looks for them at calls and where it jumps back.
"""

import asyncio
import contextlib
import gc
import mmap
import os
import random
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

COUNTED = [
    "leaf",
    "chain",
    "fail",
    "numbers",
    "delegated",
    "step",
    "stream",
    "Mortal.__del__",
    "handler",
    "dead",
]
LEAF, CHAIN, FAIL, NUMBERS, DELEGATED, STEP, STREAM, DEL, HANDLER, DEAD = range(len(COUNTED))
PID, ORDERLY, THREADS = range(len(COUNTED), len(COUNTED) + 3)
SIZE = mmap.PAGESIZE

# CPython 3.11 may hang if threads have a profile function and signals come; docs/limits.md
WITH_SIGNALS = sys.version_info >= (3, 12)

kept: list[object] = []  # ended late, or never


def new_counts(folder: str) -> memoryview:
    with open(f"{folder}/{os.getpid()}-{time.monotonic_ns()}-{threading.get_ident()}", "xb+") as file:
        file.truncate(SIZE)
        return memoryview(mmap.mmap(file.fileno(), SIZE)).cast("Q")


# ---- what is counted -----------------------------------------------------------------------------


def leaf(value: object, *more: object, **named: object) -> object:
    counts[LEAF] += 1
    return value


def chain(depth: int, value: object) -> object:
    counts[CHAIN] += 1
    return chain(depth - 1, value) if depth else leaf(value, depth)


def fail(depth: int) -> None:
    counts[FAIL] += 1
    try:
        if not depth:
            raise ValueError(depth)
        fail(depth - 1)
    finally:
        leaf(depth)


def numbers(count: int) -> Iterator[object]:
    counts[NUMBERS] += 1
    try:
        for number in range(count):
            yield leaf(number)
    finally:
        leaf(count)


def delegated(count: int) -> Iterator[object]:
    counts[DELEGATED] += 1
    yield from numbers(count)


async def step(count: int) -> None:
    counts[STEP] += 1
    for number in range(count):
        leaf(number)
        await asyncio.sleep(0)


async def stream(count: int) -> AsyncIterator[int]:
    counts[STREAM] += 1
    for number in range(count):
        await asyncio.sleep(0)
        yield number


class Mortal:
    def __del__(self) -> None:
        counts[DEL] += 1
        leaf("dying")


def handler(number: int, frame: object) -> None:
    counts[HANDLER] += 1
    leaf(number)


def dead(reference: object) -> None:
    counts[DEAD] += 1


# ---- what is done --------------------------------------------------------------------------------


class Walk:
    def __init__(self, seed: float, folder: str, level: int) -> None:
        self.random = random.Random(seed)
        self.folder, self.level = folder, level

    def go(self, steps: int) -> None:
        for _ in range(steps):
            self.random.choice(ACTIONS)(self)

    def within_thread(self, steps: int) -> None:
        counts[THREADS] += 1
        self.go(steps)
        counts[THREADS] -= 1

    def value(self) -> object:
        cyclic: list[object] = []
        cyclic.append(cyclic)
        values = [
            None,
            2**70,
            "ä\ud800\0" * 99,
            b"\xff",
            {"password": 1, 2: cyclic},
            Mortal(),
            leaf,
            ValueError(1),
        ]
        return self.random.choice(values)

    def call(self) -> None:
        value = self.value()
        leaf(value, *range(self.random.randrange(20)), named=value)
        chain(self.random.choice([1, 30, 400]), value)
        with contextlib.suppress(ValueError):
            fail(self.random.randrange(9))
        with contextlib.suppress(RecursionError):
            chain(10**6, value) if self.random.random() < 0.1 else leaf(value)

    def generate(self) -> None:
        generator = self.random.choice([numbers, delegated])(self.random.randrange(6))
        for _ in range(self.random.randrange(1, 6)):
            next(generator, None)
        if self.random.random() < 0.5:
            kept.append(generator)
        elif self.random.random() < 0.5:
            with contextlib.suppress(KeyError):
                generator.throw(KeyError)  # type: ignore[attr-defined]
        del kept[: self.random.choice([0, 0, 0, 9])]

    def die(self) -> None:
        mortal: Any = Mortal()
        kept.append(weakref.ref(mortal, dead))
        if self.random.random() < 0.5:
            mortal.itself = mortal
        if self.random.random() < 0.2:
            gc.collect()

    def signals(self) -> None:
        for _ in range(self.random.randrange(9) * WITH_SIGNALS):
            os.kill(os.getpid(), signal.SIGUSR1)

    def tasks(self) -> None:
        async def main() -> None:
            async for number in stream(4):
                if number == self.random.randrange(9):
                    break
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(step(40), self.random.choice([0.0001, 9]))
            await asyncio.gather(*(step(self.random.randrange(9)) for _ in range(5)))

        asyncio.run(main())

    def threads(self) -> None:
        if self.level > 2:
            return
        for _ in range(self.random.randrange(1, 5)):
            walk = Walk(self.random.random(), self.folder, self.level + 1)
            thread = threading.Thread(target=walk.within_thread, args=[5], daemon=self.random.random() < 0.1)
            thread.start()
            if self.random.random() < 0.5:
                thread.join()

    def fork(self) -> None:
        if self.level > 1:
            return
        pid = os.fork()
        if pid:
            os.waitpid(pid, 0)
            return
        self.level += 2
        status = 9
        with contextlib.suppress(BaseException):
            self.go(9)
            status = 3
        drop_kept()
        end = self.random.choice([os._exit, os._exit, sys.exit, kill])
        if end is not kill:
            counts[ORDERLY] = 1
        end(status)

    def start(self) -> None:
        if self.level > 0:
            return
        seed = str(self.random.randrange(10**9))
        command = [sys.executable, __file__, seed, self.folder, str(self.level + 1)]
        if self.random.random() < 0.5:
            subprocess.run(command, check=False)
        else:
            kept.append(subprocess.Popen(command))


def drop_kept() -> None:
    """While calls are still recorded: the very last end of the interpreter is not."""
    kept.clear()
    gc.collect()


def kill(_: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


ACTIONS: list[Callable[[Walk], None]] = [Walk.call, Walk.generate, Walk.die, Walk.signals, Walk.tasks]
ACTIONS = ACTIONS * 3 + [Walk.threads, Walk.fork, Walk.fork, Walk.start]


def main() -> None:
    global counts
    seed, folder, level = sys.argv[1:]
    counts = new_counts(folder)
    counts[PID] = os.getpid()
    for_children: dict[int, memoryview] = {}  # by the thread that forks

    def before() -> None:
        gc.disable()
        for_children[threading.get_ident()] = new_counts(folder)

    def in_child() -> None:
        global counts
        counts = for_children[threading.get_ident()]
        counts[PID] = os.getpid()
        gc.enable()

    os.register_at_fork(before=before, after_in_parent=gc.enable, after_in_child=in_child)
    signal.signal(signal.SIGUSR1, handler)
    signal.signal(signal.SIGALRM, handler)
    if WITH_SIGNALS:
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    Walk(float(seed), folder, int(level)).go(40)
    signal.setitimer(signal.ITIMER_REAL, 0)
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    for process in kept:
        if isinstance(process, subprocess.Popen):
            process.wait()
    drop_kept()
    counts[ORDERLY] = 1


if __name__ == "__main__":
    main()
