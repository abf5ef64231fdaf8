"""Time off the processor on the screen, and the way to what ended it."""

import re
from pathlib import Path

import pytest
from pytracer.reader.screen.effects import Choose, CommandError, Say
from pytracer.reader.screen.layout import status_line
from pytracer.reader.screen.lines import DisplayOptions, Liner

from handmade import Handmade, event
from recording import Record
from sessions import Reader
from tracefs_here import needs_tracefs
from waiting import write_waiting

LINES = [
    "-> app.main()",
    "  -> app.get()",
    "    -> [kernel] syscalls.futex(uaddr=4096)",
    "    ·· 128ns waiting for a lock, woken by 200 (worker, in app.put)",
    "-> app.put()",
    "  -> [kernel] syscalls.read(fd=5, count=1)",
    "  ·· 40ns waiting for fd 5",
    "  <- [kernel] read: 1",
    "  -> [kernel] syscalls.futex(uaddr=4096)",
    "  ** [kernel] sched.sched_waking: comm='app', pid=100",
    "  <- [kernel] futex: 1",
    "    <- [kernel] futex: 0",
    "  <- get: 7",
    "<- put",
    "·· 40ns taken from the processor by 300 (other)",
    "<- main",
]


@pytest.fixture(name="reader")
def reader_fixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Reader:
    monkeypatch.setenv("PYTRACE_VIEW", "all")
    write_waiting(tmp_path / "traces.sqlite")
    reader = Reader(tmp_path / "traces.sqlite")
    reader.session.fit(120, 40)
    assert lines(reader) == LINES
    return reader


def lines(reader: Reader) -> list[str]:
    line = Liner(DisplayOptions(time="off", duration=False, thread=False), (), ())
    return [line(item).text for item in reader.session.browser.items]


def go(reader: Reader, line: int) -> Reader:
    reader.session.browser.cursor = line
    return reader


def said(reader: Reader, key: str) -> str:
    return " ".join(effect.text for effect in reader.press(key) if isinstance(effect, Say))


def test_enter_shows_the_events_of_a_time_off_the_processor(reader: Reader) -> None:
    go(reader, 3).press("enter")
    shown = lines(reader)
    assert shown[3].startswith(
        "    ** [kernel] sched.sched_switch: prev_comm='app', prev_pid=100, prev_state=1"
    )
    assert [line for line in shown if line not in LINES] == [
        shown[3],
        "    ** [kernel] sched.sched_waking: comm='app', pid=100",
        "    ** [kernel] sched.sched_switch: prev_comm='swapper/0', prev_pid=0, prev_state=0,"
        " next_comm='app', next_pid=100",
    ]
    assert shown[6] == LINES[6]
    reader.press("enter")
    assert lines(reader) == LINES


def test_a_folded_call_hides_the_kernels_events_in_it_alone(reader: Reader) -> None:
    go(reader, 1).press("enter")
    assert lines(reader) == [LINES[0], "  +> app.get() = 7", *LINES[4:11], *LINES[13:]]
    reader.press("enter")
    assert lines(reader) == LINES
    go(reader, 4).press("enter")
    assert lines(reader) == [*LINES[:4], "+> app.put()", *LINES[11:13], *LINES[14:]]


def test_a_call_that_is_opened_shows_the_kernels_events_in_it(reader: Reader) -> None:
    reader.type("level 1")
    assert lines(reader) == ["+> app.main()", "+> app.put()"]
    go(reader, 1).press("enter")
    assert [line for line in lines(reader) if "futex" in line] == [
        "  +> [kernel] syscalls.futex(uaddr=4096) = 1"
    ]


@pytest.mark.parametrize("start", [1, 3, 11, 12, 14])
def test_the_way_to_what_woke_a_thread(reader: Reader, start: int) -> None:
    message = said(go(reader, start), "w")
    assert lines(reader)[reader.session.browser.cursor] == LINES[9]
    assert message == "MainThread: waiting for a lock, 128ns; woken here by 200 (worker, in app.put)"
    assert said(reader, "w") == "worker: waiting for fd 5, 40ns; what woke it was not recorded"
    reader.press("backspace")
    assert lines(reader)[reader.session.browser.cursor] == LINES[start]


def test_a_thread_that_did_not_wait(reader: Reader) -> None:
    assert said(go(reader, 0), "w")
    assert said(go(reader, 2), "w")
    assert said(go(reader, 8), "w") == "worker did not wait in this call"


def test_a_search_opens_the_time_that_hides_its_hit(reader: Reader) -> None:
    (ask,) = go(reader, 0).press("/")
    reader.done(ask.done("swapper/0"))  # type: ignore[attr-defined]
    assert "prev_comm='swapper/0'" in lines(reader)[reader.session.browser.cursor]


def test_a_filter_finds_the_events_themselves(reader: Reader) -> None:
    reader.type("filter func == 'sched_switch' and tid == 200")
    assert [line.partition(": ")[0] for line in lines(reader)] == ["  ** [kernel] sched.sched_switch"] * 2


def choose(reader: Reader, layer: str) -> None:
    (menu,) = reader.press("S")
    assert isinstance(menu, Choose)
    (choice,) = (choice for choice in menu.choices if choice.label == layer)
    reader.done(menu.chosen(choice.value))


def test_layers_are_hidden_and_shown(reader: Reader) -> None:
    go(reader, 0)
    choose(reader, "kernel")
    assert lines(reader) == [LINES[0], LINES[1], LINES[4], *LINES[12:14], LINES[15]]
    assert "without kernel (S: layers)" in status_line(reader.session).text
    choose(reader, "python")
    assert reader.session.browser.items == []
    choose(reader, "python")
    go(reader, 1)
    reader.press("w")  # to where it was woken: by an event of the kernel
    assert lines(reader) == LINES


def test_a_recording_without_layers_has_none_to_hide(tmp_path: Path) -> None:
    with Handmade(tmp_path / "traces.sqlite") as database:
        run = database.run()
        database.code(run, 1, "main")
        database.segment(run, [event("call", 1)])
    reader = Reader(tmp_path / "traces.sqlite")
    with pytest.raises(CommandError, match="all is Python here"):
        reader.press("S")
    with pytest.raises(CommandError, match="pytrace --kernel"):
        reader.press("w")


def test_a_thread_with_two_streams_is_one(reader: Reader) -> None:
    assert [source.thread for source in reader.database.sources(1)] == ["MainThread", "worker"]


@needs_tracefs
def test_of_a_recorded_program(record: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    recording = record(
        """
        import os, threading, time

        def give(pipe):
            time.sleep(0.05)
            os.write(pipe, b"x")

        def take(pipe):
            return os.read(pipe, 1)

        end, begin = os.pipe()
        thread = threading.Thread(target=give, args=(begin,), name="giver")
        thread.start()
        take(end)
        thread.join()
        """,
        "--kernel",
        "--c-calls",
    )
    monkeypatch.setenv("PYTRACE_VIEW", "all")
    reader = Reader(recording.database)
    reader.session.fit(150, 50)
    (ask,) = reader.press("/")
    reader.done(ask.done("-> __main__.take"))  # type: ignore[attr-defined]
    [giver] = {event.tid for event in recording.events if event.thread == "giver"}
    woken = rf"·· [\d.]+ms waiting for fd \d+, woken by {giver} \(giver, in __main__\.give\)"
    [place] = [place for place, line in enumerate(lines(reader)) if re.search(woken, line)]
    depth = reader.session.browser.items[place].row[11]
    [call] = recording.of("call", func="take")
    assert depth == call.depth + 2  # in posix.read, and in the system call
    reader.session.browser.cursor = place
    message = said(reader, "w")
    assert f"woken here by {giver} (giver, in __main__.give)" in message
    assert "sched.sched_waking" in lines(reader)[reader.session.browser.cursor]
    assert re.search(r"giver: sleeping, [\d.]+ms; (a timer|what woke it)", said(reader, "w"))
