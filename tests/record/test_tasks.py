"""The names of tasks: where they come from, that no code of the program is asked for them, and
where they are shown. test_async.py and test_oracle.py look whether the right events have them."""

import csv
import io
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest
from pytracer.reader.database import Database
from pytracer.reader.query import Query
from pytracer.reader.screen import navigation, pages

from recording import PYTRACE, Record, Recording, run, write


def tasks(recorded: Recording, func: str) -> list[str | None]:
    """Of the calls of a function of the script."""
    return [event.task for event in recorded.of("call", func=func)]


def printed(recorded: Recording, *options: str) -> str:
    done = run([*PYTRACE, "print", str(recorded.database), *options], recorded.database.parent)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_names_of_asyncio(record: Record) -> None:
    recorded = record("""
        import asyncio

        class Talkative(asyncio.Task):
            def get_name(self):
                print("asked for a name")
                return "another"

            def __eq__(self, other):
                print("compared")
                return self is other

            __hash__ = asyncio.Task.__hash__

        class Named(asyncio.tasks._PyTask):
            def __getattribute__(self, name):
                if name == "_name":
                    print("asked for an attribute")
                return super().__getattribute__(name)

        async def first():
            await asyncio.sleep(0)
            second()

        def second():
            third()

        def third():
            pass

        async def renamed():
            second()
            asyncio.current_task().set_name("after")
            await asyncio.sleep(0)
            second()

        async def main():
            loop = asyncio.get_running_loop()
            await asyncio.create_task(first(), name="A" * 500)
            await asyncio.create_task(first(), name="名前\\ud800\\n")
            await Talkative(first(), name="talkative")
            await Named(first(), name="in Python")
            await asyncio.create_task(renamed(), name="before")
            loop.call_soon(third)
            await asyncio.sleep(0)

        coroutine = first()
        coroutine.send(None)
        coroutine.close()
        asyncio.run(main())
        """)
    assert recorded.stdout == recorded.plain_output()
    names = ["A" * 200, r"名前\ud800\n", "talkative", "in Python"]
    assert tasks(recorded, "first") == [None, *names]
    assert tasks(recorded, "second") == [*names, "before", "after"]
    assert tasks(recorded, "third")[-1] is None
    assert tasks(recorded, "main") == [recorded.of("return", func="main")[0].task]
    assert tasks(recorded, "<module>") == [None]
    assert set(names) <= {event.task for event in recorded.events if event.func == "sleep"}


def test_signals_that_arrive_when_a_task_begins_are_handled_outside_of_recording(record: Record) -> None:
    """Asked for its name, a task of asyncio would let the interpreter run signal handlers: unseen,
    and what they raise would be lost."""
    recorded = record(
        """
        import asyncio
        import signal

        handled = 0

        def handler(number, frame):
            global handled
            handled += 1

        async def nothing():
            pass

        async def main():
            signal.setitimer(signal.ITIMER_REAL, 0.0001, 0.0001)
            while handled < 3_000:
                await asyncio.gather(*(nothing() for _ in range(50)))
            signal.setitimer(signal.ITIMER_REAL, 0)

        signal.signal(signal.SIGALRM, handler)
        asyncio.run(main())
        print(handled)
        """,
        "--no-stdlib",
    )
    query = "SELECT calls FROM hot WHERE func = 'handler'"
    done = run([*PYTRACE, "sql", str(recorded.database), query], recorded.database.parent)
    assert done.stdout.split()[-1] == recorded.stdout.strip(), done.stderr


def test_names_of_trio(record: Record) -> None:
    recorded = record("""
        import trio

        async def child(n):
            await trio.sleep(0)
            await trio.lowlevel.checkpoint()

        def plain():
            pass

        async def main():
            async with trio.open_nursery() as nursery:
                nursery.start_soon(child, 1)
                nursery.start_soon(child, 2, name="second")
            await trio.to_thread.run_sync(plain)
            plain()

        trio.run(main)
        """)
    found = {event.values["n"]: event.task for event in recorded.of("call", func="child")}
    assert found == {"1": "__main__.child", "2": "second"}
    assert [event.task for event in recorded.of(func="main")] == ["__main__.main"] * len(
        recorded.of(func="main")
    )
    assert tasks(recorded, "plain") == [None, "__main__.main"]


def test_a_task_goes_on_in_the_next_chunk(record: Record) -> None:
    """Each segment is read alone."""
    recorded = record(
        """
        import asyncio

        def step(n):
            return n

        async def many():
            for n in range(8_000):
                step(n)
                if n % 3_000 == 0:
                    await asyncio.sleep(0)

        async def main():
            await asyncio.create_task(many(), name="long")
            for n in range(8_000):
                step(n)

        asyncio.run(main())
        for n in range(8_000):
            step(n)
        """,
        "--buffer-size", "4MiB",
    )  # fmt: skip
    counts = Counter(event.task for event in recorded.of("call", "return", func="step"))
    assert counts.pop("long") == counts.pop(None) == 16_000
    assert counts.popitem()[1] == 16_000
    segments = {event.id >> 18 for event in recorded.of(func="step") if event.task == "long"}
    assert len(segments) > 2
    assert not recorded.of("lost")


def test_only_own_code(record: Record, tmp_path: Path) -> None:
    """The code between the task and the recorded functions is not recorded."""
    write(
        tmp_path,
        "library/framework.py",
        """
        async def serve(handler):
            return await wrapped(handler)

        async def wrapped(handler):
            return await handler()
        """,
    )
    recorded = record(
        """
        import asyncio, sys, threading
        sys.path.append("library")
        import framework

        async def handler():
            await inner()

        async def inner():
            await asyncio.sleep(0)

        async def main(both):
            both.wait()  # so that the tasks of two loops run at the same time
            await asyncio.gather(*(
                asyncio.create_task(framework.serve(handler), name=f"{threading.current_thread().name} {n}")
                for n in range(2)
            ))

        both = threading.Barrier(2)
        threads = [threading.Thread(target=asyncio.run, args=(main(both),), name=f"T{n}") for n in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        """,
        "--modules", str(tmp_path / "script.py"),
    )  # fmt: skip
    handlers = recorded.of(func="handler") + recorded.of(func="inner")
    assert {event.task for event in handlers} == {"T0 0", "T0 1", "T1 0", "T1 1"}
    assert all(event.task.startswith(event.thread) for event in handlers if event.task)
    assert len({event.task for event in recorded.of("call", func="main")}) == 2


def test_where_they_are_shown(record: Record) -> None:
    recorded = record("""
        import asyncio

        async def work(n, turn):
            await turn

        async def main():
            turns = [asyncio.Future() for _ in range(3)]
            tasks = [asyncio.create_task(work(*turn), name=f"worker-{turn[0]}") for turn in enumerate(turns)]
            await asyncio.sleep(0)
            for turn in reversed(turns):
                turn.set_result(None)
            await asyncio.gather(*tasks)

        asyncio.run(main())
        """)
    text = printed(recorded, "--filter", "task == 'WORKER-%' and func == 'work' and kind == 'call'")
    assert [line.split("  ")[1] for line in text.splitlines()] == [f"MainThread worker-{n}" for n in range(3)]
    rows = list(csv.DictReader(io.StringIO(printed(recorded, "--format", "csv"))))
    assert [row["task"] for row in rows] == [event.task or "" for event in recorded.events]
    query = "SELECT group_concat(task) FROM call WHERE task LIKE 'worker-%' AND func = 'work'"
    done = run([*PYTRACE, "sql", str(recorded.database), query], recorded.database.parent)
    assert done.stdout.splitlines()[-1].strip() == "worker-0,worker-1,worker-2"
    with closing(Database(str(recorded.database))) as database:
        pauses, _ = pages.after(database, Query("func = 'work' AND kind = 'yield'", ()), None, 10)
        assert len(pauses) == 3
        for row in pauses:
            resumed = navigation.partner(database, row)
            assert resumed is not None
            assert (resumed[6], resumed[14]) == ("resume", row[14])
            assert navigation.partner(database, resumed) == row


def test_greenlets_of_tasks(record: Record) -> None:
    """As SQLAlchemy does it: a task waits for what its greenlet has to wait for."""
    pytest.importorskip("greenlet")
    recorded = record("""
        import asyncio
        from greenlet import getcurrent, greenlet

        def step(n):
            return n

        def query(n):
            step(n)
            for _ in range(3):
                getcurrent().parent.switch(asyncio.sleep(0))
                step(n)

        async def spawn(n):
            child = greenlet(query)
            waits_for = child.switch(n)
            while not child.dead:
                await waits_for
                waits_for = child.switch()
            step(n)

        async def main():
            for turn in range(2):
                tasks = [asyncio.create_task(spawn(n), name=f"worker {turn} {n}") for n in range(3)]
                await asyncio.gather(*tasks)

        greenlet(step).switch(9)
        asyncio.run(main())
        greenlet(step).switch(9)
        """)
    found = Counter((event.task, event.values["n"]) for event in recorded.of("call", func="step"))
    workers = {(f"worker {turn} {n}", str(n)): 5 for turn in range(2) for n in range(3)}
    assert found == Counter(workers) + Counter({(None, "9"): 2})
