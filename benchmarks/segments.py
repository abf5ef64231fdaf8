"""`python -m benchmarks.segments DATABASE`: what storing the segments of a recording costs, by zstd
level and by SQLite's page size, and what their summaries cost. Prints the tables of docs/dumper.md.
Processor time, the least of several rounds."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import apsw

if sys.version_info >= (3, 14):
    from compression.zstd import CompressionParameter, ZstdCompressor, decompress
else:
    from backports.zstd import CompressionParameter, ZstdCompressor, decompress

LEVELS = (3, 1, -1, -5, -20, -100)
MIN_MATCH = 7  # as the dumper has it
PAGE_SIZES = (4096, 8192, 16384, 32768)
ROUNDS = 5
SEGMENTS = 1000  # written with each page size
BATCH = 16
INSERT = "INSERT INTO segment (id, start, data) VALUES (?, ?, ?)"


def least_time(work: Callable[[], object]) -> float:
    """Seconds of processor time."""
    times = []
    for _ in range(ROUNDS):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def compress_all(bodies: list[bytes], level: int) -> list[bytes]:
    compressor = ZstdCompressor(
        options={CompressionParameter.compression_level: level, CompressionParameter.min_match: MIN_MATCH}
    )
    return [compressor.compress(body, ZstdCompressor.FLUSH_FRAME) for body in bodies]


def write_all(path: str, page_size: int, blobs: list[bytes]) -> None:
    """SEGMENTS of these into a new database, as the dumper does."""
    for suffix in ("", "-wal", "-shm"):
        if os.path.exists(path + suffix):
            os.unlink(path + suffix)
    db = apsw.Connection(path)
    db.execute(f"PRAGMA page_size = {page_size}; PRAGMA auto_vacuum = INCREMENTAL")
    db.execute("CREATE TABLE segment (id INTEGER PRIMARY KEY, start INTEGER, data BLOB)")
    db.execute("CREATE INDEX segment_time ON segment (start)")
    db.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL").fetchall()
    db.execute(f"PRAGMA wal_autocheckpoint = {(16 << 20) // page_size}").fetchall()
    for first in range(0, SEGMENTS, BATCH):
        with db:
            db.executemany(INSERT, ((i, i, blobs[i % len(blobs)]) for i in range(first, first + BATCH)))
    db.close()


def main(database: str) -> None:
    db = apsw.Connection(database, flags=apsw.SQLITE_OPEN_READONLY)
    rows = list(db.execute("SELECT data, count FROM segment WHERE complete ORDER BY size DESC LIMIT 30"))
    bodies = [decompress(data) for data, _ in rows]
    events = sum(count for _, count in rows)
    print(f"{len(rows)} segments, {events / len(rows):,.0f} events each")
    print(f"raw: {sum(map(len, bodies)) / events:.1f} bytes an event", flush=True)

    summaries = Path(__file__).parent / "inside" / "summaries.py"
    subprocess.run([sys.executable, "-P", summaries, database], check=True)

    print("\n| zstd level | ns an event | bytes an event |\n| --- | --- | --- |")
    for level in LEVELS:
        seconds = least_time(partial(compress_all, bodies, level))
        size = sum(map(len, compress_all(bodies, level)))
        print(f"| {level} | {seconds / events * 1e9:.1f} | {size / events:.2f} |")

    print("\n| page size | ns an event | ns a byte |\n| --- | --- | --- |")
    blobs = compress_all(bodies, 1)
    written = SEGMENTS / len(rows)  # times all of them
    with tempfile.TemporaryDirectory(dir=".") as folder:
        for page_size in PAGE_SIZES:
            path = os.path.join(folder, "pages.sqlite")
            seconds = least_time(partial(write_all, path, page_size, blobs))
            an_event = seconds / (events * written) * 1e9
            a_byte = seconds / (sum(map(len, blobs)) * written) * 1e9
            print(f"| {page_size} | {an_event:.1f} | {a_byte:.2f} |")


if __name__ == "__main__":
    main(sys.argv[1])
