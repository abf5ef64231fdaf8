"""A recording of two threads that wait for each other, written by hand: each has a stream of its
own and one of the kernel's."""

from __future__ import annotations

from pathlib import Path

from handmade import Handmade, event

MAIN, GET, PUT, FUTEX, READ, SWITCH, WAKING = range(1, 8)
_SWITCH = ["prev_comm", "prev_pid", "prev_state", "next_comm", "next_pid"]


def write_waiting(path: Path) -> None:
    """main waits for a lock in get(), until worker wakes it in put(), which has read fd 5 before.
    Then the processor is taken from main. Times are units of 4 ns."""
    with Handmade(path) as database:
        run = database.run(features=7)
        database.thread(run, 2, 100, "", kind="kernel")
        database.thread(run, 3, 200, "worker")
        database.thread(run, 4, 200, "", kind="kernel")
        for number, func in ((MAIN, "main"), (GET, "get"), (PUT, "put")):
            database.code(run, number, func, line=number, mine=True)
        kernel = {"file": "", "line": 0, "layer": "kernel"}
        database.code(run, FUTEX, "futex", ["uaddr"], module="syscalls", **kernel)
        database.code(run, READ, "read", ["fd", "count"], module="syscalls", **kernel)
        database.code(run, SWITCH, "sched_switch", _SWITCH, module="sched", **kernel)
        database.code(run, WAKING, "sched_waking", ["comm", "pid"], module="sched", **kernel)
        database.segment(  # of the kernel's streams first: ids are no order
            run,
            [
                1,
                event("call", READ, 5, 1, time=41),
                event("event", SWITCH, "app", 200, 1, "swapper/1", 0, time=1),
                event("event", WAKING, "app", 200, time=8),
                event("event", SWITCH, "swapper/1", 0, 0, "app", 200, time=2),
                event("return", READ, 1, time=1, elapsed=12),
                event("call", FUTEX, 4096, time=2),
                event("event", WAKING, "app", 100, time=5),
                event("return", FUTEX, 1, time=5, elapsed=10),
            ],
            stream=4,
            base_depth=1,
        )
        database.segment(
            run,
            [
                event("call", MAIN, time=10),
                event("call", GET, time=10),
                event("return", GET, 7, time=50, elapsed=50),
                event("return", MAIN, time=40, elapsed=100),
            ],
        )
        database.segment(
            run, [event("call", PUT, time=40), event("return", PUT, time=35, elapsed=35)], stream=3
        )
        database.segment(
            run,
            [
                1,
                event("call", FUTEX, 4096, time=30),
                event("event", SWITCH, "app", 100, 1, "app", 200, time=2),
                event("event", WAKING, "app", 100, time=28),
                event("event", SWITCH, "swapper/0", 0, 0, "app", 100, time=4),
                event("return", FUTEX, 0, time=2, elapsed=36),
                event("event", SWITCH, "app", 100, 0, "other", 300, time=14, depth=1),
                event("event", SWITCH, "other", 300, 1, "app", 100, time=10),
            ],
            stream=2,
            base_depth=2,
        )
