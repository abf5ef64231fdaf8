"""The cost of summaries of segments. Started by segments.py with a database, apart from the tree,
where no module is built; prints processor time in ns, the least of several rounds, and bytes, both
an event."""

import sys
import time

import apsw
from pytracer._core import ffi
from pytracer.dumper.segments import Segments

if sys.version_info >= (3, 14):
    from compression.zstd import decompress
else:
    from backports.zstd import decompress

ROUNDS = 20
QUERY = """
SELECT data, base_depth, count, length(codes) FROM segment WHERE complete ORDER BY size DESC LIMIT 30
"""


def main(database: str) -> None:
    rows = list(apsw.Connection(database, flags=apsw.SQLITE_OPEN_READONLY).execute(QUERY))
    bodies = [(ffi.from_buffer(decompress(data)), depth) for data, depth, _, _ in rows]
    segments = Segments()
    times = []
    for _ in range(ROUNDS):
        start = time.process_time()
        for body, depth in bodies:
            segments.summary(body, len(body), depth)
        times.append(time.process_time() - start)
    events = sum(count for _, _, count, _ in rows)
    stored = 2 * sum(codes for _, _, _, codes in rows)  # in the row and in the index
    print(f"summaries: {min(times) / events * 1e9:.1f} ns, {stored / events:.3f} bytes of codes an event")


if __name__ == "__main__":
    main(sys.argv[1])
