"""Subclasses of known types that do harm wherever they are asked: whole, half-built and emptied.
And objects that are cleared while they are looked at."""

import re

import pytest

from family import wait_until_finished
from recording import Record, texts

SUBCLASSES = """
import array, asyncio, collections, contextvars, datetime, decimal, enum, fractions, functools, io
import ipaddress, mmap, os, pathlib, socket, sys, threading, types, uuid, weakref, zoneinfo
from collections import ChainMap, Counter, OrderedDict, defaultdict, deque, namedtuple

try:
    import numpy
except ImportError:
    numpy = None

RAN = []
HELD = []

def taken(value):
    pass

def trap(name):
    def method(*args, **kwargs):
        RAN.append(name)
        print(name, flush=True)
        child = os.fork()
        if not child:
            os._exit(0)
        os.waitpid(child, 0)
        HELD.clear()
        raise SystemError(name)
    return method

SPECIAL = '''repr str len iter getitem getattr getattribute hash eq bool int index float complex format
    contains get set delete buffer release_buffer fspath bytes dir sizeof missing reversed length_hint
    next call array array_interface array_struct instancecheck subclasscheck reduce'''.split()
PROPERTIES = '''maxlen default_factory name value key int maps year func args keywords _ip encoding buffer
    raw _name mode closed _state _loop _result _exception typecode itemsize _name_ _value_ _numerator
    _denominator _raw_paths _parts _prefixlen network_address _scope_id shape strides data dtype fields
    family type proto tzinfo days real imag _fields'''.split()
# not of those that are slots or the like of the class itself, where the value lies
TRAPS = {f"__{name}__": trap(name) for name in SPECIAL}
TRAPS |= {name: property(trap(name)) for name in PROPERTIES}

def harden(kind):
    for name, method in TRAPS.items():
        if name not in kind.__dict__ and (name != "_fields" or kind.__name__ != "Sub"):
            type.__setattr__(kind, name, method)

def soften(kind):
    for name, method in TRAPS.items():
        if kind.__dict__.get(name) is method:
            type.__delattr__(kind, name)

class Other:
    pass

other = Other()
loop = asyncio.new_event_loop()

async def work():
    pass

waiting = work()

def task(kind):
    made = kind(waiting, loop=loop)
    made._log_destroy_pending = False
    return made

MAKE = [
    (datetime.date, lambda kind: kind(2024, 1, 2)),
    (datetime.datetime, lambda kind: kind(2024, 1, 2)),
    (datetime.time, lambda kind: kind(1)),
    (datetime.timedelta, lambda kind: kind(1)),
    (zoneinfo.ZoneInfo, lambda kind: kind("UTC")),
    (decimal.Decimal, lambda kind: kind("1.5")),
    (fractions.Fraction, lambda kind: kind(1, 2)),
    (uuid.UUID, lambda kind: kind(int=5)),
    (complex, lambda kind: kind(1, 2)),
    (bytearray, lambda kind: kind(b"x")),
    (array.array, lambda kind: kind("i", [1])),
    (mmap.mmap, lambda kind: kind(-1, 16)),
    (deque, lambda kind: kind([1, 2], 5)),
    (defaultdict, lambda kind: kind(list, {"a": 1})),
    (Counter, lambda kind: kind("aab")),
    (OrderedDict, lambda kind: kind({"a": 1})),
    (ChainMap, lambda kind: kind({})),
    (types.SimpleNamespace, lambda kind: kind(a=1)),
    (functools.partial, lambda kind: kind(len, 1)),
    (namedtuple("Point", "x y"), lambda kind: kind(1, 2)),
    (pathlib.PurePosixPath, lambda kind: kind("/a", "b")),
    (pathlib.PosixPath, lambda kind: kind("a")),
    (ipaddress.IPv4Address, lambda kind: kind("1.2.3.4")),
    (ipaddress.IPv6Address, lambda kind: kind("fe80::1%a")),
    (ipaddress.IPv4Network, lambda kind: kind("10.0.0.0/8")),
    (ipaddress.IPv6Network, lambda kind: kind("::/8")),
    (ipaddress.IPv4Interface, lambda kind: kind("1.2.3.4/8")),
    (ipaddress.IPv6Interface, lambda kind: kind("::1/64")),
    (weakref.ref, lambda kind: kind(other)),
    (weakref.WeakMethod, lambda kind: kind(types.MethodType(print, other))),
    (threading.Thread, lambda kind: kind(name="worker")),
    (type(threading.RLock()), lambda kind: kind()),
    (io.FileIO, lambda kind: kind("/dev/null")),
    (io.BufferedReader, lambda kind: kind(io.FileIO("/dev/null"))),
    (io.BufferedWriter, lambda kind: kind(io.FileIO("/dev/null", "w"))),
    (io.BufferedRandom, lambda kind: kind(io.FileIO("/dev/null", "r+"))),
    (io.TextIOWrapper, lambda kind: kind(io.BufferedReader(io.FileIO("/dev/null")), "ascii")),
    (socket.socket, lambda kind: kind(socket.AF_INET, socket.SOCK_DGRAM)),
    (asyncio.Future, lambda kind: kind(loop=loop)),
    (asyncio.Task, task),
]
if numpy:
    MAKE += [
        (numpy.ndarray, lambda kind: numpy.arange(3).view(kind)),
        (numpy.float64, lambda kind: kind(1.5)),
        (numpy.int16, lambda kind: kind(3)),
    ]

ENUMS = [
    (enum.Enum, object, 1), (enum.IntEnum, int, 1), (enum.StrEnum, str, "a"), (enum.Flag, object, 1),
    (enum.IntFlag, int, 1),
]

def half_built(base, kind, *plain):
    for new in (base.__new__, *(each.__new__ for each in plain), object.__new__):
        try:
            return new(kind)
        except Exception:
            pass

def emptied(value):
    try:
        vars(value).clear()
    except Exception:
        return None
    return value

def subclass(base):
    return type(base)("Sub", (base,), {})

def look(name, kind, value):
    harden(kind)
    HELD.append(value)
    del value
    taken(name)
    taken(HELD[0])
    taken(HELD)
    HELD.append({1: HELD.pop()})
    taken(HELD)
    value = HELD.pop()[1]
    soften(kind)

for base, make in MAKE:
    kind = subclass(base)
    look(base.__name__, kind, make(kind))
    half = half_built(base, kind)
    if half is not None and type(half) is kind:
        look("half " + base.__name__, kind, half)
    del half
    kind = subclass(base)
    less = emptied(make(kind))
    if less is not None:
        look("empty " + base.__name__, kind, less)
    del less
for base, plain, value in ENUMS:
    kind = base("Sub", {"A": value})
    look(base.__name__, kind, kind.A)
    look("half " + base.__name__, kind, half_built(plain, kind))
    look("empty " + base.__name__, kind, emptied(kind.A))
print(RAN, flush=True)
waiting.close()
os._exit(0)
"""

WHOLE = {
    "date": "Sub(2024, 1, 2)",
    "datetime": "Sub(2024, 1, 2, 0, 0)",
    "time": "Sub(1, 0)",
    "timedelta": "Sub(days=1)",
    "ZoneInfo": "Sub(key='UTC')",
    "Decimal": "Sub('1.5')",
    "Fraction": "Sub(1, 2)",
    "UUID": "Sub('00000000-0000-0000-0000-000000000005')",
    "complex": "Sub((1+2j))",
    "bytearray": "Sub(b'x')",
    "array": "Sub('i', [1])",
    "mmap": "Sub([...], dtype=uint8, shape=(16,))",
    "deque": "Sub([1, 2], maxlen=5)",
    "defaultdict": "Sub(<class 'list'>, {'a': 1})",
    "Counter": "Sub({'a': 2, 'b': 1})",
    "OrderedDict": "Sub({'a': 1})",
    "ChainMap": "Sub({})",
    "SimpleNamespace": "Sub(a=1)",
    "partial": "Sub(<built-in function len>, 1)",
    "Point": "Sub(x=1, y=2)",
    "PurePosixPath": "Sub('/a/b')",
    "PosixPath": "Sub('a')",
    "IPv4Address": "Sub('1.2.3.4')",
    "IPv6Address": "Sub('fe80::1%a')",
    "IPv4Network": "Sub('10.0.0.0/8')",
    "IPv6Network": "Sub('::/8')",
    "IPv4Interface": "Sub('1.2.3.4/8')",
    "IPv6Interface": "Sub('::1/64')",
    "Enum": "<Sub.A: 1>",
    "IntEnum": "<Sub.A: 1>",
    "StrEnum": "<Sub.A: 'a'>",
    "Flag": "<Sub.A: 1>",
    "IntFlag": "<Sub.A: 1>",
}


@pytest.mark.parametrize("options", [(), ("--attributes", "8")], ids=["values", "attributes"])
def test_no_code_of_a_subclass_runs(record: Record, options: tuple[str, ...]) -> None:
    recording = record(SUBCLASSES, "--no-stdlib", *options)
    assert recording.stdout == "[]\n"
    wait_until_finished(recording.database)  # os._exit does not wait for the dumper
    found = texts(recording.of("call", func="taken"))
    assert len(found) % 4 == 0
    shown = {found[at].strip("'"): found[at + 1 : at + 4] for at in range(0, len(found), 4)}
    assert {name: shown[name][0] for name in WHOLE} == WHOLE
    for name, values in shown.items():
        assert re.match(r"<?(\w+ )?(\w+\.)?Sub\b", values[0]), name
        assert len(values) == 3


CLEARED = """
import array, contextvars, datetime, functools, io, types
from collections import ChainMap, Counter, OrderedDict, defaultdict, deque, namedtuple

try:
    import numpy
except ImportError:
    numpy = None

def taken(value):
    pass

CLEAR, ARMED = [], []

class Clears:
    def __repr__(self):
        for clear in CLEAR if ARMED else ():
            clear()
        return "clears"
    def __call__(self):
        pass

def dictionary(value):
    value.update({n: Clears() for n in range(12)})
    CLEAR.append(value.clear)
    return value

def ordered(value):
    dictionary(value).move_to_end(0)
    return value

def of_deque():
    value = deque([Clears() for _ in range(12)])
    CLEAR.append(value.clear)
    return value

def of_maps():
    value = ChainMap({1: Clears()}, {2: Clears()})
    CLEAR.append(value.maps.clear)
    return value

def of_namespace():
    value = types.SimpleNamespace(a=Clears(), b=Clears())
    CLEAR.append(vars(value).clear)
    return value

def of_partial():
    value = functools.partial(Clears(), Clears(), Clears(), a=Clears(), b=Clears())
    CLEAR.append(lambda: value.__setstate__((len, (), {}, {})))
    return value

def of_factory():
    value = dictionary(defaultdict(int))
    value.default_factory = Clears()
    CLEAR.append(lambda: setattr(value, "default_factory", None))
    return value

def of_file():
    value = io.TextIOWrapper(io.BytesIO())
    vars(value).update(name=Clears(), mode="".join(["made", " here"]))
    CLEAR.append(vars(value).clear)
    return value

def of_objects():
    value = numpy.array([Clears() for _ in range(12)], dtype=object)
    CLEAR.append(lambda: value.fill(None))
    return value

class Zone(datetime.tzinfo, Clears):
    __repr__ = Clears.__repr__

def of_slice():
    held = [slice(Clears(), Clears(), Clears())]
    CLEAR.append(held.clear)
    return held

makers = [
    lambda: dictionary(Counter()), lambda: ordered(OrderedDict()), lambda: dictionary(defaultdict()),
    lambda: types.MappingProxyType(dictionary({})), lambda: types.MappingProxyType(ordered(OrderedDict())),
    of_deque, of_maps, of_namespace, of_partial, of_factory, of_file, of_slice,
    *[lambda name=name, make=make: getattr(make(), name)() for name in ("keys", "values", "items")
      for make in (lambda: dictionary({}), lambda: ordered(OrderedDict()))],
    lambda: datetime.datetime(2024, 1, 2, tzinfo=Zone()),
    lambda: contextvars.ContextVar("name", default=Clears()),
    *[of_objects] * (numpy is not None),
]
for make in makers:
    value = make()
    ARMED.append(True)
    taken(value)
    taken([value])
    ARMED.clear()
    CLEAR.clear()
del value
print(len(makers))
"""


def test_what_is_looked_at_may_be_cleared_meanwhile(record: Record) -> None:
    """With --repr, when code of the program runs."""
    recording = record(CLEARED, "--no-stdlib", "--repr")
    found = texts(recording.of("call", func="taken"))
    assert len(found) == 2 * int(recording.stdout)
    assert found[0] == "Counter({0: clears, ...})"
    assert found[10] == "deque([clears, ...])"
    assert found[14] == "namespace(a=clears, ...)"
