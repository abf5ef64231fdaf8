"""A recording of all layers, written by hand."""

from __future__ import annotations

from pathlib import Path

from handmade import Handmade, event, value

MAIN, SAVE, DUMPS, FLUSH, WRITE, SWITCH = range(1, 7)


def write_layers(path: Path) -> None:
    """main saves: a function in C, a library's function below it, a system call, events of the
    kernel. An exception passes through the function in C."""
    with Handmade(path) as database:
        run = database.run(features=7)
        database.code(run, MAIN, "main", file="app.py", mine=True)
        database.code(run, SAVE, "Order.save", ["self"], module="_json", file="json.pyx", layer="cython")
        database.code(run, DUMPS, "list.append", ["arg0"], module="builtins", file="", line=0, layer="c")
        database.code(run, FLUSH, "flush(int)", module="libio.so", file="io.cc", line=9, layer="native")
        database.code(
            run, WRITE, "write", ["fd", "count"], module="syscalls", file="", line=0, layer="kernel"
        )
        switch = ["prev_comm", "next_pid"]
        database.code(run, SWITCH, "sched_switch", switch, module="sched", file="", line=0, layer="kernel")
        database.type(run, 1, "ValueError")
        error = value(ValueError("no"), type=1)
        database.segment(
            run,
            [
                event("call", MAIN, time=10),
                3,
                event("call", SAVE, 7, time=10),
                event("call", DUMPS, 7, time=10),
                event("call", FLUSH, time=10),
                event("call", WRITE, 1, 20, time=10),
                event("event", SWITCH, "app", 42, time=10),
                0,
                event("return", WRITE, 20, time=10, elapsed=20),
                event("return", FLUSH, time=10, elapsed=40),
                event("exception", DUMPS, time=10, elapsed=60),
                -1,
                event("exception", SAVE, error, time=10, elapsed=80),
                event("event", SWITCH, "app", 43, time=10),
                event("raise", MAIN, error, time=10, line=3),
                event("exception", MAIN, error, time=10, elapsed=120),
            ],
        )
