"""Replays of recordings that lack something, and of sources that an enemy has written: what is not
known is said, and nothing ends with an error."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from pytracer.reader.database import Database
from pytracer.reader.replay import state
from pytracer.reader.replay.breakpoints import BreakpointError, parse
from pytracer.reader.replay.expressions import parse as expression
from pytracer.reader.replay.history import History
from pytracer.reader.replay.moment import Moment
from pytracer.reader.replay.screen.scene import Scene, Sight

from dap_client import Client, Refused
from handmade import Handmade, event
from messages import trace_pb2
from recording import Record, record
from replaying import Replays

SCRIPT = "def f(a):\n    b = a + 1\n    c = [a, b]\n    return c\nf(1)\n"
WORK, INNER = 1, 2
CUT = trace_pb2.Value(constant=trace_pb2.Value.CUT)


def history_of(path: Path) -> History:
    database = Database(str(path))
    return History(database, database.runs()[-1].id)


def walk(history: History) -> list[Moment]:
    """All moments, forwards; backwards they are the same."""
    found = []
    here = history.first()
    while here is not None:
        found.append(here)
        here = history.step(here)
    for later, earlier in zip(found[::-1], found[-2::-1], strict=False):
        assert history.step(later, backwards=True) == earlier
    return found


def scenes(history: History) -> list[Scene]:
    """What is shown at each moment."""
    sight = Sight(history.database.runs()[-1], coloured=False)
    return [sight.look(history.database, each) for each in walk(history)]


def ways(history: History, moment: Moment) -> None:
    """Every way from a moment has an answer."""
    for backwards in (False, True):
        for way in (history.step, history.next, history.finish, history.iteration, history.raised):
            way(moment, backwards)
        for call in (*state.entered(history.database, moment.id), None):
            history.change(moment, call, "total", backwards)


# ---- sources ----


def test_sources_that_are_not_stored_and_change(record: Record) -> None:
    made = record(SCRIPT, "--lines", "--no-sources")
    history = history_of(made.database)
    assert [each.line for each in scenes(history)][:2] == [1, 5]
    assert not scenes(history)[0].source.note
    made.script.write_text("# another line\n" + SCRIPT)
    assert "may not be what ran" in scenes(history)[0].source.note
    made.script.write_bytes(b"\0\x1b[2J\r\n\xff" * 1000 + b"\n" + b"x" * (3 << 20))
    assert "first 1 MiB" in scenes(history)[0].source.note
    made.script.write_text("")
    assert scenes(history)[0].source.lines == []
    made.script.unlink()
    assert "is not there" in scenes(history)[0].source.note
    made.script.mkdir()
    assert "it is not a file" in scenes(history)[0].source.note


def test_the_screen_and_a_source_that_is_gone(replays: Replays, tmp_path: Path) -> None:
    made = record(tmp_path, SCRIPT, "--lines", "--no-sources")
    made.script.write_text("only = 1\n")
    replay = replays(made.database, columns=150)
    replay.after("s").after("s").after("s")
    assert "may not be what ran" in replay.text
    assert replay.variables["a"] == "1"
    replay.after("down").after("b").after("esc").after("N").quit()
    made.script.unlink()
    replay = replays(made.database, columns=150)
    assert made.script.name in replay.text
    replay.after("s").after("s").after("s")
    assert replay.variables["a"] == "1"


def test_an_editor_and_a_source_that_is_gone(tmp_path: Path) -> None:
    made = record(tmp_path, SCRIPT, "--lines", "--no-sources")
    made.script.write_bytes(b"\0\x1b[2J\xff\n" * 3)
    with Client(made.database) as client:
        client.begin()
        assert client.frames()[0]["line"] == 1
        (breakpoint,) = client.set_lines(made.script, 3)
        assert breakpoint["verified"]
        client.go("continue")
        assert client.place() == ("f", 3)
        made.script.unlink()
        assert client.ended() == (0, "")
    with Client(made.database) as client:
        client.begin()
        source = client.frames()[0]["source"]
        with pytest.raises(Refused, match="is not there"):
            client.request("source", source=source, sourceReference=source.get("sourceReference", 0))
        client.set_lines(made.script, 3)
        client.go("continue")
        assert client.place() == ("f", 3)


def test_a_line_of_ten_megabytes(replays: Replays, tmp_path: Path) -> None:
    made = record(tmp_path, f"def f(a):\n    b = '{'x' * 10_000_000}'\n    return a\nf(1)\n", "--lines")
    replay = replays(made.database)
    for _ in range(3):
        replay.after("s")
    assert "script.py:3  f" in replay.line(0)
    assert replay.variables["*b"].startswith("'xxx")
    replay.break_at("3 b == 'x' * 9").after("c")
    replay.quit()
    with Client(made.database) as client:
        client.begin()
        client.set_lines(made.script, 3)
        client.go("continue")
        assert client.scope("Locals")["b"].startswith("'xxx")


@pytest.mark.parametrize(
    "text",
    [b"\0" * 1000, b"\x1b]0;title\x07\x9b2J" * 50, b"\r" * 500 + b"\x0c\x0b\n" * 3, b"\xff\xfe\0x\0", b""],
)
def test_stored_sources_of_an_enemy(replays: Replays, tmp_path: Path, text: bytes) -> None:
    with Handmade(tmp_path / "enemy.sqlite") as made:
        run = made.run("app.py", features=3)
        made.code(run, WORK, "work", file="app.py", line=1, variables=["total"], mine=True)
        made.source(run, text, file="app.py")
        numbers = (1, 2, 2_000_000, 4_294_967_295)
        lines = [event("line", WORK, n, time=5, line=n, variables=[0]) for n in numbers]
        made.segment(run, [event("call", WORK, time=5), *lines, event("return", WORK, 1, time=5)])
    replay = replays(tmp_path / "enemy.sqlite")
    for key in ("s", "s", "s", "down", "G", "end", "page down", "home", "tab", "tab", "S", "S", "o"):
        replay.after(key)
    replay.quit()


# ---- breakpoints where nothing ran ----


def test_breakpoints_in_lines_that_never_ran(record: Record) -> None:
    made = record("def f(a):\n    if a:\n        return 1\n    return 2\n\n\n# end\nf(1)\n", "--lines")
    history = history_of(made.database)
    with pytest.raises(BreakpointError, match=r"line 4 of script\.py never ran; .* did: 1, 2, 3, 8"):
        parse("4", history, str(made.script), 1)
    for text in ("0", "-1", "999999999999", "4294967297", "script.py:5", "none.py:3", "9" * 5000):
        with pytest.raises(BreakpointError):
            parse(text, history, str(made.script), 1)
    with Client(made.database) as client:
        client.begin()
        (moved,) = client.set_lines(made.script, 4)
        assert moved["verified"]
        assert moved["line"] in (3, 8)
        for line in (0, -1, 1 << 31, 1 << 40):
            try:
                (found,) = client.set_lines(made.script, line)
            except Refused:
                continue
            assert not found["verified"] or found["line"] != line
        (elsewhere,) = client.set_lines(made.script.with_name("none.py"), 1)
        assert not elsewhere["verified"]
        assert elsewhere["message"]


# ---- events that are missing ----


def a_run(made: Handmade, **columns: object) -> int:
    run = made.run("app.py", features=3, **columns)
    made.code(run, WORK, "work", ["n"], file="app.py", line=1, variables=["n", "total"], mine=True)
    made.code(run, INNER, "inner", file="app.py", line=20, variables=["total"], mine=True)
    return run


def line(number: int, *values: object, variables: Sequence[int] = (), **more: int) -> trace_pb2.Event:
    return event("line", WORK, *values, time=5, line=number, variables=variables, **more)


def test_a_beginning_that_was_removed(tmp_path: Path) -> None:
    with Handmade(tmp_path / "traces.sqlite") as made:
        run = a_run(made, evicted=1000)
        kept = [
            line(3, 7, variables=[0], changed=0),  # a key frame; total is not set
            line(4),
            line(5, 1, variables=[1]),
            event("return", WORK, 1, time=5, elapsed=0),
            event("line", INNER, time=5, line=21),
        ]
        made.segment(run, kept, base_depth=2)
    history = history_of(tmp_path / "traces.sqlite")
    shown = scenes(history)
    assert [each.moment.kind for each in shown] == ["line", "line", "line", "return", "line"]
    assert [each.name for each in shown[0].variables] == ["n"]
    for each in shown:
        ways(history, each.moment)
    first = shown[0].moment
    assert history.step(first, backwards=True) is None
    assert history.finish(first, backwards=True) is None
    change = history.change(shown[2].moment, None, "total", True)
    assert change is not None
    assert change.line == 5
    assert history.change(shown[2].moment, None, "n", True) is None  # set before what is left
    with Client(tmp_path / "traces.sqlite") as client:
        client.begin()
        assert client.scope("Locals") == {"n": "7"}
        (frame,) = client.frames(levels=1)
        with pytest.raises(Refused, match="total"):
            client.request("evaluate", expression="total + 1", frameId=frame["id"], context="watch")
        client.go("stepBack")
        assert client.place()[1] == 3
        client.go("stepOut")
        assert client.ended() == (0, "")


def test_events_lost_in_the_middle_of_a_call(tmp_path: Path) -> None:
    with Handmade(tmp_path / "traces.sqlite") as made:
        run = a_run(made)
        records = [
            event("call", WORK, 7, time=5),
            line(2),
            line(3, 1, variables=[1]),
            event("call", INNER, time=5),
            event("line", INNER, time=5, line=21),
            event("lost", 500, time=5),
            line(9, depth=1),  # back in work, whose variables may have changed meanwhile
            line(10, 2, variables=[1]),
            event("lost", 3, time=5),
            event("line", INNER, time=5, line=22, depth=4),  # in a call that is not known
            event("return", WORK, 2, time=5, elapsed=0, depth=1),
        ]
        made.segment(run, records)
    history = history_of(tmp_path / "traces.sqlite")
    shown = scenes(history)
    assert [each.moment.kind for each in shown].count("lost") == 2
    for each in shown:
        ways(history, each.moment)
    lost = next(each for each in shown if each.moment.kind == "lost")
    assert lost.outcome is not None
    assert lost.outcome.value == "500"
    with Client(tmp_path / "traces.sqlite") as client:
        client.begin()
        client.set_lines(Path("app.py"), {"line": 9, "condition": "total == 1"}, {"line": 10})
        for command in ("continue", "next", "stepIn", "stepOut", "continue", "stepBack", "reverseContinue"):
            client.go(command)
            client.scope("Locals")
        assert client.ended() == (0, "")


def test_values_that_were_cut(tmp_path: Path) -> None:
    text = trace_pb2.Value(text=b"x" * 20, length=1_000_000)
    items = trace_pb2.Value(container=trace_pb2.Value.LIST, item=[trace_pb2.Value(integer=1)], length=50)
    with Handmade(tmp_path / "traces.sqlite") as made:
        run = a_run(made)
        lines = [
            line(2, text, variables=[1]), line(3, items, variables=[1]), line(4, CUT, variables=[1]), line(5),
        ]  # fmt: skip
        made.segment(run, [event("call", WORK, CUT, time=5), *lines, event("return", WORK, CUT, time=5)])
    history = history_of(tmp_path / "traces.sqlite")
    answers = []
    for each in scenes(history):
        ways(history, each.moment)
        known = {variable.name: variable.value for variable in each.variables}
        if "total" in known:
            texts = ("total == 'x' * 1000000", "total[1] == 3", "len(total) > 3", "total < 5", "n > 1")
            results = [expression(text).value(known) for text in texts]
            assert not any(result.known and result.text == "True" for result in results), results
            answers += [result.reason for result in results if not result.known]
    assert any("not recorded" in each for each in answers)


def test_threads_that_end_and_begin(record: Record) -> None:
    source = (
        "import threading\n"
        "def f(n):\n    x = n\n    return x\n"
        "for n in range(5):\n"
        "    each = threading.Thread(target=f, args=(n,), name=f't{n}')\n"
        "    each.start()\n    each.join()\n"
    )
    made = record(source, "--lines", "--no-stdlib")
    history = history_of(made.database)
    first, last = history.first(), history.first(backwards=True)
    assert first is not None
    assert last is not None
    streams = [stream for stream, *_ in history.streams()]
    assert len(streams) == 6
    for time in (0, first.time, last.time, 1 << 62):
        for stream in streams:
            moment = history.in_thread(stream, time)
            assert moment is not None
            assert moment.stream == stream
            ways(history, moment)
    ended = history.in_thread(streams[1], last.time)
    assert ended is not None
    assert ended.kind == "return"
    assert history.step(ended) is None
    with Client(made.database) as client:
        client.begin()
        threads = client.request("threads")["threads"]
        assert len(threads) == 6
        for thread in threads:
            client.frames(threadId=thread["id"])
        client.go("stepOut", threadId=threads[-1]["id"])
        client.go("next", threadId=threads[-1]["id"])
        client.go("reverseContinue", threadId=threads[1]["id"])
        assert client.ended() == (0, "")
