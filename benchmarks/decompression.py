"""How long nothing but the decompression of a recording takes: what bounds every scan of it."""

import ctypes
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from threading import Thread
from time import perf_counter

from benchmarks.processes import Failed

AT_ONCE = 2000  # segments in memory


def seconds(path: Path) -> tuple[float, float]:
    """Of processor one, then of two, for all segments; reading them from the file is not
    counted."""
    import apsw

    try:
        library = ctypes.CDLL("libzstd.so.1")
    except OSError as error:
        raise Failed(f"zstd is not installed: {error}") from None
    library.ZSTD_createDCtx.restype = ctypes.c_void_p
    library.ZSTD_decompressDCtx.restype = ctypes.c_size_t
    library.ZSTD_isError.argtypes = [ctypes.c_size_t]
    sums = [0.0, 0.0]
    with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        rows = connection.execute("SELECT data, size FROM segment")
        while some := [row for row, _ in zip(rows, range(AT_ONCE), strict=False)]:
            for cores in (1, 2):
                sums[cores - 1] += decompress(library, some, cores)
    return sums[0], sums[1]


def decompress(library: ctypes.CDLL, segments: Sequence[tuple[bytes, int]], cores: int) -> float:
    def work(mine: Sequence[tuple[bytes, int]]) -> None:
        context = ctypes.c_void_p(library.ZSTD_createDCtx())
        out = ctypes.create_string_buffer(max(size for _, size in mine))
        room = ctypes.c_size_t(len(out))
        for data, _ in mine:
            made = library.ZSTD_decompressDCtx(context, out, room, data, ctypes.c_size_t(len(data)))
            assert not library.ZSTD_isError(made)
        library.ZSTD_freeDCtx(context)

    threads = [Thread(target=work, args=(segments[i::cores],)) for i in range(cores)]
    start = perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return perf_counter() - start
