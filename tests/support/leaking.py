"""Calls functions of all kinds again and again, and prints what each leaves behind; run by
test_leaks.py.

A line of JSON for each kind: [name, calls, blocks, objects, bytes]. The latter three say how much
sys.getallocatedblocks(), gc.get_objects() and the C library's heap grow in so many calls, in that
one of several rounds where it is least: what is kept for good, once, does not count.
"""

import asyncio
import collections
import contextlib
import ctypes
import decimal
import enum
import gc
import json
import re
import sys
import threading
import types
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from pytracer import log, notrace

ROUNDS = 3
MORE_ROUNDS = 9  # where something has grown: a leak grows in each of them


class Mallinfo(ctypes.Structure):
    """Of the C library's <malloc.h>."""

    _fields_ = [
        *((name, ctypes.c_size_t) for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd")),
        *((name, ctypes.c_size_t) for name in ("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")),
    ]


mallinfo2 = ctypes.CDLL(None).mallinfo2
mallinfo2.restype = Mallinfo


class Own:
    def __init__(self, value: object) -> None:
        self.value = value

    def method(self) -> "Own":
        return self


class Slots:
    __slots__ = ("a",)


class Dict(dict[str, int]):
    pass


class Color(enum.Enum):
    RED = 1


class Number(enum.IntEnum):
    ONE = 1


Point = collections.namedtuple("Point", "x y")


def keep(value: Any) -> Any:
    return value


def nothing() -> None:
    pass


def call() -> None:
    nothing()


def signature(a: int, b: int = 1, *rest: int, c: int = 2, **more: int) -> int:
    return a


def arguments() -> None:
    signature(1, 2, 3, 4, c=5, d=6)


def fresh() -> None:
    for value in (object(), [1, "a"], {"k": 1.5}, "x" * 300, 10**40, b"y" * 30, (1, (2, (3, (4,))))):
        keep(value)
    keep("".join(chr(n) for n in range(200, 2000, 100)))


VALUES: list[Any] = [
    *(None, True, 5, -(10**50), 1.5, float("nan"), 2j, "text", "\ud800", "ü€😀", "z" * 5000, b"b", ...),
    *(bytearray(b"q"), memoryview(b"m"), (), (1, (2, (3, (4, (5,))))), [], [[[]]], {}, {1: {2: 3}}, {1}),
    *(frozenset({2}), range(3), slice(1), NotImplemented, Own(1), Slots(), Dict(a=1), Color.RED, Number.ONE),
    *(Point(1, 2), collections.OrderedDict(a=1), collections.defaultdict(int), collections.deque([1])),
    *(collections.Counter("ab"), Own, keep, Own(2).method, len, [].append, sys, types.SimpleNamespace(a=1)),
    *(ValueError("x", 1), KeyError(), OSError(2, "no"), ExceptionGroup("g", [ValueError()]), property()),
    *(decimal.Decimal(1), re.compile("a"), iter([]), lambda: 0, int, list[int], (n for n in ()), object()),
]
VALUES.append(VALUES)  # a list within itself


def values() -> None:
    for value in VALUES:
        keep(value)


def login(password: str, options: dict[str, str]) -> str:
    return password


def secrets() -> None:
    login("a" * 10, {"api_key": "z"})


def fail(value: object) -> None:
    raise ValueError(value)


def fail_below(value: object) -> None:
    fail(value)


def exceptions() -> None:
    with contextlib.suppress(ValueError):
        fail_below(1)


def chained() -> None:
    try:
        try:
            fail_below(1)
        except ValueError as error:
            raise KeyError(error) from error
    except KeyError:
        pass


def groups() -> None:
    try:
        raise ExceptionGroup("group", [ValueError(1), KeyError(2)])
    except* ValueError:
        pass
    except* KeyError:
        pass


def through_c() -> None:
    with contextlib.suppress(ValueError):
        list(map(fail, [1]))


def closures() -> None:
    cell = object()

    def inner(value: object) -> tuple[object, object]:
        return cell, value

    inner(1)


def generator(n: int) -> Iterator[int]:
    try:
        yield from range(n)
    finally:
        keep(n)


def unguarded(n: int) -> Iterator[int]:
    for i in range(n):  # noqa: UP028  # no `yield from` here
        yield i


def generators() -> None:
    for _ in unguarded(3):
        pass
    generator(1)  # never started
    for make in (generator, unguarded):
        next(make(3))  # dropped
        paused: Any = make(3)
        next(paused)
        paused.close()
        paused = make(3)
        next(paused)
        with contextlib.suppress(ValueError):
            paused.throw(ValueError("thrown"))


@types.coroutine
def sleep() -> Iterator[None]:
    yield


async def coroutine(value: object) -> object:
    await sleep()  # type: ignore[misc]
    return value


def coroutines() -> None:
    waiting = coroutine(1)
    waiting.send(None)
    with contextlib.suppress(StopIteration):
        waiting.send(None)
    waiting = coroutine(2)
    waiting.send(None)
    waiting.close()


async def numbers() -> AsyncIterator[int]:
    yield 1
    yield 2


@contextlib.asynccontextmanager
async def managed() -> AsyncIterator[None]:
    yield


async def uses_numbers() -> None:
    async for _ in numbers():
        pass
    async with managed():
        pass


def async_generators() -> None:
    with contextlib.suppress(StopIteration):
        uses_numbers().send(None)


@notrace
def hidden(function: Callable[[int], object]) -> None:
    function(1)


def not_recorded() -> None:
    hidden(keep)
    with contextlib.suppress(ValueError):
        hidden(fail)


def logs() -> None:
    log("text", a=1, b=[1, 2], c=Own(1))


def threads() -> None:
    thread = threading.Thread(target=exceptions)
    thread.start()
    thread.join()


RUNNER = asyncio.Runner()


def tasks() -> None:
    async def main() -> None:
        await asyncio.gather(*(coroutine(n) for n in range(3)))

    RUNNER.run(main())


def codes() -> None:
    names: dict[str, Any] = {}
    exec("def function(a): return a", names)
    names["function"](1)


def classes() -> None:
    class Local:
        def method(self) -> object:
            return self

    Local().method()


def recursion(n: int = 30) -> None:
    if n:
        recursion(n - 1)


WIDE: dict[str, Any] = {}
exec(f"def wide({','.join(f'a{n}' for n in range(300))}): return a0", WIDE)


def wide() -> None:
    WIDE["wide"](*range(300))


CASES: list[tuple[Callable[[], object], int]] = [
    (call, 1_000_000),
    (arguments, 50_000),
    (fresh, 3_000),
    (values, 1_500),
    (secrets, 20_000),
    (exceptions, 5_000),
    (chained, 5_000),
    (groups, 3_000),
    (through_c, 5_000),
    (closures, 20_000),
    (generators, 3_000),
    (coroutines, 5_000),
    (async_generators, 3_000),
    (not_recorded, 5_000),
    (logs, 10_000),
    (threads, 1_200),
    (tasks, 1_500),
    (codes, 1_500),
    (classes, 1_500),
    (recursion, 2_000),
    (wide, 1_500),
]


def repeat(function: Callable[[], object], times: int) -> None:
    for _ in range(times):
        function()


@notrace
def state() -> tuple[int, int, int]:
    gc.collect()
    heap = mallinfo2()
    return sys.getallocatedblocks(), len(gc.get_objects()), heap.uordblks + heap.hblkhd


def main() -> None:
    for function, times in CASES:
        growth = []
        repeat(function, times // 10)
        while len(growth) < ROUNDS or (len(growth) < MORE_ROUNDS and max(*map(min, *growth)) > times // 100):
            before = state()
            repeat(function, times // ROUNDS)
            growth.append([now - then for then, now in zip(before, state(), strict=True)])
        print(json.dumps([function.__name__, times // ROUNDS, *map(min, *growth)]))
    RUNNER.close()


main()
