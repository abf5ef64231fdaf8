"""Programs of asyncio, each run once under the oracle and once under pytrace: the same events, in
the same tasks, at the same depths. And how long what happened in a task took.

test_oracle.py compares programs that are made up; these have what asyncio has besides coroutines.
"""

import sys
from itertools import pairwise
from pathlib import Path

import pytest

from comparing import assert_nested, assert_same, expect, observe, write_programs
from recording import Record

PRELUDE = """\
import asyncio
import contextvars


async def leaf(n):
    await asyncio.sleep(0)
    return n


async def branch(n):
    total = 0
    for i in range(n):
        total += await leaf(i)
    return total


async def failing(n):
    await leaf(n)
    raise ValueError(n)


async def forever():
    try:
        await asyncio.Event().wait()
    finally:
        await leaf(0)


async def numbers(n):
    try:
        for i in range(n):
            yield await leaf(i)
    finally:
        await leaf(-1)


"""

PROGRAMS = {
    "groups": """
async def works():
    async with asyncio.TaskGroup() as tasks:
        for n in range(3):
            tasks.create_task(branch(n), name=f"branch {n}")
        tasks.create_task(branch(2))


async def fails():
    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(failing(1), name="failing")
            tasks.create_task(forever(), name="forever")
    except* ValueError as errors:
        await leaf(len(errors.exceptions))


async def main():
    await works()
    await asyncio.create_task(fails(), name="Größe")
    return await asyncio.gather(leaf(1), failing(2), return_exceptions=True)


asyncio.run(main())
""",
    "ends": """
async def times_out():
    try:
        async with asyncio.timeout(0):
            await forever()
    except TimeoutError:
        return await asyncio.wait_for(leaf(1), 60)


async def is_cancelled():
    task = asyncio.create_task(forever())
    await asyncio.sleep(0)
    task.cancel("enough")
    try:
        await task
    except asyncio.CancelledError:
        return task.cancelled()


async def shields():
    inner = asyncio.ensure_future(leaf(3))
    return await asyncio.shield(inner)


async def never_started():
    task = asyncio.create_task(leaf(1))
    task.cancel()
    return await asyncio.gather(task, return_exceptions=True)


async def main():
    for each in (times_out, is_cancelled, shields, never_started):
        await asyncio.create_task(each())
    asyncio.create_task(forever())  # ended by the runner
    await asyncio.sleep(0)


asyncio.run(main())
with asyncio.Runner() as runner:
    runner.run(leaf(1))
    runner.run(branch(2), context=contextvars.copy_context())
""",
    "generators": """
async def left():
    async for number in numbers(3):  # dropped: the loop ends it in a task of its own
        if number == 1:
            break
    await asyncio.sleep(0)


async def driven():
    generator = numbers(3)
    await anext(generator)
    await generator.asend(None)
    try:
        await generator.athrow(KeyError("no"))
    except KeyError:
        pass
    closed = numbers(2)
    await anext(closed)
    await closed.aclose()


async def shared(generator):
    return await anext(generator, None)


async def main():
    await left()
    await driven()
    generator = numbers(4)
    for n in range(5):
        await asyncio.create_task(shared(generator))
    kept.append(numbers(2))
    await anext(kept[0])
    return [number async for number in numbers(2)]


kept = []  # ended by the loop's end
asyncio.run(main())
""",
    "threads": """
def square(n):
    return n * n


def other_loop():
    return asyncio.run(branch(2))


def drive(coroutine):
    try:
        while True:
            coroutine.send(None)
    except StopIteration as stop:
        return stop.value


async def main():
    loop = asyncio.get_running_loop()
    loop.call_soon(square, 2)
    await asyncio.to_thread(square, 3)
    await loop.run_in_executor(None, other_loop)
    return drive(branch(1))


drive(branch(1))
asyncio.run(main())
""",
    "eager": """
async def parent(n):
    child = asyncio.create_task(parent(n - 1), name=f"child {n - 1}") if n else None
    await leaf(n) if n % 2 else None
    return child and await child


async def at_once():
    return 1


async def main():
    asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
    tasks = [asyncio.create_task(at_once()), asyncio.create_task(failing(1)), asyncio.create_task(parent(5))]
    return await asyncio.gather(*tasks, return_exceptions=True)


asyncio.run(main())
""",
}


def test_the_same_as_the_oracle(tmp_path: Path) -> None:
    chosen = [name for name in PROGRAMS if name != "eager" or sys.version_info >= (3, 12)]
    sources = [PRELUDE + PROGRAMS[name] for name in chosen]
    folder, driver = write_programs(tmp_path, sources)
    expected = expect(folder, driver, len(sources))
    assert_nested(expected)
    assert {event["task"] for event in expected} >= {"", "branch 1", "failing", "Größe", "Task-1"}
    only = observe(folder, driver, len(sources), "--modules", str(folder))
    everything = observe(folder, driver, len(sources))
    assert_nested(everything)
    for events in (expected, only, everything):
        events.sort(key=lambda event: event["thread"])  # which of several goes on first is chance
    assert_same(sources, expected, only, folder)
    for event in expected + everything:
        event["depth"] = 0
    assert_same(sources, expected, everything, folder)


def test_a_task_takes_as_long_as_it_says(record: Record) -> None:
    """Many at once of the same function: each one's call ends with its own return."""
    recorded = record("""
        import asyncio, time

        async def work(n):
            began = time.monotonic_ns()
            for _ in range(n % 3):
                await asyncio.sleep(n / 1000)
            return n, time.monotonic_ns() - began

        async def main():
            return await asyncio.gather(*map(work, range(30)))

        asyncio.run(main())
        """)
    ends = recorded.of("return", func="work")
    calls = {event.task: event for event in recorded.of("call", func="work")}
    assert len(ends) == len(calls) == 30
    for end in ends:
        n, measured = map(int, end.value.strip("()").split(", "))
        call = calls[end.task]
        assert call.values == {"n": str(n)}
        assert end.duration is not None
        assert measured <= end.duration
        assert end.duration == pytest.approx(end.time - call.time, abs=20)
        own = [event for event in recorded.of(func="work") if event.task == end.task]
        assert [event.kind for event in own] == ["call", *["yield", "resume"] * (n % 3), "return"]
        for begin, pause in pairwise(own):
            if pause.kind == "yield":
                assert pause.duration == pytest.approx(pause.time - begin.time, abs=20)
