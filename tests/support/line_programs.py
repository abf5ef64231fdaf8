"""Small programs, each with a kind of statement that sets, changes or deletes variables. Their
values are short, and of built-in types."""

PROGRAMS = {
    "loops": """
def f(n):
    total = 0
    for i in range(n):
        total += i
        if i == 2:
            continue
        while total > 100:
            total -= 7
        else:
            last = i
    else:
        done = True
    return total, done, last
for k in (0 + 1, 3, 20):
    x = f(k)
""",
    "exceptions": """
def fail(x):
    y = x
    raise ValueError(x)
def f(x):
    try:
        a = 1
        fail(x)
        a = 2
    except (KeyError, ValueError) as e:
        b = str(e)
    finally:
        c = 3
    try:
        d = 1
    finally:
        del d
    try:
        try:
            g = 1 // 0
        except ZeroDivisionError as error:
            h = repr(error)
            raise RuntimeError from None
    except RuntimeError:
        pass
    for i in range(3):
        try:
            if i == 1:
                continue
            k = i
        finally:
            m = -i
    return b
f(5)
try:
    f2 = fail(6)
except ValueError:
    z = 1
def g():
    x = 1
    x = fail(2)
try:
    g()
except ValueError as e:
    w = 5
""",
    "with": """
class C:
    def __init__(self, log):
        self.log = log
    def __enter__(self):
        self.log.append('in')
        return 7
    def __exit__(self, *args):
        self.log.append('out')
        return True
def f(log):
    with C(log) as a, C(log) as b:
        log.append(a + b)
        raise ValueError
    with C(log):
        return 5
q = f([])
""",
    "generators": """
def g(n):
    sent = None
    for i in range(n):
        sent = yield i if sent is None else sent * 2
    return 'end'
def d(n):
    got = yield from g(n)
    other = yield got
def run():
    out = []
    it = g(4)
    out.append(next(it))
    out.append(it.send(5))
    out.append(it.send(None))
    it.close()
    for x in d(2):
        out.append(x)
    two = [g(3), g(2)]
    a = [next(t) for t in two]
    b = [next(t) for t in two]
    del two
    return out, a, b
r = run()
def thrown():
    try:
        x = 1
        yield x
        x = 2
    except KeyError as e:
        x = 3
        yield x
    x = 4
t = thrown()
u = next(t)
v = t.throw(KeyError('k'))
del t
""",
    "coroutines": """
import asyncio
async def leaf(n):
    m = n + 1
    await asyncio.sleep(0)
    m += 1
    return m
async def stream(n):
    for i in range(n):
        await asyncio.sleep(0)
        yield i
async def main():
    out = []
    a = await leaf(1)
    b = await asyncio.gather(leaf(2), leaf(3))
    async for x in stream(2):
        out.append(x)
    c = [y async for y in stream(2)]
    return a, b, out, c
r = asyncio.run(main())
""",
    "closures": """
def outer(a):
    count = 0
    items = []
    def inner(b):
        nonlocal count
        count += b
        items.append(a + b)
        return count
    x = inner(1)
    y = inner(2)
    a = 10
    z = inner(3)
    return x, y, z, count, items
r = outer(5)
def make():
    fs = []
    for i in range(3):
        def f(i=i):
            return i
        fs.append(f)
    late = [lambda: i for i in range(2)]
    return [f() for f in fs] + [g() for g in late]
s = make()
def cell():
    try:
        return v
    except NameError:
        v = 1
    def g():
        return v
    del v
    v = 2
    return g()
t = cell()
""",
    "classes": """
def base(n):
    class A:
        x = n
        y = [x]
        for i in range(2):
            y.append(i)
        del i
        def f(self, k):
            z = k + self.x
            return z
        class B:
            w = 1
    return A().f(2)
r = base(1)
class Meta(type):
    def __new__(cls, name, bases, space):
        n = len(bases)
        return super().__new__(cls, name, bases, space)
class M(metaclass=Meta):
    a = 1
    b = 2
""",
    "comprehensions": """
def f(n):
    a = [i * 2 for i in range(n)]
    b = {i: i * i for i in range(n) if i % 2}
    c = {i % 2 for i in range(n)}
    d = sum(i for i in range(n))
    e = [
        j
        for j in range(n)
        if j
    ]
    g = [[i + j for j in range(2)] for i in range(2)]
    i = 5
    h = [i for i in (1, 2)]
    return a, b, c, d, e, g, h, i
r = f(3)
k = [x for x in range(3)]
""",
    "match": """
def f(v):
    match v:
        case 0:
            r = 'zero'
        case [a, b, *rest]:
            r = a
        case {'k': x, **more}:
            r = x
        case int(n) | float(n) if n > 3:
            r = n
        case str() as s:
            r = s
        case _:
            r = None
    return r
o = [f(v) for v in (0, [1, 2, 3, 4], {'k': 5, 'l': 6}, 7, 2.5, 'text')]
""",
    "unpacking": """
def f(p):
    a, (b, *c), d = p
    a, d = d, a
    x = y = z = [a]
    x[0] = 9
    (q := 5)
    if (n := len(c)) > 1 and (m := n * 2):
        e = m
    for k, (v, w) in {'a': (1, 2), 'b': (3, 4)}.items():
        s = v + w
    return q
r = f((1, (2, 3, 4), 5))
*s, t = range(4)
""",
    "in place": """
def change(items):
    items.append(len(items))
    items[0] = -1
def f():
    a = [1, 2]
    b = a
    change(a)
    b += [7]
    d = {'x': a}
    d['y'] = 1
    del d['x']
    d.update(z=2)
    s = {1}
    s |= {2}
    s.add(3)
    t = (a, 5)
    a.pop()
    u = bytearray(b'ab')
    u[0] = 120
    n = 5
    n += 1
    x = 'a'
    x += 'b'
    return a
r = f()
""",
    "objects": """
class P:
    def __init__(self, n):
        self.n = n
        self.all = []
    def add(self, x):
        self.n += x
        self.all.append(x)
        return self
def f():
    n = P(1).add(2).add(3).n
    return n
r = f()
""",
    "exec": """
def f(n):
    names = {}
    exec('a = n * 2\\nb = [a]\\nb.append(1)', {'n': n}, names)
    return names['b'], eval('n + 1', {'n': n})
r = f(3)
""",
    "decorators": """
def twice(g):
    def inner(*args, **kw):
        first = g(*args, **kw)
        second = g(*args, **kw)
        return first + second
    return inner
@twice
def f(a, /, b=2, *, c=3):
    s = a + b + c
    return s
@twice
@twice
def g(
    a,
    b=1,
):
    return (
        a
        +
        b
    )
r = f(1, c=5)
q = g(1)
""",
    "recursion": """
def fact(n):
    if n < 2:
        return 1
    m = n - 1
    r = fact(m)
    return n * r
x = fact(6)
def even(n): return n == 0 or odd(n - 1)
def odd(n): return n != 0 and even(n - 1)
y = even(7)
""",
    "globals": """
counter = 0
seen = []
def step(n):
    global counter, made
    counter += n
    made = n
    seen.append(n)
    return counter
for i in range(3):
    a = step(i)
del a
import os.path as p, sys
from string import digits
if counter:
    b: int = 5
    c: str
assert b == 5
print(end='')
""",
    "same value": """
def f():
    x = 1000
    x = 1000
    y = x
    y = 1000 + 0
    for x in (5, 5, 6):
        pass
    l = [1]
    l = [1]
    l = [1.0]
    s = 'a' * 3
    s = 'aaa'
    return x
r = f()
""",
    "one line": """
def f(n): x = n; y = x + 1; return x * y
a = f(1); b = f(2); c = [f(k) for k in range(3)]
g = lambda k: k + 1
d = g(1)
if d: e = 1
for i in range(2): h = i
while h: h -= 1
""",
    "many": "def f():\n"
    + "".join(f"    v{i} = {i}\n" for i in range(300))
    + "    del v7\n    return v9\nr = f()\n",
}
