"""A recording in which each kind of jump has somewhere to go, and the same events as plain data.

Written by hand: times, values and depths are known, and the same in each test.
"""

from __future__ import annotations

from pathlib import Path

from handmade import Handmade, event, value
from messages import trace_pb2

COUNT = 120  # of orders
USERS = ("bob", "eve", "mia")
_SEGMENT = 400  # events
_MAIN, _ORDER, _PAY, _CHECK, _WORK = range(1, 6)


def write(path: Path, source: Path) -> None:
    """A database of two runs: a short one, and one of two threads. `source`: the program's file."""
    with Handmade(path) as made:
        short = made.run(f"{source} --short")
        made.code(short, _MAIN, "main", module="shop", file=str(source), line=1)
        made.segment(short, [event("call", _MAIN, time=5), event("return", _MAIN, None, time=10)])
        run = made.run(str(source))
        made.code(run, _MAIN, "main", module="shop", file=str(source), line=1)
        made.code(run, _ORDER, "Shop.order", ["number", "user"], module="shop", file=str(source), line=4)
        made.code(run, _PAY, "pay", ["user", "amount"], module="shop.money", file=str(source), line=9)
        made.code(run, _CHECK, "check", ["user"], module="shop.money", file=str(source), line=14)
        made.code(run, _WORK, "work", ["n"], module="shop.packing", file=str(source), line=17)
        made.type(run, 1, "ValueError")
        made.thread(run, 2, 101, "packer")
        _store(made, run, 1, _orders(), 0)
        _store(made, run, 2, _packing(), 1000)


def _store(made: Handmade, run: int, stream: int, events: list[trace_pb2.Event], start: int) -> None:
    """In segments, with the times between call and return that there are."""
    depth, now = 0, 0
    began: list[int] = []
    for record in events:
        now += record.time
        kind = record.WhichOneof("what")
        if kind == "call":
            began.append(now)
        elif kind in ("return", "exception"):
            record.elapsed = now - began.pop()
    for sequence, first in enumerate(range(0, len(events), _SEGMENT)):
        some = events[first : first + _SEGMENT]
        made.segment(run, some, stream=stream, sequence=sequence, start=start, base_depth=depth)
        start += sum(record.time for record in some)
        for record in some:
            kind = record.WhichOneof("what")
            depth += {"call": 1, "return": -1, "exception": -1}.get(str(kind), 0)


def _orders() -> list[trace_pb2.Event]:
    records = [event("call", _MAIN, time=100)]
    for n in range(COUNT):
        user = USERS[n % 3]
        records += [
            event("call", _ORDER, n, user, time=50),
            event("call", _CHECK, user, time=10),
            event("return", _CHECK, True, time=20),
            event("call", _PAY, user, n * 10, time=10),
        ]
        slow = 2_500_000 if n % 40 == 20 else 100  # units of 4 ns
        error = value(ValueError(f"no money, {user}"), type=1)
        if n % 25 == 24:
            records += [
                event("raise", _PAY, error, time=slow, line=11),
                event("exception", _PAY, error, time=5),
                event("raise", _ORDER, error, time=5, line=6),
            ]
        else:
            records.append(event("return", _PAY, n * 10, time=slow))
        if n % 50 == 30:
            records.append(event("lost", 1204, time=5))
        if n % 30 == 10:
            records.append(event("log", _ORDER, f"order {n}", n, time=5, line=7, names=["number"]))
        records.append(event("return", _ORDER, f"order {n} of {user}", time=30))
    records.append(event("return", _MAIN, None, time=10))
    return records


def _packing() -> list[trace_pb2.Event]:
    records = []
    for n in range(60):
        records += [event("call", _WORK, n, time=300), event("return", _WORK, n * n, time=200)]
    error = value(ValueError("torn"), type=1)  # ends the thread
    return [
        *records,
        event("call", _WORK, 60, time=300),
        event("raise", _WORK, error, time=20, line=18),
        event("exception", _WORK, error, time=5),
    ]


SOURCE = """\
def main():
    pass

def order(self, number, user):
    check(user)
    pay(user, number * 10)
    log("order")

def pay(user, amount):
    if not amount:
        raise ValueError(user)
    return amount

def check(user):
    return True

def work(n):
    return n * n
"""
