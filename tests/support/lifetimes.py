"""Prints when objects die that recorded functions were given, made and raised; run by
test_leaks.py.

What is assigned and not used here is there to be alive.
"""
# ruff: noqa: B904, F841, SIM105

import asyncio
import contextlib
import gc
import sys
import threading
import types
import weakref

from pytracer import log, notrace

gc.disable()


class Thing:
    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return f"<{self.name}>"


class Failure(Exception):
    pass


class Absent(KeyError):
    pass


class Missing(AttributeError):
    pass


class Group(ExceptionGroup):
    pass


def say(*words):
    print("   ", *words)


def watch(thing, name=None):
    weakref.finalize(thing, say, "dies:", name or thing.name)
    return thing


def thing(name):
    return watch(Thing(name))


def takes(a, *rest, key=None, **more):
    say("inside")
    del a
    say("a deleted")
    rest = None
    say("rest deleted")
    key = None
    more.clear()
    say("all deleted")


def arguments():
    takes(thing("a"), thing("rest"), key=thing("key"), other=thing("more"))
    say("back")


def rebinds(x):
    x = None
    say("rebound")


def makes():
    local = thing("local")
    result = thing("result")
    return result


def returns():
    makes()
    say("dropped")
    kept = makes()
    say("kept")
    del kept
    say("end")


def fails(x):
    local = thing("local of the failed")
    raise watch(Failure(x), "failure")


def exceptions():
    try:
        fails(thing("argument of the failed"))
    except Failure:
        say("caught")
    say("behind")


def keeps():
    try:
        fails(thing("argument of the failed"))
    except Failure as failure:
        kept = failure
    say("behind")
    kept.__traceback__ = None
    say("no traceback")
    del kept
    say("end")


def chains():
    try:
        try:
            fails(thing("x"))
        except Failure as failure:
            raise watch(Absent(failure), "KeyError") from failure
    except KeyError:
        say("caught")
    say("behind")


def through_c():
    try:
        list(map(fails, [thing("x")]))
    except Failure:
        say("caught")
    say("behind map")
    try:
        sorted([thing("y"), thing("z")], key=fails)
    except Failure:
        say("caught")
    say("behind sorted")
    print(getattr(Swallows(), "missing", "default"))
    say("behind getattr")
    print(hasattr(Swallows(), "missing"))
    say("behind hasattr")


class Swallows:
    def __getattr__(self, name):
        local = thing("local of __getattr__")
        raise watch(Missing(name), "AttributeError")


def groups():
    try:
        try:
            fails(thing("x"))
        except Failure as failure:
            raise watch(Group("group", [failure, watch(Absent(), "absent")]), "group")
    except* Failure:
        say("caught failure")
    except* Absent:
        say("caught Absent")
    say("behind")


def reraises():
    try:
        try:
            fails(thing("x"))
        finally:
            say("finally")
    except Failure:
        say("caught")
    say("behind")


def generator(x):
    local = thing("local of the generator")
    try:
        yield watch(Thing("yielded"))
        del x
        yield 2
    finally:
        say("generator ends")


def generators():
    for value in generator(thing("x")):
        say(value)
        value = None
        say("value dropped")
    say("exhausted")
    paused = generator(thing("y"))
    next(paused)
    say("paused")
    del paused
    say("dropped")
    paused = generator(thing("z"))
    next(paused)
    try:
        paused.throw(watch(Failure(thing("thrown")), "failure"))
    except Failure:
        say("caught")
    say("thrown")
    del paused
    say("dropped")
    fresh = generator(thing("never started"))
    del fresh
    say("dropped")


def delegates(x):
    yield from generator(x)


def delegations():
    paused = delegates(thing("x"))
    next(paused)
    paused.close()
    say("closed")
    del paused
    say("dropped")


@types.coroutine
def sleep():
    yield


async def coroutine(x):
    local = thing("local of the coroutine")
    await sleep()
    return x


def coroutines():
    paused = coroutine(thing("x"))
    paused.send(None)
    try:
        paused.send(None)
    except StopIteration as stop:
        say("value", stop.value)
    say("behind")
    del paused
    paused = coroutine(thing("y"))
    paused.send(None)
    paused.close()
    say("closed")
    del paused
    say("dropped")


async def tasks():
    async def fails_later(x):
        await asyncio.sleep(0)
        raise watch(Failure(x), "failure")

    try:
        async with asyncio.timeout(60):
            await fails_later(thing("x"))
    except Failure:
        say("caught")
    say("behind")


@contextlib.contextmanager
def managed(x):
    try:
        yield thing("managed")
    except Failure:
        say("swallowed")


def managers():
    with managed(thing("x")) as value:
        del value
        say("inside")
        fails(thing("y"))
    say("behind")


def closures():
    x = thing("cell")

    def inner(y):
        nonlocal x
        x = None
        say("cell emptied")
        del y
        say("y deleted")

    inner(thing("y"))
    say("behind")


@notrace
def hidden(x):
    say("hidden")
    takes(x)


def not_recorded():
    hidden(thing("x"))
    say("behind")
    try:
        notrace(fails)(thing("y"))
    except Failure:
        say("caught")
    say("behind")


def logs():
    log("text", value=thing("logged"), list=[thing("in a list")])
    say("behind")


def threads():
    def work(x):
        del x
        say("deleted in the thread")
        exceptions()

    thread = threading.Thread(target=work, args=(thing("argument of a thread"),))
    thread.start()
    thread.join()
    say("behind")


def containers():
    def look(values):
        say("inside")
        values.clear()
        say("cleared")

    look([thing("in a list")])
    look({"key": thing("in a dict")})
    look({thing("in a set")})
    say("behind")


def classes():
    class Local:
        def method(self):
            return self

    watch(Local, "class")
    watch(Local(), "instance").method()
    say("behind")
    Local = None
    gc.collect()
    say("collected")


def codes():
    names = {}
    exec("def made(x): return x", names)
    watch(names["made"], "function")
    watch(names["made"].__code__, "code")
    names["made"](thing("x"))
    say("called")
    names.clear()
    say("behind")


def frames():
    def own():
        local = thing("local")
        return sys._getframe()

    frame = own()
    say("returned")
    frame.clear()
    say("cleared")
    del frame


def recursion():
    def down(x, n):
        if n:
            return down(x, n - 1)
        raise Failure(x)

    try:
        down(thing("x"), 20)
    except Failure:
        pass
    say("behind")


for function in (
    arguments,
    lambda: rebinds(thing("x")),
    returns,
    exceptions,
    keeps,
    chains,
    through_c,
    groups,
    reraises,
    generators,
    delegations,
    coroutines,
    lambda: asyncio.run(tasks()),
    managers,
    closures,
    not_recorded,
    logs,
    threads,
    containers,
    classes,
    codes,
    frames,
    recursion,
):
    print(function.__name__)
    function()
    say("the end")
    gc.collect()
