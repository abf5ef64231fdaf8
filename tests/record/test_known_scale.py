"""Very many objects and values of known types: all are there, and nothing is kept."""

import json

import pytest

from recording import PYTRACE, Record, run

MANY = """
import ctypes
from pytracer import notrace
from datetime import date

CLASSES, ROUNDS = 1000, {rounds}

class Mallinfo(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in
                "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()]

mallinfo2 = ctypes.CDLL(None).mallinfo2
mallinfo2.restype = Mallinfo

@notrace
def heap():
    found = mallinfo2()
    return found.uordblks + found.hblkhd

def taken(value):
    pass

classes = [type(f"C{{n}}", (), {{}}) for n in range(CLASSES)]
day = date(2024, 1, 2)

def work(number):
    for n, made in enumerate(classes):
        value = made()
        value.number = number
        value.n = n
        value.day = day
        taken(value)

work(0)
before = heap()
for number in range(1, ROUNDS):
    work(number)
print(heap() - before)
"""


@pytest.mark.parametrize("rounds", [20, pytest.param(1000, marks=pytest.mark.slow)])
def test_many_objects_of_many_classes(rounds: int, record: Record) -> None:
    """A sample of them is shown as it is, no event is lost, and the hook's memory does not grow."""
    source = MANY.format(rounds=rounds)
    recording = record(source, "--no-stdlib", "--attributes", "8", "--max-size", "2GB")
    assert int(recording.stdout) < 1_000_000
    for number in (0, rounds // 2, rounds - 1):
        command = [*PYTRACE, "print", "--format", "json", "--filter"]
        chosen = f"func == 'taken' and kind == 'call' and arg == 'value.number' and value == '{number}'"
        done = run([*command, chosen, str(recording.database)], recording.database.parent)
        found = [json.loads(line)["args"][0]["value"] for line in done.stdout.splitlines()]
        assert found == [
            f"__main__.C{n}(number={number}, n={n}, day=datetime.date(2024, 1, 2))" for n in range(1000)
        ]


LEAKS = """
import array, asyncio, contextvars, datetime, decimal, enum, fractions, functools, gc, ipaddress, json
import pathlib, re, sys, threading, types, uuid, weakref, zoneinfo
from collections import ChainMap, Counter, OrderedDict, defaultdict, deque, namedtuple

def taken(value):
    pass

class Color(enum.Enum):
    RED = 1

class Mode(enum.IntFlag):
    A = 1
    B = 2

class Order:
    def __init__(self):
        self.number, self.name = object(), "".join(["na", "me"])

class Slots:
    __slots__ = ("a", "b")

Point = namedtuple("Point", "x y")
slots = Slots()
slots.a = slots.b = object()
inside = OrderedDict(a=1, b=object())
inside.move_to_end("a")
lock, queue = threading.RLock(), deque([object()] * 5, 9)
VALUES = [
    Color.RED, Mode(3), datetime.date(2024, 1, 2),
    datetime.datetime(2024, 1, 2, tzinfo=datetime.timezone.utc),
    datetime.time(1), datetime.timedelta(1), datetime.timezone(datetime.timedelta(1 / 24), "CET"),
    zoneinfo.ZoneInfo("UTC"), decimal.Decimal("1.5"), fractions.Fraction(1, 3), uuid.UUID(int=5), 1j,
    pathlib.Path("a/b"), Point(1, object()), queue, defaultdict(list, a=[1]), inside, Counter("abca"),
    ChainMap({1: 2}), types.MappingProxyType(inside), {1: 2}.keys(), inside.values(),
    inside.items(), range(9),
    slice(1), bytearray(b"a"), array.array("i", [1]), memoryview(b"abc"), types.SimpleNamespace(a=object()),
    functools.partial(len, 1, a=object()), re.compile("a"), re.match("a", "a"), weakref.ref(Color.RED),
    taken.__code__, sys._getframe(), lock, threading.Thread(), ipaddress.ip_address("::1%a"),
    ipaddress.ip_network("10.0.0.0/8"), ipaddress.ip_interface("::1/64"), Order(), slots,
    contextvars.ContextVar("v", default=queue), sys.stdout, (n for n in ()),
]
try:
    import numpy
    VALUES += [numpy.arange(5), numpy.array([object(), None]), numpy.float64(1.5), numpy.zeros(2, "M8[s]")]
except ImportError:
    pass
WATCHED = [*VALUES, *map(type, VALUES), None, True, type, object, *gc.get_referents(*VALUES)]
WATCHED = [value for value in WATCHED if type(value) is not int]  # counts are ints themselves

def work(times):
    for _ in range(times):
        for value in VALUES:
            taken(value)
            taken([value])

def state():
    gc.collect()
    with open("/proc/self/statm") as file:
        resident = int(file.read().split()[1])
    return list(map(sys.getrefcount, WATCHED)), resident

work(200)
state()
before, resident = state()
work({times})
after, now = state()
print(json.dumps([
    [repr(type(value)), then, later]
    for value, then, later in zip(WATCHED, before, after) if abs(then - later) > 20
]))
print((now - resident) * 4096)
"""


@pytest.mark.parametrize("options", [(), ("--attributes", "8")], ids=["values", "attributes"])
def test_nothing_is_kept(options: tuple[str, ...], record: Record) -> None:
    """Each object, its type and what it refers to has as many references as before."""
    source = LEAKS.replace("{times}", "300")
    recording = record(source, "--no-stdlib", "--max-size", "20MB", *options)
    kept, grown = recording.stdout.splitlines()
    assert json.loads(kept) == []
    assert int(grown) < 4_000_000
