"""Hypothesis strategies for whole Python programs.

`programs()` draws one as source text. Every program ends, by itself and soon: functions call only
those defined before them, what a call can cost at most is added up while drawing, and recursion
counts down. Whatever happens in it is determined: threads are joined before the next one starts,
and a generator is closed where it was opened or has no name at all (on 3.11 a trace function keeps
what a variable held alive for a while, and so would move the moment of an abandoned generator's
end).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from textwrap import indent

from hypothesis import strategies as st

MAX_COST = 60  # calls that one function may lead to

PRELUDE = """\
import asyncio
import contextlib
import functools
import threading
from collections import OrderedDict, namedtuple

Point = namedtuple("Point", "x y")


class Odd(Exception):
    pass


class Manager:
    def __init__(self, suppress):
        self.suppress = suppress

    def __enter__(self):
        return self.suppress

    def __exit__(self, kind, exception, traceback):
        return self.suppress


@contextlib.contextmanager
def managed(value):
    try:
        yield value
    finally:
        identity(value)


class AsyncManager:
    async def __aenter__(self):
        return 1

    async def __aexit__(self, *exception):
        await asyncio.sleep(0)


def identity(value):
    return value


def decorated(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)

    return wrapper


def drive(coroutine):
    try:
        while True:
            coroutine.send(None)
    except StopIteration as stop:
        return stop.value


def countdown(n, *rest):
    return countdown(n - 1, n) if n else rest


def spiral(n):
    if n:
        yield from spiral(n - 1)
    yield n


def stubborn(n):
    try:
        yield n
    except (GeneratorExit, Odd):
        yield -n
    finally:
        identity(n)


async def cancelled(n):
    try:
        await asyncio.sleep(3600)
    except asyncio.CancelledError:
        identity(n)
        raise


async def tasks(n):
    task = asyncio.create_task(cancelled(n))
    await asyncio.sleep(0)
    task.cancel()
    return await asyncio.gather(task, asyncio.sleep(0, n), broken(n), return_exceptions=True)


async def broken(n):
    await asyncio.sleep(0)
    raise Odd(n)


class Named:
    def __set_name__(self, owner, name):
        identity(name)

    def __get__(self, instance, owner):
        return identity(3)


class Operators:
    described = Named()

    def __init_subclass__(cls, **keywords):
        identity(keywords)

    def __init__(self, n):
        self.n = n

    def __lt__(self, other):
        return self.n < other.n

    def __eq__(self, other):
        if other is None:
            raise Odd(self.n)
        return self.n == other

    def __hash__(self):
        return 1

    def __getattr__(self, name):
        raise AttributeError(name)

    def __getitem__(self, key):
        return key

    def __len__(self):
        return self.n

    def __call__(self, *args, **keywords):
        return super().__eq__(args)

    def __iter__(self):
        return self

    def __next__(self):
        if not self.n:
            raise StopIteration(4)
        self.n -= 1
        return self.n

    def __repr__(self):
        return f"Operators({self.n!r})"


def sink(n):
    if not n:
        raise Odd(n)
    try:
        sink(n - 1)
    finally:
        identity(n)


"""

EXCEPTIONS = ["ValueError", "KeyError", "Odd", "ZeroDivisionError", "Exception"]

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-1000, 1000),
    st.sampled_from([2**31, -(2**63), 2**64, 10**30, -(10**50)]),
    st.floats(allow_nan=False, width=32),
    st.text(max_size=6),
    st.binary(max_size=6),
    st.sampled_from([Ellipsis, "it's", "a\"b'c", "\ud800", "é\u2028🐍"]),
)


def containers(items: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    several = st.lists(items, max_size=3)
    return st.one_of(
        several.map(lambda each: f"[{', '.join(each)}]"),
        several.map(lambda each: f"({''.join(one + ', ' for one in each)})"),
        st.dictionaries(st.integers(0, 9).map(repr), items, max_size=3).map(
            lambda each: f"{{{', '.join(f'{key}: {value}' for key, value in each.items())}}}"
        ),
        st.sets(st.integers(0, 20), max_size=4).map(lambda each: f"set({sorted(each)})"),
        st.sets(st.integers(0, 20), max_size=4).map(lambda each: f"frozenset({sorted(each)})"),
        items.map(lambda one: f"Point({one}, 1)"),
        items.map(lambda one: f"OrderedDict(a={one})"),
        items.map(lambda one: f"Odd({one})"),
    )


plain = scalars.map(lambda value: "..." if value is Ellipsis else repr(value)).map(
    lambda text: f"float({text!r})" if text in ("inf", "-inf") else text
)
# What is cut, and so small that the bound on the size of a whole value is not met.
CUT = ["'x' * 300", "b'y' * 250", "list(range(15))", "{n: 0 for n in range(12)}", "[[[[[1]]]], ((((),),),)]"]

literals = st.one_of(
    plain,
    st.recursive(plain, containers, max_leaves=4),
    st.sampled_from(["identity", "Odd", "len", *CUT]),
)


@dataclass(frozen=True)
class Signature:
    """Parameters by kind; every one that is not positional-only may have a default."""

    positional_only: int = 0
    positional: int = 0
    defaults: bool = False
    star: bool = False
    keyword_only: int = 0
    keywords: bool = False

    def names(self) -> list[str]:
        count = self.positional_only + self.positional + self.keyword_only
        return [f"a{i}" for i in range(count)]

    def text(self, first: str = "") -> str:
        names = self.names()
        ahead, rest = names[: self.positional_only], names[self.positional_only :]
        middle, last = rest[: self.positional], rest[self.positional :]
        parts = [first] if first else []
        parts += ahead + (["/"] if ahead else [])
        parts += [f"{name}={i}" if self.defaults else name for i, name in enumerate(middle)]
        parts += ["*star"] if self.star else ["*"] if last else []
        parts += [f"{name}=None" if self.defaults else name for name in last]
        parts += ["**keywords"] if self.keywords else []
        return ", ".join(parts)


signatures = st.builds(
    Signature,
    positional_only=st.integers(0, 2),
    positional=st.integers(0, 2),
    defaults=st.booleans(),
    star=st.booleans(),
    keyword_only=st.integers(0, 2),
    keywords=st.booleans(),
)


@dataclass(frozen=True)
class Function:
    """Something to call: `name` is the expression before the parentheses."""

    name: str
    kind: str  # function, generator, coroutine or async generator
    signature: Signature
    cost: int


@dataclass
class Body:
    """Where statements are being drawn: in what kind of function, and what is left to spend."""

    kind: str
    left: int = MAX_COST
    names: list[str] = field(default_factory=list)

    def spend(self, cost: int) -> bool:
        if cost > self.left:
            return False
        self.left -= cost
        return True


class Writer:
    """Draws the parts of one program."""

    def __init__(self, draw: Callable[[st.SearchStrategy], object]) -> None:
        self.draw = draw
        self.functions = [
            Function("identity", "function", Signature(positional_only=1), 1),
            Function("spiral", "generator", Signature(), 20),
        ]
        self.counter = 0

    def choose(self, *choices):
        return self.draw(st.sampled_from(choices))

    def chance(self, one_in: int) -> bool:
        return self.draw(st.integers(1, one_in)) == one_in

    def literal(self, body: Body | None = None) -> str:
        if body and body.names and self.chance(3):
            return self.choose(*body.names)
        return self.draw(literals)

    def name(self, prefix: str) -> str:
        self.counter += 1
        return f"{prefix}{self.counter}"

    # ---- expressions ----

    def arguments(self, signature: Signature, body: Body | None) -> str:
        parts = [self.literal(body) for _ in range(signature.positional_only)]
        names = signature.names()[signature.positional_only :]
        by_name = self.chance(3)
        for i, name in enumerate(names):
            if signature.defaults and self.chance(2):
                by_name = True
                continue
            if by_name or i >= signature.positional:
                by_name = True
                parts.append(f"{name}={self.literal(body)}")
            else:
                parts.append(self.literal(body))
        if signature.star and not by_name:
            parts.insert(signature.positional_only, f"*[{self.literal(body)}]")
        if signature.keywords and self.chance(2):
            parts.append(f"other={self.literal(body)}")
        return ", ".join(parts)

    def call(self, kind: str, body: Body, times: int = 1) -> str | None:
        """A call of an earlier function, or None if none fits in what is left."""
        fitting = [f for f in self.functions if f.kind == kind and f.cost * times <= body.left]
        if not fitting:
            return None
        function = self.choose(*fitting)
        body.spend(function.cost * times)
        if function.name == "spiral":
            return f"spiral({self.draw(st.integers(0, 3))})"
        return f"{function.name}({self.arguments(function.signature, body)})"

    # ---- statements: each returns lines, or none if it does not fit ----

    def block(self, body: Body, depth: int, longest: int = 3) -> list[str]:
        lines: list[str] = []
        for _ in range(self.draw(st.integers(1, longest))):
            lines += self.statement(body, depth)
        return lines or ["pass"]

    def statement(self, body: Body, depth: int) -> list[str]:
        kinds = [
            self.calls,
            self.calls,
            self.assigns,
            self.raises,
            self.iterates,
            self.comprehends,
            self.drives,
        ]
        kinds += [self.calls_back, self.lambdas, self.threads, self.recurses, self.protocol, self.operates]
        if depth:
            kinds += [self.tries, self.tries, self.withs, self.loops, self.closes_over, self.local_class]
        if body.kind in ("generator", "async generator"):
            kinds += [self.yields] * 5
        if body.kind in ("coroutine", "async generator"):
            kinds += [self.awaits] * 5
        return self.choose(*kinds)(body, depth)

    def calls(self, body: Body, depth: int) -> list[str]:
        call = self.call("function", body)
        return [f"x = {call}"] if call else []

    def assigns(self, body: Body, depth: int) -> list[str]:
        if body.names and self.chance(2):
            return [f"{self.choose(*body.names)} = {self.literal()}"]
        return [f"x = {self.literal(body)}"]

    def raises(self, body: Body, depth: int) -> list[str]:
        exception = self.choose(*EXCEPTIONS)
        raising = f"raise {exception}({self.literal(body)})"
        if self.chance(3):
            return [raising]
        return [
            "try:",
            f"    {raising}",
            f"except {self.choose(exception, 'Exception', 'OSError')}:",
            "    pass",
        ]

    def iterates(self, body: Body, depth: int) -> list[str]:
        call = self.call("generator", body)
        if not call:
            return []
        return self.choose(
            [f"for x in {call}:", "    pass"],
            [f"for x in {call}:", "    break"],
            [f"x = list({call})"],
            [f"x = next({call}, None)"],
            [f"next({call}, None)"],
            [f"x, *y = (0, *{call})"],
            [f"x = sum(1 for x in {call})"],
        )

    def protocol(self, body: Body, depth: int) -> list[str]:
        call = self.call("generator", body)
        if not call:
            return []
        name = self.name("g")
        lines = [f"{name} = {call}", "try:"]
        for _ in range(self.draw(st.integers(1, 3))):
            action = self.choose(
                f"next({name})",
                f"{name}.send(None)",
                f"next({name}); {name}.send({self.literal(body)})",
                f"{name}.throw({self.choose(*EXCEPTIONS)}({self.literal(body)}))",
                f"{name}.throw(StopIteration({self.literal(body)}))",
                f"{name}.close()",
            )
            lines.append(f"    {action}")
        return [
            *lines,
            "except (Exception, StopIteration) as error:",
            "    identity(error)",
            "finally:",
            f"    {name}.close()",
        ]

    def comprehends(self, body: Body, depth: int) -> list[str]:
        call = self.call("function", body, times=2)
        if not call:
            return []
        return self.choose(
            [f"x = [{call} for _ in range(2)]"],
            [f"x = {{i: {call} for i in (1, 2)}}"],
            [f"x = any({call} for _ in [1, 2])"],
            [f"x = [y for y in (1, 2) if y + 1 for z in [{call}]]"],
        )

    def drives(self, body: Body, depth: int) -> list[str]:
        call = self.call("coroutine", body)
        return [f"x = drive({call})"] if call else []

    def calls_back(self, body: Body, depth: int) -> list[str]:
        return self.choose(
            ["x = sorted([3, 1, 2], key=lambda n: -n)"],
            ["x = list(map(identity, [1, 2]))"],
            [f"x = max([{self.literal(body)}], key=identity)"],
            ["x = functools.reduce(lambda a, b: b, [1, 2, 3])"],
        )

    def lambdas(self, body: Body, depth: int) -> list[str]:
        return [f"x = (lambda a, *b, c=1, **d: (a, c))({self.literal(body)}, {self.literal(body)}, e=2)"]

    def operates(self, body: Body, depth: int) -> list[str]:
        """Calls that no call expression stands for, and some that stand for several."""
        if not body.spend(12):
            return []
        n = self.draw(st.integers(0, 3))
        return self.choose(
            [f"x = sorted([Operators(2), Operators({n}), Operators(1)])"],
            [f"x = Operators({n})[{self.literal(body)}]"],
            [f"x = getattr(Operators({n}), 'missing', {self.literal(body)})"],
            [f"x = list(Operators({n}))"],
            [f"for x in Operators({n}):", "    identity(x)"],
            [f"x = {n} in [Operators(0), Operators(2)]"],
            ["try:", f"    x = Operators({n}) == None", "except Odd:", "    pass"],
            [f"x = Operators({n})({self.literal(body)}, key={self.literal(body)})"],
            [f"x = Operators({n}).described + len(Operators({n}))"],
            [f"class Derived(Operators, option={self.literal()}):", "    pass", f"x = bool(Derived({n}))"],
            [f"x = str([Operators({n})])"],
            [f"x = functools.partial(identity, Operators({n}))()"],
            [f"x = eval('identity({n}) + identity(n)', globals(), {{'n': {n}}})"],
            [f"g = stubborn({n})", "next(g)", "try:", "    g.close()", "except RuntimeError:", "    del g"],
            [f"g = stubborn({n})", "next(g)", f"g.throw(Odd({n}))", "list(g)"],
            [
                "try:",
                f"    raise ExceptionGroup('several', [ValueError({self.literal(body)}), KeyError(1)])",
                "except* ValueError as group:",
                "    identity(group)",
                "except* KeyError:",
                "    identity(2)",
            ],
            [
                "try:",
                "    sink(",
                f"        {n},",
                "    )",
                "except Odd as error:",
                "    identity(error.__traceback__.tb_lineno)",
            ],
            [f"match {self.literal(body)}:", "    case int(n) if identity(n):", "        x = n"],
        )

    def threads(self, body: Body, depth: int) -> list[str]:
        if not self.chance(3):
            return []
        fitting = [f for f in self.functions if f.kind == "function" and f.cost <= body.left]
        if not fitting or body.kind in ("coroutine", "async generator"):
            return []
        function = self.choose(*fitting)
        body.spend(function.cost)
        name = self.name("t")
        call = f"{function.name}({self.arguments(function.signature, body)})"
        return [f"{name} = threading.Thread(target=lambda: {call})", f"{name}.start()", f"{name}.join()"]

    def recurses(self, body: Body, depth: int) -> list[str]:
        n = self.draw(st.integers(0, 6))
        if not body.spend(3 * n + 3):
            return []
        return self.choose(
            [f"x = countdown({n})"],
            [f"x = list(spiral({min(n, 3)}))"],
            ["try:", f"    sink({n})", "except Odd as error:", "    identity(error)"],
        )

    def tries(self, body: Body, depth: int) -> list[str]:
        lines = ["try:", *nested(self.block(body, depth - 1))]
        if not self.chance(4):
            caught = self.choose(*EXCEPTIONS, "(ValueError, KeyError)")
            named = self.chance(2)
            handler = self.block(body, depth - 1, longest=2)
            end = self.choose("pass", "pass", "pass", "raise", f"raise Odd({self.literal()})")
            if named:
                handler.append("identity(error)")
                if end.startswith("raise Odd"):
                    end += self.choose("", " from error", " from None")
            lines += [f"except {caught}{' as error' if named else ''}:", *nested([*handler, end])]
            if self.chance(4):
                lines += ["else:", *nested(self.block(body, depth - 1, longest=1))]
            if self.chance(2):
                return lines
        return [*lines, "finally:", *nested(self.block(body, depth - 1, longest=1))]

    def withs(self, body: Body, depth: int) -> list[str]:
        manager = self.choose(
            "Manager(True)",
            "Manager(False) as x",
            f"managed({self.literal(body)}) as x",
            "Manager(True), managed(2)",
            "contextlib.suppress(Exception)",
        )
        body.spend(8)
        return [f"with {manager}:", *nested(self.block(body, depth - 1))]

    def loops(self, body: Body, depth: int) -> list[str]:
        inner = Body(body.kind, body.left // 2, body.names)
        lines = self.block(inner, depth - 1, longest=2)
        body.left = inner.left
        return self.choose(
            ["for i in range(2):", *nested(lines)],
            ["for i in range(2):", *nested([*lines, "continue"])],
            ["while True:", *nested([*lines, "break"])],
        )

    def closes_over(self, body: Body, depth: int) -> list[str]:
        """Every argument used inside lives in a cell."""
        inner = self.name("inner")
        cost = 3
        if not body.spend(cost):
            return []
        outer = self.choose(*body.names) if body.names else "1"
        change = [f"    nonlocal {outer}", f"    {outer} = b"] if body.names and self.chance(2) else []
        return [
            f"def {inner}(a, b=2, *c):",
            *change,
            "    def deeper():",
            f"        return ({outer}, a, c)",
            "    return deeper()",
            f"x = {inner}({self.literal()}, {self.literal()})",
        ]

    def local_class(self, body: Body, depth: int) -> list[str]:
        name = self.name("Local")
        if not body.spend(5):
            return []
        return [
            f"class {name}:",
            f"    attribute = {self.literal()}",
            "    squares = [identity(n) for n in (1, 2)]",
            "    def __init__(self, value):",
            "        self.value = value",
            "    def __eq__(self, other):",
            "        return other is None",
            "    def __hash__(self):",
            "        return 1",
            f"x = {name}({self.literal()}) == {self.choose('None', '2')}",
            f"x = {{{name}(1): 2}}.get(3)",
        ]

    def yields(self, body: Body, depth: int) -> list[str]:
        if body.kind == "generator" and self.chance(3):
            call = self.call("generator", body)
            if call:
                return [f"x = yield from {call}"]
        return [self.choose("", "x = ") + f"yield {self.literal(body)}"]

    def awaits(self, body: Body, depth: int) -> list[str]:
        call = self.call("async generator", body) if self.chance(2) else None
        if call:
            return self.choose(
                [f"async for x in {call}:", "    identity(x)"],
                [f"x = [y async for y in {call}]"],
                [f"x = await anext({call}, 1)"],
            )
        call = self.call("coroutine", body)
        if call and self.chance(2):
            return [f"x = await {call}"]
        return self.choose(["await asyncio.sleep(0)"], ["async with AsyncManager() as x:", "    identity(x)"])

    # ---- definitions ----

    def function(self, kind: str, name: str, first: str = "", decorators: tuple[str, ...] = ()) -> list[str]:
        signature = self.draw(signatures)
        body = Body(kind, names=signature.names())
        lines = self.block(body, depth=2, longest=4)
        if kind in ("generator", "async generator") and not any("yield" in line for line in lines):
            lines.append("yield x" if lines[0].startswith("x =") else "yield")
        if kind == "async generator":
            # a lone `return value` is no syntax there
            lines.append("return")
        else:
            lines.append(f"return {self.literal(body)}")
        self.functions.append(Function(name, kind, signature, 2 + MAX_COST - body.left + len(decorators)))
        keyword = "async def" if kind in ("coroutine", "async generator") else "def"
        short = name.rpartition(".")[2]
        return [*decorators, f"{keyword} {short}({signature.text(first)}):", *nested(lines), ""]

    def top_function(self) -> list[str]:
        kind = self.choose("function", "function", "generator", "generator", "coroutine", "async generator")
        decorators = ("@decorated",) if kind == "function" and self.chance(4) else ()
        return self.function(kind, self.name("f"), decorators=decorators)

    def top_class(self) -> list[str]:
        name = self.name("C")
        before = len(self.functions)
        lines: list[str] = []
        for _ in range(self.draw(st.integers(1, 3))):
            flavour = self.choose("", "", "@classmethod", "@staticmethod")
            first = {"": "self", "@classmethod": "cls", "@staticmethod": ""}[flavour]
            kind = self.choose("function", "function", "generator", "coroutine")
            method = self.name("m")
            hidden = len(self.functions)
            lines += self.function(kind, f"{name}().{method}", first, (flavour,) if flavour else ())
            added = self.functions.pop(hidden)
            self.functions.append(Function(added.name, added.kind, added.signature, added.cost + 2))
        # methods may not call each other: the class is there only after its body
        members = self.functions[before:]
        del self.functions[before:]
        text = [
            f"class {name}(Odd):" if self.chance(4) else f"class {name}:",
            f"    constant = identity({self.literal()})",
            "    @property",
            "    def shape(self):",
            "        return type(self).__name__",
            *nested(lines),
            f"identity({name}().shape)",
            "",
        ]
        self.functions += members
        return text

    def top_wide(self) -> list[str]:
        name = self.name("wide")
        many = ", ".join(f"w{i}" for i in range(250))
        return [f"def {name}({many}):", "    return w249", "", f"{name}(*range(250))", ""]


def nested(lines: list[str]) -> list[str]:
    return [indent(line, "    ") for line in lines]


@st.composite
def programs(draw: Callable[[st.SearchStrategy], object]) -> str:
    """The source of one program, which raises nothing."""
    writer = Writer(draw)
    lines: list[str] = []
    for _ in range(draw(st.integers(2, 6))):
        if writer.chance(4):
            lines += writer.top_class()
        elif writer.chance(12):
            lines += writer.top_wide()
        else:
            lines += writer.top_function()
    for function in writer.functions[2:]:
        call = f"{function.name}({writer.arguments(function.signature, None)})"
        run = {
            "function": f"identity({call})",
            "generator": f"for x in {call}: pass",
            "coroutine": writer.choose(f"drive({call})", f"asyncio.run({call})"),
            "async generator": f"drive(anext({call}, None))",
        }[function.kind]
        lines += ["try:", f"    {run}", "except Exception as error:", "    identity(error)"]
    if writer.chance(3):
        lines.append(f"asyncio.run(tasks({writer.literal()}))")
    return PRELUDE + "\n".join(lines) + "\n"
