"""Objects of known types are recorded as their repr shows them, and none of their code runs."""

import json
import re
import sys

from recording import PYTRACE, Record, Recording, run, texts

IMPORTS = """
import array, asyncio, collections, contextvars, datetime, decimal, enum, fractions, functools
import ipaddress, io, itertools, json, os, pathlib, re, socket, sys, tempfile, threading, time, types
import typing, uuid, weakref, zoneinfo
from collections import ChainMap, Counter, OrderedDict, defaultdict, deque, namedtuple
from datetime import date, timedelta, timezone
from decimal import Decimal
from fractions import Fraction

class Color(enum.Enum):
    RED = 1
    GREEN = "green"

class Level(enum.IntEnum):
    LOW = 1

class Name(enum.StrEnum):
    BOB = "bob"

class Perm(enum.Flag):
    R = 4
    W = 2
    X = 1

class Mode(enum.IntFlag):
    A = 1
    B = 2

Point = namedtuple("Point", "x y")

class Pair(typing.NamedTuple):
    first: int
    second: str = "b"

class Other:
    pass

def taken(value):
    pass

def moved(ordered, key):
    ordered.move_to_end(key)
    return ordered

berlin = timezone(timedelta(hours=1), "CET")
variable = contextvars.ContextVar("variable", default=3)
lock, rlock = threading.Lock(), threading.RLock()
thread = threading.Thread(name="worker", target=taken, args=(1,))
thread_in_the_back = threading.Thread(name="back", daemon=True)
other = Other()

def generate():
    yield 1

async def wait():
    pass

generator, coroutine = generate(), wait()
"""

# shown exactly as their repr is on this Python
AS_REPR = [
    "Color.RED",
    "Color.GREEN",
    "Level.LOW",
    "Name.BOB",
    "Perm.R",
    "Perm.R | Perm.W",
    "Perm(0)",
    "Mode.A | Mode.B",
    "Mode(0)",
    "Mode(9)",
    "[Color.RED, {Level.LOW: Color.GREEN}]",
    "datetime.datetime(2024, 2, 29, 23, 59, 58, 999999)",
    "datetime.datetime(2024, 1, 2)",
    "datetime.datetime(2024, 1, 2, 3, 4, 5)",
    "datetime.datetime(1, 1, 1, 0, 0, 0, 7)",
    "datetime.datetime(2024, 1, 2, 3, fold=1)",
    "datetime.datetime(2024, 1, 2, tzinfo=timezone.utc)",
    "datetime.datetime(2024, 1, 2, 3, 4, tzinfo=berlin)",
    "datetime.datetime(2024, 1, 2, tzinfo=zoneinfo.ZoneInfo('UTC'))",
    "date(9999, 12, 31)",
    "datetime.time(1)",
    "datetime.time(1, 2, 3, 4, fold=1)",
    "datetime.time(1, tzinfo=timezone.utc)",
    "timedelta()",
    "timedelta(days=-3, seconds=5)",
    "timedelta(microseconds=7)",
    "timezone.utc",
    "berlin",
    "timezone(timedelta(minutes=-90))",
    "zoneinfo.ZoneInfo('UTC')",
    *(
        f"Decimal({text!r})"
        for text in (
            "0",
            "-0",
            "1.50",
            "-12.345",
            "1E+3",
            "1e-9",
            "0.000001",
            "0.0000001",
            "0E-10",
            "0E+3",
            "123456789.987654321",
            "Infinity",
            "-Infinity",
            "NaN",
            "sNaN123",
            "-NaN7",
            "1E+999999",
            "12345678901234567890.1234567890123456789",
            "9" * 50,
            "1" + "0" * 19,
            "1" + "0" * 18,
            "9" * 19,
            "0." + "0" * 30 + "5",
        )
    ),
    "Fraction(3, -6)",
    "Fraction(10**30, 7)",
    "uuid.UUID(int=0)",
    "uuid.UUID(int=2**128 - 1)",
    "uuid.UUID('12345678-1234-5678-1234-567812345678')",
    "pathlib.Path('/usr/lib')",
    "pathlib.Path('.')",
    "pathlib.Path('a//b/./c/')",
    "pathlib.Path('//x/y')",
    "pathlib.Path('///x')",
    "pathlib.Path('/')",
    "pathlib.PurePosixPath('a', '/b', 'c')",
    "pathlib.Path('/a/b').parent",
    "pathlib.Path('a') / 'b' / '..' / 'c'",
    "pathlib.Path('it\\'s')",
    "pathlib.Path('\\n\\x1b\"\\'')",
    "pathlib.Path('a/b').with_suffix('.c')",
    "pathlib.Path('/x').resolve()",
    "Point(1, 'two')",
    "Point(Point(1, 2), [3])",
    "Pair(1)",
    "time.gmtime(0)[:2]",
    "deque()",
    "deque([1, 'b', None])",
    "deque([1, 2, 3], maxlen=2)",
    "deque(range(70), 5)",
    "deque(maxlen=0)",
    "defaultdict(list, {'a': [1]})",
    "defaultdict(None)",
    "Counter('abracadabra')",
    "Counter()",
    "Counter({'a': 1, 'b': 3, 'c': 1})",
    "ChainMap({'a': 1}, {2: 3})",
    "ChainMap()",
    "range(3)",
    "range(1, 10)",
    "range(10, 0, -3)",
    "range(10**20)",
    "slice(3)",
    "slice(None, -1, 2)",
    "slice('a', [1])",
    "1j",
    "-0j",
    "complex(-0.0, 1)",
    "complex(1.5, -2e300)",
    "complex(float('nan'), float('-inf'))",
    "complex(0, -0.0)",
    "bytearray()",
    "types.MappingProxyType({'a': 1})",
    "{'a': 1}.keys()",
    "{'a': 1, 'b': (2,)}.values()",
    "{'a': 1, 'b': 2}.items()",
    "{}.keys()",
    "{}.items()",
    "OrderedDict(a=1).keys()",
    "types.SimpleNamespace(a=1, b='x')",
    "types.SimpleNamespace()",
    "functools.partial(max, 1, key=abs).args",
    "re.compile('a+')",
    "re.compile(b'a+')",
    "re.compile('a', re.I | re.X)",
    "re.compile('a', re.A)",
    "re.match('a+', 'aab')",
    "re.search(b'c', b'abc')",
    "re.search('ü+', 'xüü')",
    "re.match('', '')",
    "array.array('i', [1, -2])",
    "array.array('d')",
    "array.array('d', [1.5])",
    "array.array('B', b'ab')",
    "array.array('Q', [2**64 - 1])",
    "array.array('f', [0.5])",
    "ipaddress.ip_address('10.0.0.1')",
    "ipaddress.ip_address('::')",
    "ipaddress.ip_address('::1')",
    "ipaddress.ip_address('2001:db8::1:0:0:1')",
    "ipaddress.ip_address('1:0:2:0:3:0:4:0')",
    "ipaddress.ip_address('fe80::1%eth0')",
    "ipaddress.ip_address('1::')",
    "ipaddress.ip_network('10.0.0.0/8')",
    "ipaddress.ip_network('2001:db8::/32')",
    "ipaddress.ip_interface('10.0.0.1/8')",
    "ipaddress.ip_interface('::1/64')",
    "ipaddress.IPv6Address(2**128 - 1)",
    "weakref.ref(other).__callback__",
    *["array.array('u', 'aü')"] * (sys.version_info < (3, 13)),
    "generator",
    "coroutine",
    "generate.__code__",
    "lock",
    "rlock",
    "variable",
    "contextvars.ContextVar('bare')",
    "thread",
    "thread_in_the_back",
    "[deque([Decimal(1), {'a': timedelta(1)}])]",
    "{'when': datetime.date(2020, 1, 1)}",
]

# shown in a form of our own
EXPECTED = {
    "functools.partial(len, [1])": "functools.partial(<built-in function len>, [1])",
    "functools.partial(taken, 1, value=2)": "functools.partial(<function __main__.taken>, 1, value=2)",
    "defaultdict(lambda: 1)": "defaultdict(<function __main__.<lambda>>, {})",
    "OrderedDict(a=1)": "OrderedDict({'a': 1})",
    "OrderedDict()": "OrderedDict()",
    "moved(OrderedDict(a=1, b=2, c=3), 'a')": "OrderedDict({'b': 2, 'c': 3, 'a': 1})",
    "moved(OrderedDict({1: 'a', 2: 'b'}), 1)": "OrderedDict({2: 'b', 1: 'a'})",
    "moved(OrderedDict(password=1, b=2), 'password')": "OrderedDict({'b': 2, 'password': <redacted>})",
    "moved(OrderedDict.fromkeys(range(12)), 0)": (
        "OrderedDict({1: None, 2: None, 3: None, 4: None, 5: None, 6: None, 7: None, 8: None, 9: None, "
        "10: None, ...})"
    ),
    "Counter({i: i % 10 for i in range(30)})": (
        "Counter({9: 9, 19: 9, 29: 9, 8: 8, 18: 8, 28: 8, 7: 7, 17: 7, 27: 7, 6: 6, ...})"
    ),
    "weakref.ref(other)": "<weakref at 0x…; to '__main__.Other' at 0x…>",
    "weakref.proxy(other)": "<weakproxy at 0x…; to '__main__.Other' at 0x…>",
    "weakref.ref(Other())": "<weakref at 0x…; dead>",
    "memoryview(b'ab')": "memoryview([97, 98], dtype=uint8, shape=(2,))",
    "memoryview(array.array('i', [1, 2]))[::-1]": "memoryview([2, 1], dtype=int32, shape=(2,))",
    "deque(range(30))": "deque([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ...])",
    "Counter(range(12))": "Counter({0: 1, 1: 1, 2: 1, 3: 1, 4: 1, 5: 1, 6: 1, 7: 1, 8: 1, 9: 1, ...})",
    "array.array('i', range(99))": "array('i', [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ...])",
    "bytearray(b'ab\\xff\\'')": 'bytearray(b"ab\\xff\'")',
    "bytearray(b'x' * 300)": "bytearray(b'" + "x" * 200 + "'...)",
    "types.SimpleNamespace(password='x')": "namespace(password=<redacted>)",
    "functools.partial(taken, token='x')": "functools.partial(<function __main__.taken>, token=<redacted>)",
    "defaultdict(int, secret='s')": "defaultdict(<class 'int'>, {'secret': <redacted>})",
    "{'token': 'x'}.values()": "dict_values([<redacted>])",
    "[[[[Color.RED]]]]": "[[[[...]]]]",
    "[[[Color.RED, date(1, 2, 3)]]]": "[[[<Color.RED: 1>, datetime.date(1, 2, 3)]]]",
    "deque([deque([deque([deque([1])])])])": "deque([deque([deque([deque([...])])])])",
}


def test_what_is_shown_is_found(record: Record) -> None:
    """Also the words that stand nowhere in the recording, as the reader makes them."""
    values = [*AS_REPR, *EXPECTED]
    _, _, recording = shown(record, values)
    for piece in (
        *("tzinfo", "microseconds=7", "days=", "IGNORECASE|", "VERBOSE", "Infinity", "NaN7", "first=1"),
        *(
            "second=",
            "dtype=int32",
            "uint8",
            "weakproxy",
            "dead",
            "unlocked",
            "owner=",
            "initial daemon",
            "object wait",
        ),
        *(
            "-2e+300j",
            "infj",
            "12345678-1234",
            "2001:db8",
            "namespace(a=1",
            "redacted",
            "/usr/lib",
            "maxlen=0",
        ),
        *(
            "GREEN",
            "utc",
            "OrderedDict(",
            "12345678901234567890.1",
            "2024, 2, 29",
            "span=(1, 3)",
            "ContextVar name",
        ),
    ):
        done = run(
            [
                *PYTRACE,
                "print",
                str(recording.database),
                "--format",
                "json",
                "--filter",
                f"func == 'taken' and kind == 'call' and value == '%{piece}%'",
            ],
            recording.script.parent,
        )
        assert done.returncode == 0, done.stderr
        found = [json.loads(line)["args"][0]["value"] for line in done.stdout.splitlines()]
        everything = [event.values["value"] for event in recording.of("call", func="taken")]
        assert [text for text in everything if piece.lower() in text.lower()] == found, piece
        assert found, piece


FILES = """
with tempfile.NamedTemporaryFile("w", delete=False) as file:
    taken(file.file)
    name = file.name
with open(name, "rb") as binary, open(name, "wb", 0) as raw:
    taken(binary)
    taken(raw)
os.unlink(name)
taken(sys.stdout)
taken(io.StringIO("x"))
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
    taken(udp)
    print(name, udp.fileno())
lock.acquire()
taken(lock)
rlock.acquire()
rlock.acquire()
taken(rlock)
taken(sys._getframe())
thread.start()
thread.join()
taken(thread)
taken(threading.current_thread())
try:
    raise ValueError
except ValueError as error:
    taken(error.__traceback__)

async def work():
    return 5

async def fail():
    raise KeyError(1)

async def main():
    taken(asyncio.current_task())
    first, second = asyncio.create_task(work(), name="first"), asyncio.create_task(fail(), name="second")
    third = asyncio.get_running_loop().create_future()
    taken(first)
    await asyncio.wait([first, second])
    taken(first)
    taken(second)
    taken(third)
    third.cancel()
    taken(third)

asyncio.run(main())
coroutine.close()
"""


def test_things_of_the_system(record: Record) -> None:
    recording = record(IMPORTS + FILES, "--no-stdlib")
    name, descriptor = recording.stdout.split()
    encoding = "UTF-8" if sys.version_info < (3, 15) else "utf-8"
    lines = (recording.script).read_text().splitlines()
    frame = 1 + lines.index("taken(sys._getframe())")
    raised = 1 + lines.index("    raise ValueError")
    owner = recording.of("call", func="taken")[0].tid
    found = [masked(event.values["value"]) for event in recording.of("call", func="taken")]
    found = [re.sub(r"(owner=|started |stopped )[0-9]+", r"\1N", text) for text in found]
    script = str(recording.script)
    assert owner
    assert found == [
        f"<_io.TextIOWrapper name={name!r} mode='w' encoding={encoding!r}>",
        f"<_io.BufferedReader name={name!r}>",
        f"<_io.FileIO name={name!r}>",
        "<_io.TextIOWrapper name='<stdout>' mode='w' encoding='utf-8'>",
        "<_io.StringIO at 0x…>",
        f"<socket.socket fd={descriptor}, family=2, type=2, proto=0>",
        "<locked _thread.lock object at 0x…>",
        "<locked _thread.RLock object owner=N count=2 at 0x…>",
        f"<frame at 0x…, file {script!r}, line {frame}, code <module>>",
        "1",
        "<Thread(worker, stopped N)>",
        "<_MainThread(MainThread, started N)>",
        f"<traceback at 0x…, file {script!r}, line {raised}, code <module>>",
        "<_asyncio.Task pending name='Task-1'>",
        "<_asyncio.Task pending name='first'>",
        "<_asyncio.Task finished name='first' result=5>",
        "<_asyncio.Task finished name='second' exception=KeyError(1)>",
        "<_asyncio.Future pending>",
        "<_asyncio.Future cancelled>",
    ]


HOSTILE = """
RAN = []

def trap(name):
    def method(*args, **kwargs):
        RAN.append(name)
        child = os.fork()
        if not child:
            os._exit(0)
        os.waitpid(child, 0)
        raise SystemError(name)
    return method

names = ("repr str len iter getitem getattr getattribute hash eq bool int index format contains "
         "get buffer").split()
traps = {f"__{name}__": trap(name) for name in names}
traps |= {name: property(trap(name)) for name in
          ("maxlen", "default_factory", "name", "value", "key", "_name_", "_value_", "_numerator",
           "int", "maps",
           "year", "func", "args", "keywords", "_ip", "_raw_paths", "_parts", "encoding", "buffer",
           "raw", "_name")}

def subclass(base):
    return type("Sub", (base,), {})

def harden(kind):
    for name, method in traps.items():
        type.__setattr__(kind, name, method)

class Half:
    pass

for base, args in ((date, (2024, 1, 2)), (datetime.datetime, (2024, 1, 2)), (timedelta, (1,)),
                   (Decimal, ("1.5",)),
                   (Fraction, (1, 2)), (uuid.UUID, (None, None, None, None, 5)),
                   (pathlib.PosixPath, ("/a",)),
                   (deque, ([1, 2], 5)), (defaultdict, (list,)), (Counter, ("aab",)),
                   (OrderedDict, ({"a": 1},)),
                   (ChainMap, ({},)), (functools.partial, (len,)), (bytearray, (b"x",)),
                   (array.array, ("i", [1])),
                   (complex, (1, 2)), (types.SimpleNamespace, ()),
                   (ipaddress.IPv4Address, ("1.2.3.4",)),
                   (threading.Thread, ()), (zoneinfo.ZoneInfo, ("UTC",)), (datetime.time, (1,))):
    kind = subclass(base)
    made = kind(*args)
    half = None
    if base in (Fraction, uuid.UUID, ChainMap, pathlib.PosixPath, threading.Thread, ipaddress.IPv4Address):
        half = object.__new__(subclass(base))
    harden(kind)
    taken(made)
    taken([made])
    if half is not None:
        taken(half)
del made, half
print(RAN)
coroutine.close()
"""


def test_no_code_of_a_subclass_runs(record: Record) -> None:
    recording = record(IMPORTS + HOSTILE, "--no-stdlib")
    assert recording.stdout == "[]\n"
    found = texts(recording.of("call", func="taken"))
    plain = [text for text in found if text[0] != "[" and "Sub at 0x…" not in text]
    assert plain == [
        "Sub(2024, 1, 2)",
        "Sub(2024, 1, 2, 0, 0)",
        "Sub(days=1)",
        "Sub('1.5')",
        "Sub(1, 2)",
        "Sub('00000000-0000-0000-0000-000000000005')",
        "Sub('/a')",
        "Sub([1, 2], maxlen=5)",
        "Sub(<class 'list'>, {})",
        "Sub({'a': 2, 'b': 1})",
        "Sub({'a': 1})",
        "Sub({})",
        "Sub(<built-in function len>)",
        "Sub(b'x')",
        "Sub('i', [1])",
        "Sub((1+2j))",
        "Sub()",
        "Sub('1.2.3.4')",
        plain[18],
        "Sub(key='UTC')",
        "Sub(1, 0)",
    ]
    assert plain[18].startswith("<Sub(Thread-")
    assert len([text for text in found if "Sub at 0x…" in text]) == 6


FAKES = """
import types as real

def fake(module, name, **members):
    made = type(name, (), {"__module__": module, "__slots__": tuple(members)})
    sys.modules[module] = real.ModuleType(module)
    setattr(sys.modules[module], name, made)
    value = made()
    for key, content in members.items():
        setattr(value, key, content)
    taken(value)

saved = dict(sys.modules)
fake("decimal", "Decimal", words=5)
fake("fractions", "Fraction", _numerator=1, _denominator=2)
fake("uuid", "UUID", int=5)
fake("enum", "Enum", _name_="A", _value_=2)
fake("numpy", "ndarray", data=b"x")
fake("datetime", "datetime", year=2)
sys.modules.update(saved)

class UUID:
    int = 5
taken(UUID())
coroutine.close()
"""


def test_a_type_of_the_same_name_is_another_one(record: Record) -> None:
    recording = record(IMPORTS + FAKES, "--no-stdlib")
    assert texts(recording.of("call", func="taken")) == [
        "<decimal.Decimal at 0x…>",
        "<fractions.Fraction at 0x…>",
        "<uuid.UUID at 0x…>",
        "<enum.Enum at 0x…>",
        "<numpy.ndarray at 0x…>",
        "<datetime.datetime at 0x…>",
        "<__main__.UUID at 0x…>",
    ]


def shown(
    record: Record, expressions: list[str], *options: str, before: str = ""
) -> tuple[list[str], list[str], Recording]:
    """What is recorded of these values, and their repr."""
    recording = record(
        IMPORTS
        + before
        + f"\nVALUES = {expressions!r}"
        + "\nfor expression in VALUES:\n    taken(eval(expression))\n"
        + "print(json.dumps([repr(eval(expression)) for expression in VALUES]))\ncoroutine.close()\n",
        "--no-stdlib",
        *options,
        PYTHONWARNINGS="ignore",
    )
    *_, line = recording.stdout.splitlines()
    found = [event.values["value"] for event in recording.of("call", func="taken")]
    return found, json.loads(line), recording


def masked(text: str) -> str:
    return re.sub(r"0x[0-9a-f]{6,}", "0x…", text)


def test_values_are_shown_as_their_repr(record: Record) -> None:
    found, expected, _ = shown(record, AS_REPR)
    assert dict(zip(AS_REPR, map(masked, found), strict=True)) == dict(
        zip(AS_REPR, map(masked, expected), strict=True)
    )


def test_values_shown_in_a_form_of_our_own(record: Record) -> None:
    found, _, _ = shown(record, list(EXPECTED))
    assert dict(zip(EXPECTED, map(masked, found), strict=True)) == EXPECTED
