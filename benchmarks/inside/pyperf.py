"""Stands in for pyperf, so that pyperformance's programs run inside one process.

The real `pyperf.Runner` starts workers, which a tracer of the process would not see. This one only
remembers what is to be run; workload.py or longrun.py runs it.
"""

import os
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from typing import Any

# the programs take their times with it, too
perf_counter = time.thread_time if os.environ.get("BENCHMARK_CLOCK") == "thread" else time.perf_counter

benches: list[Callable[[int], float]] = []
arguments: list[str] = []  # of the program's command line


class Runner:
    """The part of `pyperf.Runner` that the ten programs use."""

    def __init__(self, add_cmdline_args: object = None) -> None:
        self.argparser = ArgumentParser()
        self.metadata: dict[str, object] = {}

    def parse_args(self) -> Namespace:
        return self.argparser.parse_args(arguments)

    def bench_func(
        self, name: str, function: Callable[..., object], *args: Any, inner_loops: int = 1
    ) -> None:
        def run(loops: int) -> float:
            start = perf_counter()
            for _ in range(loops):
                function(*args)
            return perf_counter() - start

        benches.append(run)

    def bench_time_func(
        self, name: str, function: Callable[..., float], *args: Any, inner_loops: int = 1
    ) -> None:
        benches.append(lambda loops: function(loops, *args))
