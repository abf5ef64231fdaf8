"""Generators and coroutines that do not run to their end: closed, dropped, left where they wait."""

from itertools import groupby

import pytest

from comparing import assert_nested
from recording import Record

CLOSED = ["call", "yield", "throw", "raise", "exception"]

ENDS = """
    import gc, sys, threading

    class Waits:
        def __await__(self):
            yield 1

    def in_any(): return any(n for n in (1, 2))

    def is_closed():
        def plain(): yield 1
        waiting = plain()
        next(waiting)
        waiting.close()
        return waiting  # which lives on

    def is_dropped():
        def plain(): yield 1
        next(plain())

    def goes_on_first():
        def plain():
            yield 1
            yield 2
        waiting = plain()
        next(waiting)
        next(waiting)

    def delegates():
        def inner(): yield 1
        def outer(): yield from inner()
        next(outer())

    def has_a_finally():
        def plain():
            try:
                yield 1
            finally:
                pass
        next(plain())

    def is_garbage():
        def plain(): yield (yield 1)
        waiting = plain()
        next(waiting)
        waiting.send([waiting])
        del waiting
        gc.collect()

    def coroutine_is_closed():
        async def coroutine(): await Waits()
        waiting = coroutine()
        waiting.send(None)
        waiting.close()

    def asynchronous():
        async def plain(): yield 1
        waiting = plain()
        try:
            waiting.__anext__().send(None)
        except StopIteration:
            pass

    def under_an_exception():
        def plain(): yield 1
        def fails():
            waiting = plain()
            next(waiting)
            raise KeyError("the program's own")
        try:
            fails()
        except KeyError as error:
            print(error, error.__context__)

    def in_another_thread():
        def plain(): yield 1
        waiting = [plain()]
        next(waiting[0])
        thread = threading.Thread(target=waiting.clear, name="other")
        thread.start()
        thread.join()

    def never_began():
        def plain(): yield 1
        plain()

    kept = is_closed()
    for case in (in_any, is_dropped, goes_on_first, delegates, has_a_finally, is_garbage):
        case()
    for case in (coroutine_is_closed, asynchronous, under_an_exception, in_another_thread, never_began):
        case()
"""


def test_each_way_to_be_closed(record: Record) -> None:
    """As the interpreters tell it that tell of it at all."""
    recording = record(ENDS)
    assert (recording.status, recording.stdout) == (0, '"the program\'s own" None\n')
    kinds = {
        func: [event.kind for event in events]
        for func, events in groupby(
            sorted(recording.of(), key=lambda event: event.func), key=lambda event: event.func
        )
        if "<locals>." in func or func == "Waits.__await__"
    }
    assert kinds.pop("is_garbage.<locals>.plain") == ["call", "yield", "resume", *CLOSED[1:]]
    assert kinds.pop("goes_on_first.<locals>.plain") == ["call", "yield", "resume", *CLOSED[1:]]
    assert kinds.pop("under_an_exception.<locals>.fails") == ["call", "raise", "exception"]
    kinds.pop("never_began.<locals>.plain", None)  # 3.11 throws it into that, too
    assert kinds == dict.fromkeys(
        [
            "in_any.<locals>.<genexpr>",
            *(f"{case}.<locals>.plain" for case in ("is_closed", "is_dropped", "has_a_finally")),
            *(
                f"{case}.<locals>.plain"
                for case in ("asynchronous", "under_an_exception", "in_another_thread")
            ),
            "delegates.<locals>.inner",
            "delegates.<locals>.outer",
            "coroutine_is_closed.<locals>.coroutine",
            "Waits.__await__",
        ],
        CLOSED,
    )
    for event in recording.of("throw", "raise", "exception"):
        if event.func.endswith((".plain", ".inner", ".outer", ".coroutine")):
            assert event.value == "GeneratorExit()"
    [thrown] = recording.of("throw", func="in_another_thread.<locals>.plain")
    assert thrown.thread == "other"
    for call in recording.of("call", func="is_closed.<locals>.plain"):
        [end] = recording.of("exception", func=call.func)
        assert abs((end.duration or 0) - (end.time - call.time)) <= 2
        assert recording.of("raise", func=call.func)[0].line == call.line
    assert_nested([vars(event) for event in recording.events if event.kind != "log"])


def test_close_looks_as_ever(record: Record) -> None:
    recording = record(
        """
        def plain(): yield 1
        async def coroutine(): pass
        never = coroutine()
        for waiting in (plain(), never):
            print(type(waiting).close, type(waiting).__dict__["close"], waiting.close.__doc__)
            print(waiting.close.__name__, waiting.close.__qualname__, waiting.close.__text_signature__)
            print(type(waiting).__del__, type(waiting).__del__.__doc__)
            for wrong in ((1,), (1, 2)):
                try:
                    waiting.close(*wrong)
                except TypeError as error:
                    print(error)
            try:
                type(waiting).close(5)
            except TypeError as error:
                print(error)
            print(waiting.close(), waiting.close())
        def refuses():
            while True:
                try: yield 1
                except GeneratorExit: pass
        waiting = refuses()
        next(waiting)
        try:
            waiting.close()
        except RuntimeError as error:
            print(error)
        """
    )
    assert recording.status == 0
    assert recording.stdout == recording.plain_output()


def test_the_end_is_not_seen(record: Record) -> None:
    """It ends of its own accord while nobody records it: it was not closed."""
    recording = record(
        """
        from pytracer import notrace
        def numbers():
            yield 1
            yield 2
        @notrace
        def consume(generator):
            return list(generator)
        first = numbers()
        next(first)
        consume(first)
        del first
        """
    )
    assert recording.kinds("numbers") == ["call", "yield"]


@pytest.mark.parametrize("how", ["yield n", "yield from inner(n)"])
def test_many_are_dropped(record: Record, how: str) -> None:
    recording = record(
        f"""
        def inner(n):
            yield n
        def outer(n):
            {how}
        for n in range(1, 4_001):
            any(outer(n))
        """
    )
    of_outer = [event.kind for event in recording.of(func="outer")]
    assert of_outer.count("call") == 4_000
    assert of_outer.count("call") == of_outer.count("exception")
    assert len(recording.of("call", func="inner")) == len(recording.of("exception", func="inner"))
