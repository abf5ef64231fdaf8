"""Threads of every kind: names, ids, ends, and interpreters that are not the main one."""

import sys
from collections import Counter

from recording import Record

NAMED = """
    import _thread, threading
    from concurrent.futures import ThreadPoolExecutor


    def say(what):
        print(what, threading.get_native_id(), flush=True)


    class Worker(threading.Thread):
        def __init__(self):
            super().__init__(name="worker")

        def run(self):
            say("subclass")


    def renamed():
        say("before")
        threading.current_thread().name = "new"
        say("after")


    def alone(done):
        say("alone")
        done.release()


    say("main")
    for thread in (
        threading.Thread(target=say, args=("named",), name="Ünïcode \\U0001f40d"),
        threading.Thread(target=say, args=("daemon",), name="demon", daemon=True),
        Worker(),
        threading.Thread(target=renamed, name="old"),
    ):
        thread.start()
        thread.join()
    with ThreadPoolExecutor(1, thread_name_prefix="pool") as pool:
        pool.submit(say, "pool").result()
    done = _thread.allocate_lock()
    done.acquire()
    _thread.start_new_thread(alone, (done,))
    done.acquire()
"""


def test_names_and_ids(record: Record) -> None:
    recording = record(NAMED)
    said = [line.split() for line in recording.stdout.splitlines()]
    calls = recording.of("call", func="say")
    assert [[event.value.strip("'"), str(event.tid)] for event in calls] == said
    assert {event.value.strip("'"): event.thread for event in calls} == {
        "main": "MainThread",
        "named": "Ünïcode \U0001f40d",
        "daemon": "demon",
        "subclass": "worker",
        "before": "old",
        "after": "old",  # a thread has the name that it began with
        "pool": "pool_0",
        "alone": "",
    }


# A library's own threads, as ctypes calls them back: each time there is a new thread state.
FOREIGN = """
    import ctypes, threading

    libc = ctypes.CDLL(None)
    CALLBACK = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
    libc.pthread_join.argtypes = ctypes.c_ulong, ctypes.c_void_p


    def inner(n):
        return n


    @CALLBACK
    def entered(argument):
        for n in range(3):
            inner(n)
        print(threading.get_native_id(), flush=True)
        return None


    for _ in range(4):
        thread = ctypes.c_ulong()
        assert libc.pthread_create(ctypes.byref(thread), None, entered, None) == 0
        assert libc.pthread_join(thread, None) == 0
"""


def test_threads_that_c_code_starts(record: Record) -> None:
    recording = record(FOREIGN, "--no-stdlib")
    tids = [int(line) for line in recording.stdout.split()]
    assert len(tids) == 4
    if sys.version_info < (3, 12):  # nobody tells of them
        tids = []
    calls = recording.of("call", func="entered")
    assert [(event.tid, event.depth) for event in calls] == [(tid, 0) for tid in tids]
    inner = recording.of("call", func="inner")
    assert [(event.tid, event.depth) for event in inner] == [(tid, 1) for tid in tids for _ in range(3)]
    assert len(recording.of("return", func="entered")) == len(tids)


# More threads than chunks, of which there are 64 here: all but a few have to be given back, and
# then the dumper has to have come, before there can be more.
WAITING = """
    import sqlite3, sys, threading, time

    COUNT = 150
    database = sqlite3.connect(sys.argv[1], timeout=60)


    def step(n):
        pass


    def wait(n, begun, go, done):
        step(n)
        begun.release()
        go.acquire()
        step(n)
        done.release()


    stored = "SELECT count(*) FROM segment WHERE complete"
    threads = []
    for n in range(2 * COUNT):
        limit = time.monotonic() + 60
        while n - database.execute(stored).fetchone()[0] > 40:
            assert time.monotonic() < limit, "no chunk is given back"
            time.sleep(0.002)
        if n < COUNT:
            locks = [threading.Semaphore(0) for _ in range(3)]
            thread = threading.Thread(target=wait, args=(n, *locks))
            threads.append((thread, locks))
            thread.start()
            locks[0].acquire()
        else:
            thread, locks = threads[n - COUNT]
            locks[1].release()
            locks[2].acquire()
    for thread, _ in threads:
        thread.join()
"""


def test_more_threads_than_chunks_at_once(record: Record) -> None:
    recording = record(WAITING, "--no-stdlib", "--buffer-size", "4MiB", args=("traces.sqlite",))
    assert not [event for event in recording.events if event.kind == "lost"]
    steps = recording.of("call", func="step")
    assert [event.value for event in steps] == [str(n) for _ in range(2) for n in range(150)]
    assert {event.depth for event in steps} == {1}
    assert len({event.tid for event in steps}) == 150
    assert Counter(event.kind for event in recording.of(func="wait")) == {"call": 150, "return": 150}


def test_daemon_threads_while_the_interpreter_ends(record: Record) -> None:
    recording = record(
        """
        import threading, time

        beats = [0] * 4


        def beat(which, n):
            beats[which] = n


        def run(which, ready):
            for n in range(1 << 40):
                beat(which, n)
                if n == 20:
                    ready.release()
                time.sleep(0.0001)  # so that they take turns


        ready = threading.Semaphore(0)
        for which in range(4):
            threading.Thread(target=run, args=(which, ready), daemon=True).start()
        for _ in beats:
            ready.acquire()
        print(*beats)
        """,
        "--no-stdlib",
    )
    assert recording.stderr == ""
    for which, beats in enumerate(recording.stdout.split()):
        calls = [event for event in recording.of("call", func="beat") if event.values["which"] == str(which)]
        assert [int(event.values["n"]) for event in calls] == list(range(len(calls)))
        assert int(beats) < len(calls)
        assert len({event.tid for event in calls}) == 1


INTERPRETERS = """
    import sys, threading

    if sys.version_info >= (3, 13):
        import _interpreters as interpreters
        kinds = [("legacy",), ("isolated",)]
    else:
        import _xxsubinterpreters as interpreters
        kinds = [()]

    INSIDE = "def inside(n): return n + 1\\nfor n in range(300): inside(n)"


    def outside(n):
        return n * 2


    def run():
        for n, kind in enumerate(kinds * 3):
            outside(n)
            interpreter = interpreters.create(*kind)
            try:
                assert interpreters.run_string(interpreter, INSIDE) is None
            finally:
                interpreters.destroy(interpreter)
            outside(n)


    run()
    for _ in range(2):
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    print("done")
"""


def test_subinterpreters_are_left_alone(record: Record) -> None:
    recording = record(INTERPRETERS, "--no-stdlib")
    assert (recording.stdout, recording.stderr) == ("done\n", "")
    each = 6 * (2 if sys.version_info >= (3, 13) else 1)
    assert Counter((event.kind, event.depth) for event in recording.of(func="outside")) == {
        ("call", 2): each,
        ("return", 2): each,
        ("call", 1): 2 * each,
        ("return", 1): 2 * each,
    }
    assert not [event for event in recording.events if event.func == "inside"]
