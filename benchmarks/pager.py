"""The reader beside `less` on what `pytrace print` writes: to open it, and to reach the end.

Called by reader.py. less reads a pipe to its end before it can show that; the end of a file it
shows at once, but somebody has to have written the file. So both are told.
"""

import statistics
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from shlex import join
from shutil import which
from time import monotonic

from benchmarks.asking import count, million
from benchmarks.processes import environment
from benchmarks.report import Row, say, table
from benchmarks.terminal import Terminal

LESS = ["less", "-S"]  # long lines are cut, as in the reader


def rows(read: Sequence[str], path: Path, rounds: int) -> list[Row]:
    if not which("less"):
        say("not installed, left out: less")
        return []
    show = [*read[:-1], "print", "--color", "never", str(path)]
    times: dict[str, list[tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory(prefix="benchmark-", dir=path.parent) as scratch:
        text = Path(scratch) / "text"
        start = monotonic()
        with text.open("wb") as file:
            subprocess.run(show, env=environment(), stdout=file, check=True)
        written = monotonic() - start
        size = text.stat().st_size
        first, last = ends(text)
        commands = {
            "`pytrace print` into `less -S`": ["sh", "-c", f"{join(show)} | {join(LESS)}"],
            "`less -S FILE`": [*LESS, str(text)],
            "`pytrace read`": [*read, str(path)],
        }
        for _ in range(rounds):
            for name, command in commands.items():
                times.setdefault(name, []).append(opened(command, first, last))
    what = f"{million(count(path))} million events"
    medians = {
        name: [statistics.median(part) for part in zip(*of, strict=True)] for name, of in times.items()
    }
    lines = [(name, *(f"{x:.3f}" for x in of)) for name, of in medians.items()]
    say(table((what, "opened, s", "and at the end, s"), lines))
    say(f"   the file has {size:,} bytes; writing it takes {written:.2f} s")
    piped, filed, own = (end for _, end in medians.values())
    return [
        Row(
            f"reader: opened and at the end, beside `pytrace print` piped into `less`, {what}",
            "50x",
            "500x",
            f"{piped / own:.0f}x ({piped:.2f} s : {own:.3f} s); beside less on a file "
            f"{(written + filed) / own:.0f}x with the writing of the file, {filed / own:.2f}x without",
        )
    ]


def ends(text: Path) -> tuple[bytes, bytes]:
    """The times in the first and in the last line."""
    with text.open("rb") as file:
        first = file.readline()
        file.seek(-min(text.stat().st_size, 1 << 16), 2)
        last = file.read().splitlines()[-1]
    return first.split()[0], last.split()[0]


def opened(command: Sequence[str], first: bytes, last: bytes) -> tuple[float, float]:
    """Seconds until the first line was on the screen, and until the last was, after `G`."""
    with Terminal(command) as terminal:
        shown = terminal.wait_for(first) - terminal.started
        pressed = terminal.type(b"G")
        end = terminal.wait_for(last) - pressed
        terminal.quit()
    return shown, shown + end
