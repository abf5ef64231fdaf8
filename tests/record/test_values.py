"""Values as they are recorded: no code of theirs runs, and none is too large, odd or hostile."""

from decimal import MAX_EMAX, Decimal, localcontext

from recording import Record, texts

HOSTILE = """
import sys, time

RAN = []

def trap(name):
    def method(*args, **kwargs):
        RAN.append(name)
        raise SystemError(name)
    return method

SPECIAL = '''repr str len iter getitem getattr hash eq bool int float index format dir sizeof
    contains reversed length_hint bytes complex call get set instancecheck subclasscheck'''.split()
traps = {f"__{name}__": trap(name) for name in SPECIAL}
for name in ("keys", "items", "values", "args", "encode", "name", "value", "__missing__"):
    traps[name] = trap(name)

class Meta(type):
    def __getattribute__(cls, name):
        RAN.append(("meta", name))
        raise SystemError(name)
    __repr__ = __instancecheck__ = __subclasscheck__ = __len__ = __hash__ = trap("meta")

def taken(value):
    return value

def show(value):
    global kept
    kept = taken(value)
"""


def test_no_code_of_a_value_runs(record: Record) -> None:
    recording = record(
        HOSTILE
        + """
Any = type("Any", (), traps)
show(Any())
for base, content in ((int, 5), (str, "text"), (bytes, b"data"), (float, 1.5), (list, [1, 2]),
                      (tuple, (1, 2)), (dict, {"a": 1}), (set, {1}), (frozenset, {1})):
    Sub = type("Sub", (base,), traps)
    show(Sub(content))
    show([Sub(content)])
show(type("Fault", (Exception,), traps)("why", 1))
del RAN[:]

class Trapped:
    def __getattribute__(self, name):
        RAN.append(name)
        raise SystemError(name)
    def __getattr__(self, name):
        RAN.append(name)
        raise SystemError(name)
show(Trapped())

class Liar:
    __class__ = property(lambda self: RAN.append("class") or int)
    __name__ = __module__ = property(trap("name"))
show(Liar())

made = type.__call__(Meta, "Made", (), {})
show(made)
show(object.__new__(made))

class Sleeper:
    def __repr__(self):
        time.sleep(1000)
show(Sleeper())

class Endless:
    def __repr__(self):
        return repr(self)
show(Endless())

class Suicidal:
    def __repr__(self):
        global kept
        del kept
        return ""
show(Suicidal())
print(RAN)
"""
    )
    assert recording.stdout == "[]\n"
    values = texts(recording.of("call", func="taken"))
    assert values == [
        "<__main__.Any at 0x…>",
        "Sub(5)",
        "[Sub(5)]",
        "Sub('text')",
        "[Sub('text')]",
        "Sub(b'data')",
        "[Sub(b'data')]",
        "Sub(1.5)",
        "[Sub(1.5)]",
        "Sub([1, 2])",
        "[Sub([1, 2])]",
        "Sub((1, 2))",
        "[Sub((1, 2))]",
        "Sub({'a': 1})",
        "[Sub({'a': 1})]",
        "Sub({1})",
        "[Sub({1})]",
        "Sub({1})",
        "[Sub({1})]",
        "Fault('why', 1)",
        "<__main__.Trapped at 0x…>",
        values[21],  # of what type it claims to be, anything goes
        "<class '__main__.Made'>",
        "<__main__.Made at 0x…>",
        "<__main__.Sleeper at 0x…>",
        "<__main__.Endless at 0x…>",
        "<__main__.Suicidal at 0x…>",
    ]
    assert "Liar" in values[21]
    returned = texts(recording.of("return", func="taken"))
    assert returned == values


def test_odd_values(record: Record) -> None:
    recording = record(
        """
        import collections, enum, sys

        def taken(value):
            pass

        class Color(enum.IntEnum):
            RED = 1

        Point = collections.namedtuple("Point", "x y")
        ring = [1]
        ring.append(ring)
        knot = {}
        knot["knot"] = (knot,)
        deep = []
        for _ in range(100_000):
            deep = [deep]
        emptied = set(range(1_000_000))
        emptied.difference_update(range(1, 1_000_000))
        values = [float("nan"), -float("inf"), -0.0, 1e22, 2**63, -(2**64), True, None, ..., NotImplemented,
                  "\\ud800", "\\0\\x1b\\u202e", "it's", b"\\xff'", (), (1,), set(), frozenset(), {}, range(3),
                  Color.RED, Point(1, 2), collections.OrderedDict(a=1), collections.Counter("aa"),
                  ring, knot, deep, len, taken, Point, sys, int, [].append, 3j, bytearray(b"x")]
        for value in values:
            taken(value)
        while deep:
            deep = deep.pop()
        """
    )
    values = texts(recording.of("call", func="taken"))
    assert values == [
        *(
            "nan",
            "-inf",
            "-0.0",
            "1e+22",
            str(2**63),
            str(-(2**64)),
            "True",
            "None",
            "Ellipsis",
            "NotImplemented",
        ),
        *(
            r"'\ud800'",
            r"'\x00\x1b\u202e'",
            '"it\'s"',
            'b"\\xff\'"',
            "()",
            "(1,)",
            "set()",
            "frozenset()",
            "{}",
        ),
        *("range(0, 3)", "<Color.RED: 1>", "Point(x=1, y=2)", "OrderedDict({'a': 1})", "Counter({'a': 2})"),
        *("[1, [...]]", "{'knot': ({...},)}", "[[[[...]]]]"),
        *(
            "<built-in function len>",
            "<function __main__.taken>",
            "<class '__main__.Point'>",
            "<module 'sys'>",
        ),
        *("<class 'int'>", values[32], "3j", "bytearray(b'x')"),
    ]
    assert "append" in values[32]
    kinds = [event.args[0]["type"] for event in recording.of("call", func="taken")]
    assert kinds[:3] == ["float"] * 3
    assert kinds[7:10] == ["NoneType", "ellipsis", "NotImplementedType"]
    assert kinds[20:24] == [
        "__main__.Color",
        "__main__.Point",
        "collections.OrderedDict",
        "collections.Counter",
    ]
    assert kinds[-5:] == ["module", "type", "builtin_function_or_method", "complex", "bytearray"]


def test_values_are_cut(record: Record) -> None:
    recording = record(
        """
        def taken(value):
            pass
        for value in ("x" * 201, "x" * 200, b"y" * 1000, "é" * 300, list(range(11)), list(range(10)),
                      dict.fromkeys(range(20), 0), "\\U0001f40d" * 201, ["z" * 100] * 30):
            taken(value)
        """
    )
    values = [event.values["value"] for event in recording.of("call", func="taken")]
    assert values[:6] == [
        "'" + "x" * 200 + "'...",
        "'" + "x" * 200 + "'",
        "b'" + "y" * 200 + "'...",
        "'" + "é" * 200 + "'...",
        "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ...]",
        "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]",
    ]
    assert values[6] == "{" + "".join(f"{n}: 0, " for n in range(10)) + "...}"
    assert values[7] == "'" + "\U0001f40d" * 200 + "'..."
    assert values[8].startswith("['" + "z" * 100 + "', ")
    assert values[8].endswith("...]")
    assert len(values[8]) < 1200


def test_huge_values_cost_no_more_than_small_ones(record: Record) -> None:
    """Whoever looked at all of it would still be busy when the time limit of the test is over."""
    recording = record(
        """
        def taken(value):
            return value

        emptied = set(range(10_000_000))
        emptied.difference_update(range(1, 10_000_000))
        million_digits = 7 ** 1_200_000
        for value in ([None] * 10_000_000, "x" * 10_000_000, b"x" * 10_000_000, "é" * 10_000_000,
                      dict.fromkeys(range(1_000_000)), (0,) * 10_000_000, million_digits, emptied):
            for _ in range(2000):
                taken(value)
        """
    )
    calls = recording.of("call", func="taken")
    assert len(calls) == 16_000
    digits = calls[-2001].values["value"]
    assert digits.endswith("...")
    with localcontext(prec=100, Emax=MAX_EMAX):
        expected = (Decimal(7) ** 1_200_000).as_tuple().digits
    assert digits.startswith("".join(map(str, expected[:50])))
    assert not [event for event in recording.events if event.kind == "lost"]


def test_a_dict_that_another_thread_changes(record: Record) -> None:
    recording = record(
        """
        import sys, threading
        sys.setswitchinterval(1e-6)
        shared, numbers, done = {}, [], threading.Event()

        def change():
            n = 0
            while not done.is_set():
                n += 1
                shared[n % 50] = {n: [n]}
                shared.pop((n + 25) % 50, None)
                if n % 100 == 0:
                    shared.clear()
                numbers[:] = [n] * (n % 30)

        def taken(first, second):
            return first

        threads = [threading.Thread(target=change) for _ in range(2)]
        for thread in threads:
            thread.start()
        for _ in range(20_000):
            taken(shared, numbers)
        done.set()
        for thread in threads:
            thread.join()
        """,
        "--no-stdlib",
    )
    assert len(recording.of("call", func="taken")) == len(recording.of("return", func="taken")) == 20_000


def test_recording_keeps_nothing_alive(record: Record) -> None:
    recording = record(
        """
        import gc
        gc.disable()

        class Value:
            def __init__(self, name):
                self.name = name
            def __del__(self):
                print("gone", self.name)

        def pass_on(value):
            return value

        def generate(value):
            yield value

        def fail(value):
            raise ValueError(value)

        pass_on(Value(1))
        print("a")
        next(generate(Value(2)))
        print("b")
        try:
            fail(Value(3))
        except ValueError:
            pass
        print("c")
        """
    )
    assert recording.stdout == "gone 1\na\ngone 2\nb\ngone 3\nc\n" == recording.plain_output()


def test_odd_names(record: Record) -> None:
    """Names that are no text, or none that can be encoded, of functions, modules and threads."""
    recording = record(
        """
        import threading, types

        def f():
            return 1

        class Name(str):
            def __str__(self):
                raise SystemError
            __repr__ = __hash__ = __eq__ = __len__ = __str__

        def call(name, variables):
            code = f.__code__.replace(co_name=name, co_qualname=name)
            types.FunctionType(code, variables)()

        call("\\ud800\\x1b", {})
        call("nameless", {"__name__": 3})
        call("tricky", {"__name__": Name("x")})
        f.__module__ = Name("y")
        f.__qualname__ = "z" * 5000
        def taken(value):
            pass
        taken(f)
        f.__module__ = 5
        taken(f)
        thread = threading.Thread(target=taken, args=(1,), name="\\udcff\\n")
        thread.start()
        thread.join()
        """
    )
    names = [event.func for event in recording.of("call")]
    assert "nameless" in names
    assert "tricky" in names
    assert len(recording.of("call", func="taken")) == 3
    assert len(recording.of("call")) == len(recording.of("return"))


def test_types_that_take_the_place_of_others(record: Record) -> None:
    """Classes that die leave their addresses, and those of their names, to the next ones."""
    recording = record(
        """
        import gc

        def taken(value):
            pass

        for i in range(200):
            kind = type(f"Type{i:03}", (), {})
            taken(kind())
            del kind
            gc.collect()
        """
    )
    values = texts(recording.of("call", func="taken"))
    assert values == [f"<__main__.Type{i:03} at 0x…>" for i in range(200)]


def test_types_of_one_name_that_differ_in_kind(record: Record) -> None:
    """The next class of a name, if the last one was, is of another kind: not to be read like
    that."""
    recording = record(
        """
        import gc
        from datetime import date

        def taken(value):
            pass

        def show(base, *content):
            class Own(base):
                pass
            taken(Own(*content))

        for _ in range(20):
            for base, content in ((int, (5,)), (date, (2026, 1, 2)), (str, ("text",)), (date, (2026, 1, 2))):
                show(base, *content)
                gc.collect()
        """
    )
    values = texts(recording.of("call", func="taken"))
    assert values == ["Own(5)", "Own(2026, 1, 2)", "Own('text')", "Own(2026, 1, 2)"] * 20


def test_repr_when_asked_for(record: Record) -> None:
    recording = record(
        """
        from pytracer import log

        class Shown:
            def __repr__(self):
                log("inside")
                helper()
                return "shown!"

        class Fails:
            def __repr__(self):
                raise ValueError

        class Odd:
            def __repr__(self):
                return 5

        def helper():
            pass

        def taken(value):
            pass

        taken(Shown())
        taken(Fails())
        taken(Odd())
        taken("x")
        print(__import__("sys").exc_info())
        """,
        "--repr",
    )
    assert recording.stdout == "(None, None, None)\n"
    values = texts(recording.of("call", func="taken"))
    assert values == ["shown!", "<__main__.Fails at 0x…>", "<__main__.Odd at 0x…>", "'x'"]
    assert recording.kinds("taken") == ["call", "return"] * 4


def test_a_repr_that_forks(record: Record) -> None:
    """The record that it is asked for is not yet written then, in neither of the two processes."""
    recording = record(
        """
        import os

        class Forks:
            def __repr__(self):
                child = os.fork()
                if child:
                    print(os.waitpid(child, 0)[1])
                return "parent" if child else "child"

        def taken(value, *more):
            pass

        program = os.getpid()
        taken(Forks(), 1, "a" * 100)
        if os.getpid() != program:
            os._exit(0)
        """,
        "--repr",
    )
    assert recording.stdout == "0\n"
    calls = recording.of("call", func="taken")
    assert {(event.values["value"], event.values["more"]) for event in calls} == {
        (name, f"(1, '{'a' * 100}')") for name in ("parent", "child")
    }
    assert len({event.pid for event in calls}) == 2
    assert len(recording.of("return", func="taken")) == 2


def test_a_repr_that_drops_what_is_being_recorded(record: Record) -> None:
    """Each container lets go of what it holds while an element of it is asked for its repr."""
    recording = record(
        """
        from pytracer import notrace

        class Drops:
            def __init__(self, drop):
                self.drop = drop
            def __repr__(self):
                self.drop()
                return "dropped"

        def taken(value):
            pass

        @notrace
        def arguments(kind):
            made = kind()
            made.args = tuple(Drops(lambda: setattr(made, "args", ())) for _ in range(4))
            return made

        @notrace
        def filled(container, add):
            for _ in range(4):
                add(container, Drops(container.clear))
            return container

        class Inner(list):
            pass

        @notrace
        def nested():
            outer = []
            inner = Inner([Drops(outer.clear), Drops(outer.clear)])
            outer += [inner, {"key": inner}]
            return outer

        @notrace
        def classes():
            made = []
            made += [type("Made", (Drops,), {})(made.clear) for _ in range(4)]
            return made

        for _ in range(20):
            taken(arguments(ValueError))
            taken(filled({}, lambda made, item: made.update({item: object()})))
            taken(filled({}, lambda made, item: made.update({len(made): item})))
            taken(filled(set(), set.add))
            taken(filled([], list.append))
            taken(nested())
            taken(classes())
        """,
        "--repr",
        PYTHONMALLOC="debug",
    )
    calls = recording.of("call", func="taken")
    assert len(calls) == 140
    assert all("dropped" in event.value for event in calls)


def test_a_repr_whose_calls_are_told_to_the_recorder(record: Record) -> None:
    """sys.call_tracing makes the interpreter tell of what is called inside of a callback, too. The
    record that is being written then goes on as if nothing had happened."""
    recording = record(
        """
        import sys

        def inner(depth):
            return depth and inner(depth - 1)

        class Shown:
            def __repr__(self):
                sys.call_tracing(inner, (200,))
                return "shown"

        def taken(value):
            return value

        for _ in range(3):
            taken(Shown())
        inner(0)
        """,
        "--repr",
    )
    assert texts(recording.of(func="taken")) == ["shown"] * 6
    assert {event.depth for event in recording.of(func="taken")} == {1}
    assert [event.kind for event in recording.of(func="inner")] == ["call", "return"]


# Keys that are equal to each name that the recorder looks for, as far as their hash tells, and say
# when they are compared. Prints how often: as often as without a recording.
ODD_KEYS = """
    import os, sys, threading, types

    ran = 0

    class Key(str):
        __hash__ = str.__hash__
        def __eq__(self, other):
            global ran
            ran += 1
            return False

    def taken(value):
        pass

    def odd(dictionary, *names):
        for name in names:
            value = dictionary.pop(name, None)
            dictionary[Key(name)] = value
        return dictionary

    def compared(what, *args):
        before = ran
        what(*args)
        return ran - before

    module = types.ModuleType("module")
    odd(module.__dict__, "__name__")
    kind = type("Kind", (), odd({"__module__": "elsewhere"}, "__module__", "__qualname__", "_name", "name"))
    function = types.FunctionType(compile("def made(): pass", "made.py", "exec").co_consts[0],
                                  odd({"__name__": "odd", "__builtins__": {}}, "__name__"))
    print(compared(taken, module), compared(taken, kind), compared(taken, kind()), compared(function))

    class Task:
        pass

    class Odd(threading.Thread):
        def run(self):
            self.compared = compared(taken, 1)

    thread = Odd(name="as it is called")
    odd(thread.__dict__, "other")
    saved = dict(sys.modules)
    odd(sys.modules, "trio._core._run", "asyncio.tasks", "_asyncio")
    names = odd(vars(threading), "other")
    thread.start()
    thread.join()
    print(thread.compared)

    async def step():
        taken(2)

    def drive(coroutine):
        try:
            coroutine.send(None)
        except StopIteration:
            pass

    print(compared(drive, step()))
    sys.modules.clear()
    sys.modules.update(saved)
"""


def test_no_code_of_a_key_runs(record: Record) -> None:
    recording = record(ODD_KEYS, "--modules", "script.py")
    assert recording.stdout == recording.plain_output()
    assert recording.of("call", func="Odd.run")[0].thread == "as it is called"
    assert recording.of("call", func="made") == []  # out of scope: its file is made.py


def test_a_key_that_forks_when_it_is_compared(record: Record) -> None:
    recording = record("""
        import os, types

        class Key(str):
            __hash__ = str.__hash__
            def __eq__(self, other):
                child = os.fork()
                if child:
                    print("child", os.waitpid(child, 0)[1])
                return False

        def taken(value):
            pass

        module = types.ModuleType("module")
        del module.__dict__["__name__"]
        module.__dict__[Key("__name__")] = 1
        taken(module)
        """)
    assert recording.stdout == recording.plain_output() == ""


def test_secret_arguments(record: Record) -> None:
    recording = record(
        """
        def login(user, password, api_token=None, *, secret_key=b"s", **other):
            pass
        login("bob", "hunter2", "t0ken", secret_key=b"s3cret", passwd="pa55", shown={"token": "t00", 1: 2})
        """
    )
    [call] = recording.of("call", func="login")
    assert call.values == {
        "user": "'bob'",
        "password": "<redacted>",
        "api_token": "<redacted>",
        "secret_key": "<redacted>",
        "other": "{'passwd': <redacted>, 'shown': {'token': <redacted>, 1: 2}}",
    }
    assert [arg["type"] for arg in call.args] == ["str", "str", "str", "bytes", "dict"]


def test_without_values(record: Record) -> None:
    recording = record(
        """
        def f(a):
            return [a]
        f("argument-text")
        """,
        "--no-values",
    )
    assert recording.kinds("f") == ["call", "return"]
    assert "argument-text" not in str(recording.of())
