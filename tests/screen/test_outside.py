"""The reader among other programs: signals, job control, closed terminals, pipes, editors."""

from __future__ import annotations

import os
import re
import shlex
import signal
import stat
import subprocess
from pathlib import Path

import pytest

from emulator import ALTERNATE, MOUSE
from reader import PYTRACE, Reader, Reads, surroundings
from terminal import Terminal


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


# ---- signals ----


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)]
)
def test_a_signal_ends_it_and_the_terminal_is_as_before(
    reads: Reads, journal: Path, number: signal.Signals, status: int
) -> None:
    reader = reads(journal).settled()
    reader.press("tab", "/").settled()
    assert not reader.as_before
    assert reader.signal(number).end() == status
    assert reader.as_before
    assert reader.errors == ""


def test_the_terminal_is_closed(reads: Reads, journal: Path) -> None:
    reader = reads(journal).settled()
    assert reader.hang_up().end() in (129, -signal.SIGHUP)
    assert reader.errors == ""


def test_ctrl_c_ends_what_is_going_on_and_not_the_reader(reads: Reads, journal: Path) -> None:
    reader = reads(journal).settled()
    reader.type("12").press("ctrl c").settled()
    reader.press("/", "a", "ctrl c").settled()
    reader.press("j").settled()
    reader.quit()


def test_suspended_and_brought_back(journal: Path, tmp_path: Path) -> None:
    """Ctrl-Z gives the terminal to the shell as it was; fg draws the screen again."""
    environment = surroundings(tmp_path, PS1="$ ")
    with Terminal(["/bin/sh", "-i"], cwd=tmp_path, env=environment, stderr_too=True) as shell:
        shell.shows("$")
        shell.type(shlex.join([*PYTRACE, "read", str(journal)])).press("enter")
        shell.shows("shop.main()", "  0%", "E goes there")
        before = shell.lines[1:]  # below the minimap, which may be looked at closer meanwhile
        for _ in range(2):
            shell.press("ctrl z").shows("topped").wait(
                lambda screen: screen.line(screen.cursor[0]).endswith("$")
            )
            assert not {ALTERNATE, MOUSE} & shell.emulator.modes
            assert shell.cursor
            shell.type("echo a; echo b").press("enter").shows("\na\nb\n")
            shell.type("fg").press("enter").wait(lambda screen: screen.lines[1:] == before, "the same screen")
            assert {ALTERNATE, MOUSE} <= shell.emulator.modes
            shell.press("ctrl c")
        shell.resize(30, 100).press("j", "q")
        shell.wait(
            lambda screen: ALTERNATE not in screen.emulator.modes and screen.text.rstrip().endswith("$")
        )
        shell.type("exit $?").press("enter")
        assert shell.end() == 0


# ---- no terminal ----


def lines(command: list[str], home: Path) -> list[str]:
    done = subprocess.run(
        command,
        env=surroundings(home),
        cwd=home,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def test_piped_it_is_print(journal: Path, tmp_path: Path) -> None:
    printed = lines([*PYTRACE, "print", str(journal)], tmp_path)
    assert len(printed) > 500
    assert lines([*PYTRACE, "read", str(journal)], tmp_path) == printed
    some = lines([*PYTRACE, "read", str(journal), "--filter", "func == 'pay'"], tmp_path)
    assert 200 < len(some) < len(printed)


@pytest.mark.parametrize("plumbing", ["{} < /dev/null", "{} | cat"])
def test_with_half_a_terminal(journal: Path, tmp_path: Path, plumbing: str) -> None:
    """Input is not the terminal, or output is not."""
    command = plumbing.format(shlex.join([*PYTRACE, "read", str(journal)]))
    with Terminal(["/bin/sh", "-c", command], env=surroundings(tmp_path), cwd=tmp_path) as terminal:
        assert terminal.end() == 0
        assert terminal.raw.count(b"\n") > 500
        assert terminal.errors == ""


def test_no_words_at_all(reads: Reads, copy: Path) -> None:
    """`pytrace` alone opens ./traces.sqlite."""
    reader = reads(command=PYTRACE, cwd=copy.parent).settled()
    assert "traces.sqlite" in reader.status
    reader.quit()


# ---- editors ----


def below_the_minimap(reader: Reader) -> list[str]:
    """The screen that a key changes, without the message's line; the minimap becomes exact
    later."""
    return reader.lines[1:-1]


def at_a_call(reader: Reader) -> Reader:
    reader.settled().say("filter func == 'pay'")
    assert "pay(" in reader.current
    return reader


def test_an_editor_gets_the_terminal(reads: Reads, journal: Path, tmp_path: Path) -> None:
    editor = script(
        tmp_path / "vi", 'echo "$@" > told; stty -a < /dev/tty > stty; echo edited; read answer; exit 3'
    )
    reader = at_a_call(reads(journal, EDITOR=str(editor)))
    before = below_the_minimap(reader)
    reader.press("v").shows("edited")
    assert not {ALTERNATE, MOUSE} & reader.emulator.modes
    assert (tmp_path / "told").read_text() == f"+9 {journal.parent / 'shop.py'}\n"
    assert " echo " in (tmp_path / "stty").read_text()
    reader.press_ahead("x", "enter").shows("ended with status 3")
    reader.wait(lambda reader: below_the_minimap(reader) == before, "the screen as before")
    reader.press("ctrl c").settled()  # is a key, as before
    reader.quit()


@pytest.mark.parametrize("editor", ["/no/such/editor", "no-such-editor --wait", "'", " "])
def test_no_editor(reads: Reads, journal: Path, editor: str) -> None:
    reader = at_a_call(reads(journal, EDITOR=editor, PATH=os.path.dirname(PYTRACE[0])))
    before = below_the_minimap(reader)
    reader.press("v").settled()
    assert "EDITOR" in reader.message
    assert below_the_minimap(reader)[:-4] == before[:-4]  # a message may be long
    reader.quit()


def test_no_source(reads: Reads, hostile: Path, everything: Path) -> None:
    reader = reads(hostile, EDITOR="true").settled()
    reader.press("v").settled()
    assert "not there" in reader.message or "no source" in reader.message
    reader.quit()


# ---- copying ----


def test_copies_into_files(reads: Reads, journal: Path, tmp_path: Path) -> None:
    reader = reads(journal, rows=20, columns=60).settled()
    reader.press("D").settled()
    reader.say("copy line.txt")
    [line] = (tmp_path / "line.txt").read_text().splitlines()
    assert line.startswith("22:13:20")
    assert line.endswith("shop.Shop.order(number=0, user='bob')")
    reader.say("copy line.txt")
    assert "already" in reader.message
    reader.press("D").settled()
    reader.say("copy-value value.txt")
    assert (tmp_path / "value.txt").read_text().rstrip("\n") == "'bob'"
    reader.say("copy /no/such/folder/x")
    assert reader.message
    reader.quit()


# ---- the mouse ----


def test_wheel_and_clicks(reads: Reads, journal: Path) -> None:
    reader = reads(journal, rows=30, columns=120).settled()
    first = reader.current
    reader.wheel(True).settled().wheel(True).settled()
    assert reader.current != first
    reader.wheel(False).settled().wheel(False).settled()
    assert reader.current == first
    row = reader.current_row + 5
    line = reader.line(row)
    reader.click(row, 30).settled()
    assert (reader.current_row, reader.current) == (row, line)
    reader.click(0, 60).settled()  # the minimap
    assert 40 < int(re.search(r" (\d+)%", reader.status)[1]) < 70
    top = reader.line(2)
    assert "main()" in top
    reader.click(2, 20).settled()  # the call above the first line
    assert reader.current == top
    reader.click(29, 20).settled().click(28, 119).settled()
    reader.press("h").settled().wheel(True).settled().click(3, 3).settled().press("q").settled()
    reader.quit()
