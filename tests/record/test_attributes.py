"""Attributes of objects (--attributes): those that are there, in their order, without any code."""

import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from recording import PYTRACE, Record, Recording, run, texts
from recording import record as recorded

TAKEN = "def taken(value):\n    return value\n"


def shown(recording: Recording) -> list[str]:
    calls, returns = (texts(recording.of(kind, func="taken")) for kind in ("call", "return"))
    assert calls == returns
    return calls


CLASSES = """
    import io
    from dataclasses import dataclass, field

    class Order:
        def __init__(self, user, total):
            taken(self)
            self.user = user
            taken(self)
            self.total = total

    order = Order("bob", 3)
    taken(order)
    order.user = "eve"
    order.items = ["tea", {"cake": 2}]
    taken(order)
    del order.user
    taken(order)
    order.user = None
    taken(order)
    order.line, order.me = Order(1, 2), order
    taken(order)
    taken([order])
    order.many = [order, [order]]
    order.many.append(order.many)
    del order.line, order.me, order.items
    taken(order)
    order.__dict__
    taken(order)
    order.__dict__ = {"second": 2, "first": 1, 5: 5}
    taken(order)

    class Sub(dict):
        pass
    order.__dict__ = Sub(a=1)
    order.__dict__["b"] = 2
    taken(order)
    del order.__dict__
    taken(order)

    class Slots:
        __slots__ = ("zeta", "alpha", "__private", "__weakref__", "__like_this__")
    slots = Slots()
    taken(slots)
    slots.alpha, slots.zeta, slots._Slots__private, slots.__like_this__ = 1, 2, 3, 4
    taken(slots)

    class Mixed(Slots):
        __slots__ = {"own": "described", "alpha": "again", "__dict__": ""}
    mixed = Mixed()
    mixed.other, mixed.own, mixed.alpha, mixed.zeta = 1, 2, 3, 4
    Slots.alpha.__set__(mixed, "hidden")
    taken(mixed)

    class One:
        __slots__ = "one"
    one = One()
    one.one = 1
    taken(one)

    @dataclass
    class Plain:
        name: str
        tags: list = field(default_factory=list)
    taken(Plain("x"))

    @dataclass(slots=True)
    class Slotted:
        name: str
        count: int = 0
    taken(Slotted("x"))

    @dataclass(slots=True)
    class More(Slotted):
        also: float = 0.5
    taken(More("x"))

    class Text(io.StringIO):
        pass
    text = Text()
    text.x = 1
    taken(text)

    secret = Order("bob", 1)
    secret.password, secret.api_key = "hunter2", [1]
    taken(secret)

    long = Order("x" * 300, 1)
    long.big = list(range(50))
    taken(long)
    setattr(long, "not a\\nname", 1)
    del long.user, long.big
    taken(long)

    big = Order(0, 0)
    for n in range(40):
        setattr(big, f"n{n}", n)
    taken(big)

    class Meta(type):
        pass
    class Made(metaclass=Meta):
        pass
    made = Made()
    made.__class__ = Order
    made.x = 1
    taken(made)
    taken(object())
    taken(lambda: 0)
    taken(Made)
    class Number(int):
        pass
    number = Number(5)
    number.unit = "m"
    taken(number)
"""
EXPECTED = [
    "<__main__.Order at 0x…>",
    "__main__.Order(user='bob')",
    "__main__.Order(user='bob', total=3)",
    "__main__.Order(user='eve', total=3, items=['tea', {'cake': 2}])",
    "__main__.Order(total=3, items=['tea', {'cake': 2}])",
    "__main__.Order(total=3, items=['tea', {'cake': 2}], user=None)",
    "<__main__.Order at 0x…>",
    "__main__.Order(user=1)",
    "__main__.Order(total=3, items=['tea', {'cake': 2}], user=None, line=<__main__.Order at 0x…>, "
    "me=<__main__.Order at 0x…>)",
    "[<__main__.Order at 0x…>]",
    "__main__.Order(total=3, user=None, many=[<__main__.Order at 0x…>, [<__main__.Order at 0x…>], [...]])",
    "__main__.Order(total=3, user=None, many=[<__main__.Order at 0x…>, [<__main__.Order at 0x…>], [...]])",
    "__main__.Order(second=2, first=1)",
    "__main__.Order(a=1, b=2)",
    "<__main__.Order at 0x…>",
    "<__main__.Slots at 0x…>",
    "__main__.Slots(zeta=2, alpha=1, _Slots__private=3)",
    "__main__.Mixed(zeta=4, own=2, alpha=3, other=1)",
    "__main__.One(one=1)",
    "__main__.Plain(name='x', tags=[])",
    "__main__.Slotted(name='x', count=0)",
    "__main__.More(name='x', count=0, also=0.5)",
    "__main__.Text(x=1)",
    "<__main__.Order at 0x…>",
    "__main__.Order(user='bob')",
    "__main__.Order(user='bob', total=1, password=<redacted>, api_key=<redacted>)",
    "<__main__.Order at 0x…>",
    f"__main__.Order(user='{'x' * 200}'...)",
    f"__main__.Order(user='{'x' * 200}'..., total=1, big=[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ...])",
    "__main__.Order(total=1, not a\\nname=1)",
    "<__main__.Order at 0x…>",
    "__main__.Order(user=0)",
    "__main__.Order(user=0, total=0, n0=0, n1=1, n2=2, n3=3, n4=4, n5=5, ...)",
    "__main__.Order(x=1)",
    "<object at 0x…>",
    "<function __main__.<lambda>>",
    "<class '__main__.Made'>",
    "Number(5)",
]


def test_what_is_shown(record: Record) -> None:
    recording = record(TAKEN + CLASSES.replace("\n    ", "\n"), "--attributes", "8", "--no-stdlib")
    assert shown(recording) == EXPECTED
    assert b"hunter2" not in b"".join(path.read_bytes() for path in recording.database.parent.iterdir()
                                      if path.suffix == ".sqlite")  # fmt: skip


def test_nothing_is_shown_unless_it_is_asked_for(record: Record) -> None:
    source = TAKEN + CLASSES.replace("\n    ", "\n")
    for options in ((), ("--attributes", "0"), ("--no-values", "--attributes", "8")):
        recording = record(source, "--no-stdlib", *options)
        assert "attributes" not in str(recording.events)
        assert not [text for event in recording.events for text in event.values.values() if "Order(" in text]


KNOWN = """
import datetime, enum, fractions, pathlib, threading, types
from collections import deque, namedtuple

class Color(enum.Enum):
    RED = 1
Point = namedtuple("Point", "x y")
class Job(threading.Thread):
    pass
class Order:
    pass

order, job = Order(), Job(name="worker")
order.day, order.color, order.path = datetime.date(2024, 2, 29), Color.RED, pathlib.PurePosixPath("/a")
order.point, order.queue = Point(1, order), deque([order])
job.order = order
taken(order)
taken(order.point)
taken(order.color)
taken([order.day, order.path])
taken(job)
taken(types.SimpleNamespace(order=order))
half = object.__new__(fractions.Fraction)
taken(half)
half._numerator = Point(1, 2)
taken(half)
"""


def test_known_types_are_shown_as_ever(record: Record) -> None:
    """Also within objects. One that is not as expected is an object like others."""
    order = "<__main__.Order at 0x…>"
    recording = record(TAKEN + KNOWN, "--attributes", "8", "--no-stdlib")
    assert shown(recording) == [
        "__main__.Order(day=datetime.date(2024, 2, 29), color=<Color.RED: 1>, path=PurePosixPath('/a'), "
        f"point=Point(x=1, y={order}), queue=deque([{order}]))",
        f"Point(x=1, y={order})",
        "<Color.RED: 1>",
        "[datetime.date(2024, 2, 29), PurePosixPath('/a')]",
        "<Job(worker, initial)>",
        f"namespace(order={order})",
        "<fractions.Fraction at 0x…>",
        "fractions.Fraction(_numerator=Point(x=1, y=2))",
    ]
    found = ["--filter", "arg == 'value.point' and value == 'Point(x=1,%'", str(recording.database)]
    done = run([*PYTRACE, "print", "--format", "json", *found], recording.database.parent)
    assert [json.loads(line)["func"] for line in done.stdout.splitlines()] == ["taken"]


def test_json_has_a_list_of_them(record: Record) -> None:
    recording = record(
        TAKEN + "class A: pass\na = A()\na.x, a.y, a.z = 'x', a, None\ntaken(a)\n",
        "--attributes", "2", "--no-stdlib",
    )  # fmt: skip
    [call] = recording.of("call", func="taken")
    [argument] = call.args
    address = argument["object"]
    assert address.startswith("<__main__.A at 0x")
    assert argument == {
        "name": "value",
        "value": f"__main__.A(x='x', y={address}, ...)",
        "type": "__main__.A",
        "attributes": [
            {"name": "x", "value": "'x'", "type": "str"},
            {"name": "y", "value": address, "type": "__main__.A"},
        ],
        "object": address,
    }
    found = ["--filter", "arg == 'value.x' and value == 'x'", str(recording.database)]
    done = run([*PYTRACE, "print", "--format", "json", *found], recording.database.parent)
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [call.id]


def test_repr_is_asked_instead(record: Record) -> None:
    recording = record(
        TAKEN + "class A:\n def __repr__(self): return 'me'\na = A()\na.x = 1\ntaken(a)\n",
        "--repr", "--attributes", "8",
    )  # fmt: skip
    assert shown(recording) == ["me"]


HOSTILE = """
import os, sys

RAN = []

def trap(name):
    def method(*args, **kwargs):
        RAN.append(name)
        print(name)
        os.fork()
        raise SystemError(name)
    return method

SPECIAL = '''repr str len iter getitem getattr getattribute hash eq bool int float index format dir sizeof
    contains get set delete instancecheck subclasscheck setattr class_getitem'''.split()
traps = {f"__{name}__": trap(name) for name in SPECIAL}

def taken(value):
    return value

Any = type("Any", (), traps)
value = object.__new__(Any)
object.__setattr__(value, "x", 1)
taken(value)

Slotted = type("Slotted", (), traps | {"__slots__": ("a", "b")})
value = object.__new__(Slotted)
object.__setattr__(value, "a", 1)
taken(value)

class Name(str):
    __hash__ = str.__hash__
    def __eq__(self, other):
        if watched:
            RAN.append("eq")
        return str.__eq__(self, other)
watched = False

class Strange:
    pass
value = Strange()
value.__dict__ = {Name("a"): 1, "b": 2, (1, 2): 3, None: 4}
watched = True
taken(value)
watched = False

class Properties:
    __slots__ = ("kept",)
    made = property(trap("property"))
    __dict__ = property(trap("__dict__"))
    __class__ = property(trap("__class__"))
value = Properties()
value.kept = value
taken(value)

class Lying:
    __slots__ = iter(["a", "b"])
value = Lying()
value.b, value.a = 1, 2
taken(value)
Lying.__slots__ = trap("slots")
taken(value)
del Lying.a, Lying.b, Lying.__slots__
taken(value)

class Meta(type):
    __getattribute__ = __repr__ = __hash__ = __eq__ = trap("meta")
made = type.__call__(Meta, "Made", (), {})
value = object.__new__(made)
object.__setattr__(value, "x", 1)
taken(value)

class Dies:
    def __del__(self):
        taken(self)
value = Dies()
value.x = 1
del value

print(RAN)
"""


def test_no_code_of_an_object_runs(record: Record) -> None:
    recording = record(HOSTILE, "--attributes", "8")
    assert recording.stdout == "[]\n"
    values = shown(recording)
    assert values == [
        "__main__.Any(x=1)",
        "__main__.Slotted(a=1)",
        "__main__.Strange(b=2)",
        values[3],
        "__main__.Lying(a=2, b=1)",
        "__main__.Lying(a=2, b=1)",
        "__main__.Lying(a=2, b=1)",
        "__main__.Made(x=1)",
        "__main__.Dies(x=1)",
    ]
    assert values[3] == "__main__.Properties(kept=<__main__.Properties at 0x…>)"


def test_classes_that_come_and_go(record: Record) -> None:
    """Another class of the same name takes the memory of one that has died."""
    recording = record(
        TAKEN
        + """
def make(n):
    names = [f"a{(n * i) % 7}" for i in range(3)]
    space = {"__slots__": tuple(dict.fromkeys(names))} if n % 3 else {}
    made = type("Made", (), space)()
    for name in names:
        setattr(made, name, n)
    taken(made)
    print(f"__main__.Made({', '.join(f'{name}={n}' for name in dict.fromkeys(names))})")
for n in range(3000):
    make(n)
    if n > 1:
        import gc
        n % 50 or gc.collect()
""",
        "--attributes", "8", "--no-stdlib",
    )  # fmt: skip
    assert shown(recording) == recording.stdout.splitlines()


def test_many_classes_and_threads(record: Record) -> None:
    recording = record(
        TAKEN
        + """
import threading
classes = [type(f"C{n}", (), {}) for n in range(1000)]
def work(name):
    for n, made in enumerate(classes):
        value = made()
        setattr(value, name, n)
        value.n = n
        taken(value)
threads = [threading.Thread(target=work, args=(f"t{n}",), name=f"t{n}") for n in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
""",
        "--attributes", "8", "--no-stdlib",
    )  # fmt: skip
    for name in ("t0", "t1", "t2", "t3"):
        values = [event.value for event in recording.of("call", func="taken") if event.thread == name]
        assert values == [f"__main__.C{n}({name}={n}, n={n})" for n in range(1000)]


def test_objects_like_dictionaries_are_bounded(record: Record) -> None:
    """A class whose objects have ever other names gets only so many definitions."""
    recording = record(
        TAKEN
        + """
class Bag: pass
for n in range(300):
    bag = Bag()
    bag.__dict__["".join(["name", str(n)])] = n  # a string of its own each time
    taken(bag)
for n in range(300):
    bag = Bag()
    bag.__dict__["".join(["name", str(n % 2)])] = n
    taken(bag)
""",
        "--attributes", "8", "--no-stdlib",
    )  # fmt: skip
    assert shown(recording) == [
        *(f"__main__.Bag(name{n}={n})" for n in range(256)),
        *["<__main__.Bag at 0x…>"] * 44,
        *(f"__main__.Bag(name{n % 2}={n})" for n in range(300)),
    ]


def test_pickled_objects_share_a_definition(record: Record) -> None:
    """Their names may be other strings each time."""
    recording = record(
        TAKEN
        + """
class Point: pass
for n in range(600):
    point = Point()
    point.__dict__.update({"".join(["le", "ft"]): n, "".join(["ri", "ght"]): n})
    taken(point)
""",
        "--attributes", "8", "--no-stdlib",
    )  # fmt: skip
    assert shown(recording) == [f"__main__.Point(left={n}, right={n})" for n in range(600)]


def test_a_forked_child_goes_on(record: Record) -> None:
    recording = record(
        TAKEN
        + """
import os
class A: pass
def some(name):
    a = A()
    setattr(a, name, 1)
    taken(a)
some("x")
if os.fork() == 0:
    some("x"); some("y")
    os._exit(0)
os.wait()
some("y"); some("x")
""",
        "--attributes", "8", "--no-stdlib",
    )  # fmt: skip
    by_process: dict[int, list[str]] = {}
    for event in recording.of("call", func="taken"):
        by_process.setdefault(event.pid, []).append(event.value)
    assert sorted(by_process.values()) == [
        ["__main__.A(x=1)", "__main__.A(y=1)"],
        ["__main__.A(x=1)", "__main__.A(y=1)", "__main__.A(x=1)"],
    ]


# ---- classes of all sorts ------------------------------------------------------------------------

NAMES = ("b", "a", "zeta", "_c", "__d", "größe", *(f"n{n}" for n in range(40)))
names = st.sampled_from(NAMES[:8])
values = st.one_of(
    st.integers(),
    st.none(),
    st.text(st.characters(codec="utf-8"), max_size=8),
    st.lists(st.booleans(), max_size=3),
)
classes = st.tuples(
    st.sampled_from(["plain", "slots", "slots and dict", "dataclass", "dataclass with slots"]),
    st.one_of(st.none(), st.integers(0, 9)),  # the base
    st.lists(names, max_size=4, unique=True),
)
steps = st.one_of(
    st.tuples(st.just("set"), st.sampled_from(NAMES), values),
    st.tuples(st.just("set"), names, values),
    st.tuples(st.just("del"), names, st.none()),
    st.tuples(st.just("look"), st.none(), st.none()),
    st.tuples(st.just("replace"), st.none(), st.dictionaries(names, values, max_size=3)),
    st.tuples(st.just("show"), st.none(), st.none()),
)
objects = st.tuples(st.integers(0, 9), st.lists(steps, min_size=1, max_size=12))


class Model:
    """A program of such classes and objects, and what it shows."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.lines = ["from dataclasses import dataclass", TAKEN]
        self.slots: list[list[str]] = []  # of each class, in their order, with those of its bases
        self.has_dict: list[bool] = []
        self.expected: list[str] = []

    def add_class(self, kind: str, base: int | None, names: list[str]) -> None:
        number = len(self.slots)
        if "dataclass" in kind:
            base = None
        before = self.slots[base] if base is not None and base < number else []
        has_dict = base is not None and base < number and self.has_dict[base]
        parent = f"(C{base})" if base is not None and base < number else ""
        private = [f"_C{number}{name}" if name.startswith("__") else name for name in names]
        body = ["pass"]
        if kind == "slots" or kind == "slots and dict":
            own = [*names, *(["__dict__"] if kind == "slots and dict" and not has_dict else [])]
            body = [f"__slots__ = {tuple(own)!r}"]
        elif "dataclass" in kind:
            body = [f"{name}: object" for name in names] or ["pass"]
            self.lines.append("@dataclass(slots=True)" if kind.endswith("slots") else "@dataclass")
        self.lines += [f"class C{number}{parent}:", *(f"    {line}" for line in body)]
        own = private if "slots" in kind else []
        self.slots.append([*(name for name in before if name not in own), *own])
        self.has_dict.append(has_dict or kind in ("plain", "slots and dict", "dataclass"))

    def add_object(self, number: int, steps: list[Any]) -> None:
        number %= len(self.slots)
        slots: dict[str, Any] = {}
        inside: dict[str, Any] = {}
        self.lines.append(f"o = object.__new__(C{number})")
        for what, name, value in steps:
            if what == "set" and (name in self.slots[number] or self.has_dict[number]):
                (slots if name in self.slots[number] else inside)[name] = value
                self.lines.append(f"o.{name} = {value!r}")
            elif what == "del" and name in (slots if name in self.slots[number] else inside):
                del (slots if name in slots else inside)[name]
                self.lines.append(f"del o.{name}")
            elif what == "look" and self.has_dict[number]:
                self.lines.append("o.__dict__")
            elif what == "replace" and self.has_dict[number]:
                inside = dict(value)
                self.lines.append(f"o.__dict__ = {value!r}")
            elif what == "show":
                self.lines.append("taken(o)")
                found = [(name, slots[name]) for name in self.slots[number] if name in slots]
                self.show(number, [*found, *inside.items()])

    def show(self, number: int, found: list[tuple[str, Any]]) -> None:
        shown = [f"{name}={value!r}" for name, value in found[: self.most]]
        more = ["..."] * (len(found) > self.most)
        self.expected.append(
            f"__main__.C{number}({', '.join(shown + more)})" if found else f"<__main__.C{number} at 0x…>"
        )


@settings(max_examples=8, phases=[Phase.generate], suppress_health_check=list(HealthCheck), deadline=None)
@given(
    st.lists(classes, min_size=10, max_size=10),
    st.lists(objects, min_size=40, max_size=80),
    st.sampled_from([1, 8, 100]),
)
def test_classes_of_all_sorts(classes: list[Any], objects: list[Any], most: int) -> None:
    model = Model(most)
    for each in classes:
        model.add_class(*each)
    for each in objects:
        model.add_object(*each)
    with tempfile.TemporaryDirectory() as folder:
        options = ("--attributes", str(most), "--no-stdlib", "--redact", "")
        recording = recorded(Path(folder), "\n".join(model.lines), *options)
        assert shown(recording) == model.expected
