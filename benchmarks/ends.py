"""A program whose dumper stands still; and the time until all is readable after its death."""

import os
import signal
import statistics
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import apsw

from benchmarks.measure import DATABASE, INSIDE, read_recording
from benchmarks.processes import Failed, environment, reap
from benchmarks.report import Row, say, table
from benchmarks.scripts import OWN, Ran, exactly, notes
from benchmarks.variants import BARE, PYTRACE, Options

POLL_SECONDS = 0.001
BURST_EVENTS = 2002  # of one in inside/endless.py
OTHER_EVENTS = 4  # its module and its main


def rows(options: Options) -> list[Row]:
    if PYTRACE not in options.choose([PYTRACE]):
        return []
    return stopped(options) + killed(options)


class Endless:
    """A running inside/endless.py, recorded or not, that has been told to begin."""

    def __init__(self, folder: Path, recorded: bool, times: int, stop: bool = False) -> None:
        """stop: its dumper stands still while it works."""
        self.database = folder / DATABASE
        self._progress = folder / "progress"
        self._progress.write_bytes(bytes(16))
        command = [word.replace("{scratch}", str(folder)) for word in (PYTRACE if recorded else BARE).command]
        self.process = subprocess.Popen(
            [*command, str(INSIDE / "endless.py"), str(self._progress), str(times)],
            cwd=folder,
            env=environment(**OWN),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self.process.stdin
        assert self.process.stdout
        if self.process.stdout.readline() != b"ready\n":
            raise Failed(f"endless.py ended with {self.process.wait()}")
        if stop:
            self.signal_dumper(signal.SIGSTOP)
        self.process.stdin.close()

    def signal_dumper(self, number: int) -> None:
        """To all that has become our child and is not the program."""
        children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
        for child in map(int, children):
            if child != self.process.pid:
                os.kill(child, number)

    def progress(self) -> tuple[int, float]:
        """The bursts done, and the seconds that all took, or 0."""
        done, took = struct.unpack("=QQ", self._progress.read_bytes())
        return done, took / 1e9


@contextmanager
def endless(recorded: bool, times: int, stop: bool = False) -> Iterator[Endless]:
    """Whatever becomes of it, nothing is left running."""
    with tempfile.TemporaryDirectory(prefix="benchmark-") as scratch:
        running = Endless(Path(scratch), recorded, times, stop)
        try:
            yield running
        finally:
            running.process.kill()
            running.signal_dumper(signal.SIGCONT)
            reap()


def stopped(options: Options) -> list[Row]:
    rounds = options.rounds or (3 if options.quick else 9)
    times = 5_000 if options.quick else 20_000
    took: dict[str, list[float]] = {"bare": [], "its dumper at work": [], "its dumper stopped": []}
    runs = []
    for _ in range(rounds):
        for name, of in took.items():
            with endless(name != "bare", times, stop=name.endswith("stopped")) as program:
                while not program.progress()[1]:
                    if program.process.poll():
                        raise Failed(f"endless.py ended with {program.process.returncode}")
                    time.sleep(POLL_SECONDS)
                of.append(program.progress()[1])
                program.signal_dumper(signal.SIGCONT)
                program.process.wait()
                reap()
                if name.endswith("stopped"):
                    runs.append(
                        Ran(
                            {"events": times * BURST_EVENTS + OTHER_EVENTS},
                            read_recording(program.database, 0),
                            notes(program.database),
                        )
                    )
    medians = {name: statistics.median(of) for name, of in took.items()}
    bare, at_work, still = medians.values()
    say(
        table(
            ("flat out", "seconds", "over bare"),
            [(name, f"{of:.3f}", f"{of / bare:.2f}") for name, of in medians.items()],
        )
    )
    return [
        Row(
            "dumper stopped: time of the program over that with its dumper at work",
            "1.0x",
            "1.0x",
            f"{still / at_work:.2f}x",
        ),
        Row("lost: dumper stopped", "counted exactly", "", exactly(runs)),
    ]


def killed(options: Options) -> list[Row]:
    rounds = options.rounds or (5 if options.quick else 20)
    readable, printed, lines = [], [], []
    for number in range(rounds):
        least = 1000 + 250 * number  # bursts: from a tenth of a second to some seconds
        with endless(True, 0) as program:
            while program.progress()[0] < least:
                time.sleep(POLL_SECONDS)
            program.process.kill()
            start = time.perf_counter()
            took, events = watch(program.database)
            again = time.perf_counter()
            subprocess.run(
                [PYTRACE.command[0], "print", str(program.database), "--limit", "60"],
                stdout=subprocess.DEVNULL,
                check=True,
            )
            more = time.perf_counter() - again
            reap()
            done = program.progress()[0]
            lost = read_recording(program.database, 0).lost
        if events + lost < done * BURST_EVENTS:
            raise Failed(f"{events:,} events and {lost:,} lost after {done:,} bursts of {BURST_EVENTS:,}")
        readable.append((took - start) * 1e3)
        printed.append(readable[-1] + more * 1e3)
        lines.append(
            (
                f"{done * BURST_EVENTS:,}",
                f"{events:,}",
                f"{lost:,}",
                f"{readable[-1]:.0f}",
                f"{more * 1e3:.0f}",
            )
        )
    say(table(("events made", "stored", "lost", "readable after ms", "print ms"), lines))
    return [
        Row(
            "from SIGKILL of the program to all its events in the database; "
            "to their first page by a new `pytrace print`",
            "500 ms",
            "200 ms",
            f"median {statistics.median(readable):.0f} ms, largest {max(readable):.0f}; "
            f"{statistics.median(printed):.0f}, {max(printed):.0f}",
        )
    ]


def watch(database: Path) -> tuple[float, int]:
    """When the last event was there to be read (perf_counter), and how many there are then."""
    last, events = 0.0, -1
    with closing(apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        connection.set_busy_timeout(1000)
        while True:
            row = connection.execute(
                "SELECT (SELECT finished FROM run), (SELECT sum(count) FROM segment)"
            ).get
            finished, now = row
            if now != events:
                last, events = time.perf_counter(), now
            if finished:
                return last, events
            time.sleep(POLL_SECONDS)
