"""How long completing a filter takes, a key press, if 100,000 functions are known."""

import random
import statistics
import time

from benchmarks.report import Row, say, table
from benchmarks.variants import Options

FUNCTIONS = 100_000
WORDS = (
    "read", "write", "parse", "token", "handle", "request", "session", "user", "order", "pay",
    "check", "total", "price", "item", "cache", "load", "save", "find", "update", "delete",
    "create", "init", "close", "open", "flush", "merge", "split", "render", "encode", "decode",
    "send", "receive",
)  # fmt: skip
# what is typed; the cursor is at the end
TYPED = (
    "", "f", "func == '", "func == 'p", "func == 'pay", "func == 'user_chk", "func == 'Z", "func == 'zzzzqq",
    "module == 'h", "arg == 'us", "type == 'app.O", "func == 'read%' and ar", "value == 'x' and func in ('se",
)  # fmt: skip


def rows(options: Options) -> list[Row]:
    from pytracer.reader.suggestions.completion import complete
    from pytracer.reader.suggestions.names import Names

    chosen = random.Random(1)

    def name() -> str:
        first, second = chosen.choice(WORDS), chosen.choice(WORDS)
        return chosen.choice((f"{first}_{second}", f"{first}{second.title()}", first))

    functions = [f"{name().title()}.{name()}_{number}" for number in range(FUNCTIONS)]
    names = Names(
        functions=functions,
        modules=[f"app.{name()}_{number}" for number in range(2000)],
        arguments=[f"{name()}_{number}" for number in range(5000)],
        types=[f"app.{name().title()}{number}" for number in range(3000)],
    )
    complete(names, "f", 1)  # what the first key press prepares
    lines, all_times = [], []
    for text in TYPED:
        times = []
        for _ in range(options.rounds or (5 if options.quick else 20)):
            start = time.perf_counter()
            found = complete(names, text, len(text))
            times.append((time.perf_counter() - start) * 1000)
        all_times += times
        lines.append(
            (repr(text), str(len(found.candidates)), f"{statistics.median(times):.1f}", f"{max(times):.1f}")
        )
    say(table(("typed", "candidates", "median ms", "largest ms"), lines))
    return [
        Row(
            f"completion of a filter, {FUNCTIONS:,} functions: median, largest",
            "20 ms",
            "",
            f"{statistics.median(all_times):.1f} ms, {max(all_times):.1f} ms",
        )
    ]
