"""How long it takes from a call until it stands on the reader's screen, while the program runs.

A program calls a function with a text of its own about twice a second (inside/stamps.py); the
reader, in a terminal, follows. Called by reader.py. If the program makes millions of other
events a second, a line would have scrolled away before anybody saw it: there, the reader has a
filter.
"""

import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import sleep

from benchmarks.latency import STAMP, started
from benchmarks.measure import DATABASE
from benchmarks.processes import Failed, reap
from benchmarks.report import Row, say, table
from benchmarks.terminal import Terminal
from benchmarks.variants import Options

POLL_SECONDS = 0.005


def rows(read: Sequence[str], options: Options) -> list[Row]:
    count = 10 if options.quick else 40
    lines, everything = [], []
    for kind, more in (("idle", []), ("busy", ["--filter", "func == 'mark'"])):
        found = [latency * 1e3 for latency in latencies([*read, *more], count, kind)]
        everything.append((statistics.median(found), max(found)))
        lines.append((kind, *(f"{x:.0f}" for x in (min(found), *everything[-1]))))
    say(table(("call to screen, program", "smallest ms", "median", "largest"), lines))
    median, largest = (max(of) for of in zip(*everything, strict=True))
    measured = f"median {median:.0f} ms, largest {largest:.0f} ms"
    return [Row("reader: new event to screen while following", "300 ms", "150 ms", measured)]


def latencies(read: Sequence[str], count: int, kind: str) -> list[float]:
    """Seconds, for each call that was made while the reader followed."""
    with tempfile.TemporaryDirectory(prefix="benchmark-") as scratch:
        program, output = started(scratch, count, kind)
        while program.poll() is None and not output.stat().st_size:
            sleep(POLL_SECONDS)  # until it has called for the first time
        seen: dict[bytes, float] = {}
        with Terminal([*read, str(Path(scratch) / DATABASE)]) as reader:
            reader.wait(lambda: bool(reader.idles), "at the start")
            reader.press(b"F")
            begun = reader.output[-1][0] if reader.output else reader.started
            while program.poll() is None:
                if reader.listen(0.1):
                    when = reader.output[-1][0] if reader.output else begun
                    for text in STAMP.findall(reader.text):
                        seen.setdefault(text, when)
                    del reader.output[:-8]  # a text may come in two parts
            reader.quit()
        if program.returncode:
            raise Failed(f"stamps.py ended with {program.returncode}")
        reap()
        called = {text: int(when) / 1e9 for text, when in map(bytes.split, output.read_bytes().splitlines())}
        followed = {text: when for text, when in called.items() if when > begun}
        if missing := followed.keys() - seen.keys():
            raise Failed(f"not on the screen while the program ran: {len(missing)} of {len(followed)} calls")
        return [seen[text] - when for text, when in followed.items()]
