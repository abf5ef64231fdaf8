"""Reading while the program still runs: before its first event, during, and after; and what may
happen to the file meanwhile."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from dumping import PATIENCE
from handmade import Handmade, event
from reader import PYTRACE, Reader, Reads
from recorded import STEPS_ON_DEMAND
from recording import environment


class Program:
    """A recorded program that makes events when it is told to."""

    def __init__(self, folder: Path, *options: str) -> None:
        script = folder / "steps.py"
        script.write_text(STEPS_ON_DEMAND)
        self.database = folder / "traces.sqlite"
        command = [*PYTRACE, "-q", "-o", str(self.database), "--no-stdlib", *options, str(script)]
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )
        assert self._line() == "ready"

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def step(self, count: int) -> int:
        """Makes so many calls of `step`. How many there were in all."""
        assert self.process.stdin is not None
        print(count, file=self.process.stdin, flush=True)
        return int(self._line())

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        assert self.process.wait(60) == 0

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    program = Program(tmp_path)
    yield program
    program.close()


def test_following(reads: Reads, program: Program) -> None:
    """New events come by themselves; a key that moves ends it; F goes on."""
    reader = reads(program.database).shows("LIVE")
    reader.press("F").shows("FOLLOWING")
    last = program.step(100)
    reader.shows(f"step: {last}")
    assert f"step: {last}" in reader.current
    last = program.step(1000)
    reader.shows(f"step: {last}")
    reader.press("k").settled().hides("FOLLOWING")
    here = reader.current
    assert f"step(n={last - 1})" in here
    program.step(1000)
    program.end()
    reader.shows("ended with status 0").hides("LIVE")
    assert reader.current == here
    reader.press("F").shows("step: 2100")
    reader.quit()


def test_what_is_read_stays_while_more_comes(reads: Reads, program: Program) -> None:
    program.step(500)
    reader = reads(program.database).shows("step(n=")
    reader.type("300").press("g").settled()
    before = reader.lines[1:-2]
    for _ in range(5):
        program.step(2000)
        reader.press("j", "k").settled()
        assert reader.lines[1:-2] == before
    program.end()
    reader.hides("LIVE", "running")
    assert reader.lines[2:-2] == before[1:]
    reader.press("G").shows("step: 10500")
    reader.quit()


def test_hot_lines_grow(reads: Reads, tmp_path: Path) -> None:
    """The list of lines is counted anew while the program runs."""
    program = Program(tmp_path, "--lines")
    try:
        program.step(500)
        reader = reads(program.database).shows("LIVE")
        reader.press("H").shows("H: lines").press("H")
        reader.wait(lambda screen: "500  " in _line_of(screen, "return n + 1"), "the first runs")
        program.step(1000)
        reader.wait(lambda screen: "1,500  " in _line_of(screen, "return n + 1"), "the other runs")
        reader.press("q").settled().quit()
        program.end()
    finally:
        program.close()


def _line_of(screen: Reader, end: str) -> str:
    return next((line for line in screen.lines if line.endswith(end)), "")


def test_following_until_something_is_found(reads: Reads, program: Program) -> None:
    """ESC-F: the bell rings, and the reader stands there."""
    program.step(10)
    reader = reads(program.database).shows("step(n=")
    reader.press("/").type(r"step\(n=7000\)").press("enter").settled()
    reader.press("meta F").shows("UNTIL FOUND")
    program.step(3000)
    program.step(3000)
    assert reader.emulator.bells == 0
    program.step(3000)
    reader.wait(lambda screen: screen.emulator.bells == 1, "the bell")
    reader.hides("UNTIL FOUND").shows("step(n=7000)")
    assert "step(n=7000)" in reader.current
    reader.quit()


def test_opened_before_the_first_event(reads: Reads, tmp_path: Path) -> None:
    path = tmp_path / "traces.sqlite"
    with Handmade(path) as made:
        reader = reads(path).shows("no recording yet")
        run = made.run("first.py", finished=False)
        made.code(run, 1, "step", ["n"])
        reader.shows("LIVE")
        made.segment(run, [event("call", 1, 5, time=1)], complete=False)
        reader.shows("step(n=5)")
        made.segment(run, [event("call", 1, 5, time=1), event("return", 1, 6, time=2)], complete=False)
        reader.shows("step: 6")
        reader.press("G").settled()
        made.finish(run)
        reader.shows("the program ended with status 0")
        reader.quit()


def test_a_run_that_starts_meanwhile_is_announced(reads: Reads, copy: Path) -> None:
    reader = reads(copy).settled()
    reader.press("j").settled()
    current = reader.current
    with Handmade(copy) as made:
        run = made.run("late.py --fast", finished=False)
        made.code(run, 1, "step", ["n"])
        made.segment(run, [event("call", 1, 5)])
        reader.shows("recording 3 has begun: late.py --fast")
        assert reader.current == current
        reader.say("run 3").shows("step(n=5)", "LIVE")
        reader.press("backspace").settled()
        assert reader.current == current
        reader.quit()


def test_a_program_that_is_killed_is_shown_as_such(reads: Reads, program: Program) -> None:
    last = program.step(100)
    reader = reads(program.database).shows("LIVE").press("F").shows(f"step: {last}")
    program.process.send_signal(signal.SIGKILL)
    reader.shows("killed by SIGKILL").hides("LIVE")
    reader.quit()


def test_what_is_evicted(reads: Reads, tmp_path: Path) -> None:
    """The oldest events go while they are read: it is said how many, and the nearest ones are
    shown."""
    path = tmp_path / "traces.sqlite"
    with Handmade(path) as made:
        run = made.run(finished=False)
        made.code(run, 1, "step", ["n"])
        for n in range(30):
            steps = [event("call", 1, 100 * n + m, time=1, depth=0) for m in range(100)]
            made.segment(run, steps, sequence=n, start=100 * n)
        reader = reads(path).shows("step(n=0)").type("1500").press("g").settled()
        made("DELETE FROM segment WHERE sequence < 10")
        made("UPDATE run SET evicted = 1000 WHERE id = ?", (run,))
        reader.press("j", "k").settled()
        assert "step(n=1499)" in reader.current
        reader.press("g").shows("1,000 events dropped here", "step(n=1000)")
        made("DELETE FROM segment WHERE sequence < 20")
        made("UPDATE run SET evicted = 2000 WHERE id = ?", (run,))
        reader.shows("2,000 events dropped here", "step(n=2000)").hides("step(n=1000)")
        reader.press("G").settled()
        assert "step(n=2999)" in reader.current
        reader.quit()


# ---- the file ----


def still_works(reader: Reader) -> None:
    for key in ("g", "G", "b", "tab", "x", "tab", "/", "x", "enter", "g"):
        reader.press(key).settled()
    assert "main()" in reader.current


def test_removed(reads: Reads, copy: Path) -> None:
    """An open file can be read to its end."""
    reader = reads(copy).settled()
    copy.unlink()
    reader.shows("has been removed")
    still_works(reader)
    reader.quit()


def test_replaced_by_another(reads: Reads, copy: Path, shop: Path) -> None:
    reader = reads(copy).settled()
    shutil.copy(shop, copy.with_name("other"))
    os.replace(copy.with_name("other"), copy)
    reader.shows("__main__.<module>()", "shop/script.py")
    reader.press("G").settled().press("g").settled()
    reader.quit()


@pytest.mark.parametrize("content", [b"", b"nonsense" * 1000])
def test_overwritten(reads: Reads, copy: Path, content: bytes) -> None:
    """By something that is no database: it is said, and the reader can be left."""
    reader = reads(copy).settled()
    copy.write_bytes(content)
    reader.press("G").settled().press("ctrl l").settled()
    assert str(copy) in reader.message or copy.name in reader.text
    reader.press("g").settled()
    reader.press("q")
    assert reader.end() == 0
    assert reader.as_before


def test_a_reader_does_not_hold_up_the_recording(reads: Reads, program: Program) -> None:
    """However much it reads, the database can be emptied of its WAL, and shrinks."""
    reader = reads(program.database).shows("LIVE")
    for _ in range(5):
        program.step(5000)
        reader.press("G").settled().press("b", "b").settled()
    program.end()
    reader.hides("LIVE").settled()
    with sqlite3.connect(program.database, timeout=PATIENCE) as writer:
        assert writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall() == [(0, 0, 0)]
    writer.close()
    reader.quit()


def test_tasks_are_shown_by_themselves(tmp_path: Path, reads: Reads) -> None:
    """In a program with a single thread, too."""
    script = tmp_path / "script.py"
    script.write_text(
        "import asyncio\n"
        "async def work(): pass\n"
        "async def main(): await asyncio.create_task(work(), name='a task')\n"
        "asyncio.run(main())\n"
    )
    command = [*PYTRACE, "-q", "--modules", str(script), str(script)]
    subprocess.run(command, cwd=tmp_path, env=environment(), check=True, timeout=60)
    reader = reads(tmp_path / "traces.sqlite")
    reader.shows("a task  ")
    reader.press("-", "T")
    reader.hides("a task  ")
