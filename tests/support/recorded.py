"""Programs that tests record, and what some of them have in common."""

# All that a program can do, in a few thousand events.
EVERYTHING = """
import os, threading
from pytracer import log

class SoldOut(Exception):
    pass

class Order:
    def __init__(self, user, items):
        self.user, self.items = user, items

    def total(self, discount=0.0):
        return sum([price(item) for item in self.items]) * (1 - discount)

def price(item):
    if item == "pie":
        raise SoldOut(item)
    return {"tea": 3.5, "cake": 4.25}[item]

def checkout(user, *items, password):
    log("checkout", user=user, count=len(items))
    try:
        return Order(user, items).total(discount=0.5)
    except SoldOut as error:
        return f"no {error} today"

def deep(n):
    return 0 if n == 0 else deep(n - 1) + 1

def numbers(count):
    for n in range(count):
        yield n

def consume(count):
    return sum(numbers(count))

def fails(depth):
    if depth:
        fails(depth - 1)
    raise ValueError(f"as low as {depth}")

def long(text, **options):
    return [text] * 3

def work(name, count):
    for n in range(count):
        checkout(f"{name}-{n}", "tea", "cake", password="hunter2")
    return name

for user in ("bob", "eve", "mia"):
    checkout(user, "tea", "cake", "pie"[:3 * (user == "eve")] or "tea", password="hunter2")
deep(60)
consume(20)
try:
    fails(5)
except ValueError:
    pass
long("long " * 39, **{f"option_{n}": "x" * 190 for n in range(12)})
threads = [threading.Thread(target=work, args=(name, 40), name=name) for name in ("packer", "sender")]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
if os.fork() == 0:
    work("child", 30)
    os._exit(0)
os.wait()
work("main", 30)
"""

# Goes on when it is told to: a line with a number makes it call step so often.
STEPS_ON_DEMAND = """
import sys

def step(n):
    return n + 1

n = 0
print("ready", flush=True)
for line in sys.stdin:
    for _ in range(int(line)):
        n = step(n)
    print(n, flush=True)
"""

# dumper() waits for the dumper of the script's own recording: its title comes a moment later.
FIND_DUMPER = """
import pathlib

def dumper():
    while True:
        for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                title = path.read_bytes()
            except OSError:
                continue
            if title.startswith(b"pytrace: dumper for") and __file__.encode() in title:
                return int(path.parent.name)
"""
