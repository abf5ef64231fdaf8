"""Makes events flat out, when it is told to begin: `endless.py PROGRESS TIMES`.

It says `ready` and waits for a line. Then it calls `burst` TIMES times, or until it is killed if
that is 0: a thousand steps each. PROGRESS is a file of 16 bytes that it maps. In it are the number
of bursts done, and, as soon as they all are, the nanoseconds that they took.
"""

import mmap
import struct
import sys
import time


def step(n: int) -> int:
    return n + 1


def burst() -> None:
    for n in range(1000):
        step(n)


def main() -> None:
    times = int(sys.argv[2])
    with open(sys.argv[1], "r+b") as file, mmap.mmap(file.fileno(), 16) as progress:
        print("ready", flush=True)
        sys.stdin.readline()
        done, start = 0, time.perf_counter_ns()
        while not times or done < times:
            burst()
            done += 1
            struct.pack_into("=Q", progress, 0, done)
        struct.pack_into("=Q", progress, 8, time.perf_counter_ns() - start)


main()
