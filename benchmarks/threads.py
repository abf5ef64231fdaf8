"""A thousand threads at once, and a hundred thousand one after the other: time, loss and size."""

from benchmarks.report import Row, say, table
from benchmarks.scripts import OWN, exactly, run_script
from benchmarks.variants import PYTRACE, Options


def rows(options: Options) -> list[Row]:
    if PYTRACE not in options.choose([PYTRACE]):
        return []
    made, lines = [], []
    for how, count, what in (
        ("together", 1000, "threads at once"),
        ("after", 10_000 if options.quick else 100_000, "threads one after the other"),
    ):
        bare = run_script("threads.py", how, count, recorded=False).said["seconds"]
        for scope, env in (("their own code", OWN), ("everything", {})):
            ran = run_script("threads.py", how, count, recorded=True, env=env)
            assert ran.recording
            lost = exactly([ran]) if env else f"{ran.recording.lost:,}"
            took = ran.said["seconds"]
            measured = (
                f"{took / bare:.2f}x of bare, +{(took - bare) / count * 1e6:.0f} µs each; "
                f"lost {lost}; {ran.recording.size / 2**20:.1f} MiB"
            )
            lines.append((f"{count:,} {what}", scope, f"{bare:.2f}", measured, f"{ran.recording.dumper:.2f}"))
            if env:
                made.append(Row(f"{count:,} {what}, {scope} recorded", "", "", measured))
    say(table(("threads", "recorded", "bare s", "recorded", "dumper s"), lines))
    return made
