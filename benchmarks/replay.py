"""`pytrace replay` on a recording with lines: steps, continuing to a breakpoint, the last change of
a variable.

Asked in a process of its own, inside/replays.py, as the replay asks between a key and its screen.
"""

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks import recordings
from benchmarks.asking import count, million
from benchmarks.measure import INSIDE
from benchmarks.processes import Failed, environment
from benchmarks.report import Row, say, table
from benchmarks.variants import PYTRACE, WITH_LINES, Options


def rows(options: Options) -> list[Row]:
    if PYTRACE not in options.choose([PYTRACE]):
        return []
    path = recordings.database(recordings.folder(options.databases), 10 if options.quick else 100, WITH_LINES)
    rounds = options.rounds or (10 if options.quick else 50)
    say(f"   {path}: {million(count(path))} million events")
    with tempfile.TemporaryDirectory(prefix="benchmark-") as scratch:
        result = Path(scratch) / "answers"
        spec = {"database": str(path), "rounds": rounds, "result": str(result)}
        command = [sys.executable, str(INSIDE / "replays.py"), json.dumps(spec)]
        if subprocess.run(command, cwd=scratch, env=environment()).returncode:
            raise Failed(f"{path}: walking ended with an error")
        answers = json.loads(result.read_text())
    return [
        steps(answers["steps"]),
        changes(answers["changes"]),
        *continues(answers["continues"]),
        memory({name: size for name, size in answers.items() if name.endswith("memory")}),
    ]


def milliseconds(times: list[float]) -> list[str]:
    """The median and the largest."""
    return [f"{time * 1e3:.1f}" for time in (statistics.median(times), max(times))]


def steps(times: dict[str, list[tuple[float, float]]]) -> Row:
    whole = {name: [sum(each) for each in of] for name, of in times.items()}
    heads = ("step, ms", "with its screen: median", "largest", "the way alone: median", "largest")
    lines = [
        (name, *milliseconds(whole[name]), *milliseconds([way for way, _ in of]))
        for name, of in times.items()
    ]
    say(table(heads, lines))
    every = [time for of in whole.values() for time in of]
    medians = {name: statistics.median(of) for name, of in whole.items()}
    slowest = max(medians, key=lambda name: medians[name])
    median, largest = milliseconds(every)
    return Row(
        "replay: any step at a random place, with all that is shown",
        "30 ms",
        "16 ms",
        f"{median} ms; the slowest, {slowest}: {medians[slowest] * 1e3:.1f}; at worst {largest}",
    )


def changes(times: dict[str, tuple[float, int, bool]]) -> Row:
    lines = [
        (name, "yes" if is_there else "no", f"{took * 1e3:.1f}", f"{passed:,}")
        for name, (took, passed, is_there) in times.items()
    ]
    say(table(("last change of a variable", "found", "ms", "events passed"), lines))
    slowest = max(took for took, _, _ in times.values())
    return Row("replay: last change of a variable", "100 ms", "30 ms", f"at worst {slowest * 1e3:.0f} ms")


def continues(times: dict[str, tuple[float, int, bool]]) -> list[Row]:
    rates = {name: passed / took / 1e6 for name, (took, passed, _) in times.items()}
    lines = [
        (name, "yes" if is_there else "no", f"{took:.2f}", f"{passed:,}", f"{rates[name]:.1f}")
        for name, (took, passed, is_there) in times.items()
    ]
    say(table(("continue", "stops", "s", "events passed", "million a second"), lines))
    return [
        Row(f"replay: continue, million events/s, {name}", "20", "100", f"{rate:.1f}")
        for name, rate in rates.items()
        if rate  # else it was there at once
    ]


def memory(sizes: dict[str, int]) -> Row:
    """The largest so far, behind each part."""
    shown = ", ".join(f"{size / 1e6:.0f} MB behind {name.split(':')[0]}" for name, size in sizes.items())
    return Row("replay: memory, mapped files included", "flat", "", shown)
